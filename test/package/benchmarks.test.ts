import { describe, expect, it } from 'vitest';
import { type Cell, readResults, resultsText } from '../../bench/page/compact.mjs';
import { filesOf } from '../../bench/page/page.mjs';
import { filesUnder, read } from './repository.ts';

const committed = read('docs/benchmarks/results.json');
const results = readResults(committed);
const files = filesOf(results);
const page = files['benchmarks.md'] ?? '';

describe('docs/benchmarks.md', () => {
  it.each(Object.keys(files))('has %s as the committed results make it; npm run bench:page updates it', (path) => {
    expect(read(`docs/${path}`), 'update it with: npm run bench:page').toBe(files[path]);
  });

  it('has no pictures of other results', () => {
    const pictures = filesUnder('docs/benchmarks', '.svg').map((path) => `benchmarks/${path}`);
    expect(pictures.sort()).toEqual(
      Object.keys(files)
        .filter((path) => path.endsWith('.svg'))
        .sort(),
    );
  });

  it('shows every picture', () => {
    const shown = [...page.matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, path]) => path);
    expect(shown.sort()).toEqual(
      Object.keys(files)
        .filter((path) => path !== 'benchmarks.md')
        .sort(),
    );
  });

  it('links every claim to a row that is there', () => {
    const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor);
    expect(links.length).toBeGreaterThan(5);
    for (const anchor of links) expect(page).toContain(`<a id="${anchor}"></a>`);
  });

  it('says of a row that does not count why, and claims nothing of it', () => {
    const invalid = filesOf({ ...results, cells: results.cells.map(withoutTraceable) })['benchmarks.md'];
    expect(invalid).toContain('<a id="agent-traceable"></a>runspan traceable | invalid: lost some |');
    expect(invalid).not.toContain('](#agent-traceable)');
  });

  it('is made of results that survive being written', () => {
    expect(resultsText(results)).toBe(committed);
  });
});

function withoutTraceable(cell: Cell): Cell {
  if (cell.drivers === undefined) return cell;
  const drivers = cell.drivers.map((row) =>
    row.name === 'traceable' ? { name: row.name, complaint: 'lost some' } : row,
  );
  return { ...cell, drivers };
}
