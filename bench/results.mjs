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
 * Whether the cell has been measured as it is defined now, of these versions, with that share of its turns or more, and every row
 * counts.
 */
export function isFinished(cell, { definition, versions, share }) {
  if (!existsSync(fileOf(cell))) return false;
  const measured = JSON.parse(readFileSync(fileOf(cell), 'utf8'));
  return (
    measured.definition === definition &&
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
    .map((file) => JSON.parse(readFileSync(new URL(file.replaceAll('\\', '/'), CELLS), 'utf8')));
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
