/** The result files under `bench/results/`, which git ignores: one per Node and cell. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('results/', import.meta.url));

/** Whether this machine, Node and build have measured the cell as it is now defined, and every row counts. */
export function isFinished(cell, { definition, machine, versions, share }) {
  const file = fileOf(cell);
  const measured = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
  return (
    measured?.definition === definition &&
    ['cpu', 'cores', 'node'].every((part) => measured.machine[part] === machine[part]) &&
    JSON.stringify(measured.versions) === JSON.stringify(versions) &&
    measured.share >= share &&
    (measured.drivers ?? []).every(({ complaint }) => complaint === undefined)
  );
}

/** Writes the file in one step, because a measurement may be interrupted. */
export function writeCell(cell, results) {
  const file = fileOf(cell);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(`${file}.part`, `${JSON.stringify(results, null, 2)}\n`);
  renameSync(`${file}.part`, file);
}

/** Returns all measured cells from any Node. */
export function readCells() {
  if (!existsSync(FOLDER)) return [];
  return readdirSync(FOLDER, { recursive: true })
    .filter((file) => file.endsWith('.json') && basename(join(file, '..')).startsWith('node-'))
    .map((file) => JSON.parse(readFileSync(join(FOLDER, file), 'utf8')));
}

function fileOf(cell) {
  return join(FOLDER, `node-${process.versions.node.split('.')[0]}`, `${cell}.json`);
}
