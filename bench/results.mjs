/** The files of results, which git does not keep. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FOLDER = new URL('results/', import.meta.url);
const CELLS = new URL('cells/', FOLDER);
/** Every Node has cells of its own. */
const OWN_CELLS = new URL(`node-${process.versions.node.split('.')[0]}/`, CELLS);

/** What `npm run bench` has measured; gives back where it stands. */
export function writeLatest(results) {
  return write(new URL('latest.json', FOLDER), results);
}

/**
 * Whether the cell has been measured as it is defined now, on this machine and this Node, of these versions, with that share of
 * its turns or more, and every row counts.
 */
export function isFinished(cell, { definition, machine, versions, share }) {
  const measured = readResult(fileOf(cell));
  return (
    measured?.definition === definition &&
    ['cpu', 'cores', 'node'].every((part) => measured.machine[part] === machine[part]) &&
    JSON.stringify(measured.versions) === JSON.stringify(versions) &&
    measured.share >= share &&
    (measured.drivers ?? []).every(({ complaint }) => complaint === undefined)
  );
}

export function writeCell(cell, results) {
  return write(fileOf(cell), results);
}

/** The results of every cell that has been measured, on any Node. */
export function readCells() {
  if (!existsSync(CELLS)) return [];
  return readdirSync(CELLS, { recursive: true })
    .filter((file) => file.endsWith('.json'))
    .map((file) => {
      const result = readResult(new URL(file.replaceAll('\\', '/'), CELLS));
      if (result === undefined)
        throw new Error(`bench/results/cells/${file} holds no result: delete it, and measure it again`);
      return result;
    });
}

/** Undefined where there is none, or one that cannot be read. */
function readResult(file) {
  if (!existsSync(file)) return undefined;
  try {
    const result = JSON.parse(readFileSync(file, 'utf8'));
    return result?.machine === undefined ? undefined : result;
  } catch {
    return undefined;
  }
}

function fileOf(cell) {
  return new URL(`${cell}.json`, OWN_CELLS);
}

function write(file, value) {
  mkdirSync(new URL('.', file), { recursive: true });
  // Whole or not at all: it may be broken off.
  const part = new URL(`${file.href}.part`);
  writeFileSync(part, `${JSON.stringify(value, null, 2)}\n`);
  renameSync(part, file);
  return fileURLToPath(file);
}
