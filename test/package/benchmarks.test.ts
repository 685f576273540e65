import { describe, expect, it } from 'vitest';
import { type Cell, compactResults, readResults, resultsText } from '../../bench/page/compact.mjs';
import { filesOf } from '../../bench/page/page.mjs';
import { filesUnder, read } from './repository.ts';

const committed = read('docs/benchmarks/results.json');
const results = readResults(committed);
const files = filesOf(results);
const page = files['benchmarks.md'] ?? '';
/** The same as if all turns had been done: of a try nothing is claimed. */
const whole = { ...results, share: 1 };

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
    const claiming = filesOf(whole)['benchmarks.md'] ?? '';
    const links = [...claiming.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor);
    expect(links.length).toBeGreaterThan(5);
    for (const anchor of links) expect(claiming).toContain(`<a id="${anchor}"></a>`);
  });

  it('says of a row that does not count why, and claims nothing of it', () => {
    const invalid = filesOf({ ...whole, cells: whole.cells.map(withoutTraceable) })['benchmarks.md'];
    expect(invalid).toContain('<a id="agent-traceable"></a>runspan traceable | invalid: lost some |');
    expect(invalid).not.toContain('](#agent-traceable)');
  });

  it('claims nothing of a try', () => {
    expect(filesOf({ ...results, share: 0.1 })['benchmarks.md']).not.toContain('## In short');
  });

  it('is made of results that survive being written', () => {
    expect(resultsText(results)).toBe(committed);
  });
});

describe('results', () => {
  const measured = (node: string, name: string, more: object = {}): object => ({
    name,
    group: 'workloads',
    title: name,
    startedAt: '2026-11-20T10:00:00.000Z',
    share: 1,
    machine: { cpu: 'a', cores: 2, platform: 'linux-x64', node, v8: '1' },
    versions: { runspan: '1.0.0' },
    drivers: [{ name: 'limit', complaint: 'lost some' }],
    ...more,
  });

  it('of the Node that most cells were measured on make the page, and others are told of', () => {
    const cells = [measured('v24.1.0', 'agent'), measured('v20.1.0', 'tiny'), measured('v20.1.0', 'agent')];
    const { machine, cells: compact } = compactResults(cells, ['agent', 'tiny']);
    expect(machine.node).toBe('v20.1.0');
    expect(compact.map(({ name }) => name)).toEqual(['agent', 'tiny', 'agent-on-v24.1.0']);
  });

  it.each([
    ['v20.1.0', 'tiny'],
    ['v24.1.0', 'agent'],
  ])('of several machines or versions are refused, on %s too', (node, name) => {
    const other = measured(node, name, { versions: { runspan: '1.0.1' } });
    expect(() => compactResults([measured('v20.1.0', 'agent'), other], ['agent', 'tiny'])).toThrow(
      `${name} (Node ${node}) and agent (Node v20.1.0) were measured on different machines or versions`,
    );
  });

  it('of a try on another Node make the page one of a try', () => {
    const cells = [measured('v20.1.0', 'agent'), measured('v24.1.0', 'agent', { share: 0.1 })];
    expect(compactResults(cells, ['agent']).share).toBe(0.1);
  });

  it('of none are told', () => {
    expect(() => compactResults([], ['agent'])).toThrow('npm run bench:full');
  });
});

function withoutTraceable(cell: Cell): Cell {
  if (cell.drivers === undefined) return cell;
  const drivers = cell.drivers.map((row) =>
    row.name === 'traceable' ? { name: row.name, complaint: 'lost some' } : row,
  );
  return { ...cell, drivers };
}
