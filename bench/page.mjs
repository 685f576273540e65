#!/usr/bin/env node
/**
 * `npm run bench:page`: puts the results of `npm run bench:full` into `docs/benchmarks/results.json`, and makes the page and
 * its pictures of that. Without results at hand the page is made anew of what is committed. Cells that are missing are told, and
 * nothing is written, unless `--partial` says that the page may do without them.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { CELLS } from './cells/cells.mjs';
import { compactResults, readResults, resultsText } from './page/compact.mjs';
import { filesOf } from './page/page.mjs';
import { readCells } from './results.mjs';

const DOCS = new URL('../docs/', import.meta.url);
const PICTURES = new URL('benchmarks/', DOCS);
const RESULTS = new URL('results.json', PICTURES);

const { partial } = readOptions();
const cells = readCells();
const order = CELLS.map(({ name }) => name);
const missing = order.filter((name) => !cells.some((cell) => cell.name === name));
if (cells.length > 0 && missing.length > 0 && !partial) {
  fail(`npm run bench:full has yet to measure ${missing.join(', ')}; --partial makes a page without them`);
}
mkdirSync(PICTURES, { recursive: true });
if (cells.length > 0) writeFileSync(RESULTS, resultsText(compactResults(cells, order)));
for (const file of readdirSync(PICTURES)) {
  if (file.endsWith('.svg')) rmSync(new URL(file, PICTURES));
}
const results = readResults(readFileSync(RESULTS, 'utf8'));
const files = filesOf(results);
for (const [path, text] of Object.entries(files)) writeFileSync(new URL(path, DOCS), text);
const measured = results.cells.filter(({ name }) => order.includes(name)).length;
console.log(`docs/benchmarks.md: ${measured} cells of ${order.length}, ${Object.keys(files).length - 1} pictures`);

function readOptions() {
  try {
    return parseArgs({ options: { partial: { type: 'boolean', default: false } } }).values;
  } catch (error) {
    return fail(`${error.message.split('. ', 1)[0]}\nusage: npm run bench:page -- [--partial]`);
  }
}

function fail(why) {
  console.error(`bench: ${why}`);
  process.exit(2);
}
