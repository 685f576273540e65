#!/usr/bin/env node
/**
 * `npm run bench -- page`: adds the measured cells to `docs/benchmarks/results.json`, and generates `docs/benchmarks-tables.md`
 * and the figures in `README.md` from it. Cells that were not measured stay. Cells measured with `--share` are ignored.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { CELLS } from './cells.mjs';
import { compactResults, readResults, resultsText } from './page/compact.mjs';
import { pageOf } from './page/page.mjs';
import { withFigures } from './page/readme.mjs';
import { readCells } from './results.mjs';

const DOCS = new URL('../docs/', import.meta.url);
const RESULTS = new URL('benchmarks/results.json', DOCS);
const README = new URL('../README.md', DOCS);
const order = CELLS.map(({ name }) => name);

const measured = readCells().filter(({ share }) => share === 1);
const results = compactResults(measured, order, readResults(readFileSync(RESULTS, 'utf8')));
writeFileSync(RESULTS, resultsText(results));
writeFileSync(new URL('benchmarks-tables.md', DOCS), pageOf(results));
writeFileSync(README, withFigures(readFileSync(README, 'utf8'), results));
for (const [major, { cells }] of Object.entries(results)) {
  const missing = order.filter((name) => !cells.some((cell) => cell.name === name));
  const note = missing.length === 0 ? '' : `; not measured: ${missing.join(' ')}`;
  console.log(`Node ${major}: ${cells.length} cells${note}`);
}
