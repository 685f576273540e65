/** The files of results, which git does not keep. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FOLDER = new URL('results/', import.meta.url);
const CELLS = new URL('cells/', FOLDER);

/** What `npm run bench` has measured; gives back where it stands. */
export function writeLatest(results) {
  return write(new URL('latest.json', FOLDER), results);
}

/** Whether the cell has been measured, with that share of its turns or more. */
export function isFinished(cell, share) {
  return existsSync(fileOf(cell)) && JSON.parse(readFileSync(fileOf(cell), 'utf8')).share >= share;
}

export function writeCell(cell, results) {
  return write(fileOf(cell), results);
}

/** The results of every cell that is finished. */
export function readCells() {
  if (!existsSync(CELLS)) return [];
  return readdirSync(CELLS)
    .filter((file) => file.endsWith('.json'))
    .map((file) => JSON.parse(readFileSync(new URL(file, CELLS), 'utf8')));
}

function fileOf(cell) {
  return new URL(`${cell}.json`, CELLS);
}

function write(file, value) {
  mkdirSync(new URL('.', file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
  return fileURLToPath(file);
}
