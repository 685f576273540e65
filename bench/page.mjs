#!/usr/bin/env node
/**
 * `npm run bench:page`: puts the results of `npm run bench:full` into `docs/benchmarks/results.json`, and makes the page and
 * its pictures of that. Without results at hand the page is made anew of what is committed.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { CELLS } from './cells/cells.mjs';
import { compactResults, readResults, resultsText } from './page/compact.mjs';
import { filesOf } from './page/page.mjs';
import { readCells } from './results.mjs';

const DOCS = new URL('../docs/', import.meta.url);
const PICTURES = new URL('benchmarks/', DOCS);
const RESULTS = new URL('results.json', PICTURES);

mkdirSync(PICTURES, { recursive: true });
const cells = readCells();
const order = CELLS.map(({ name }) => name);
if (cells.length > 0) writeFileSync(RESULTS, resultsText(compactResults(cells, order)));
for (const file of readdirSync(PICTURES)) {
  if (file.endsWith('.svg')) rmSync(new URL(file, PICTURES));
}
const results = readResults(readFileSync(RESULTS, 'utf8'));
const files = filesOf(results);
for (const [path, text] of Object.entries(files)) writeFileSync(new URL(path, DOCS), text);
const measured = results.cells.filter(({ name }) => order.includes(name)).length;
console.log(`docs/benchmarks.md: ${measured} cells of ${order.length}, ${Object.keys(files).length - 1} pictures`);
