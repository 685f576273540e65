import { describe, expect, it } from 'vitest';
import { type Cell, compactResults, type NodeResults, readResults, resultsText } from '../../bench/page/compact.mjs';
import { pageOf } from '../../bench/page/page.mjs';
import { compareRatios, withFigures } from '../../bench/page/readme.mjs';
import { read } from './repository.ts';

const committed = read('docs/benchmarks/results.json');
const results = readResults(committed);

describe('docs/benchmarks-tables.md', () => {
  it('is generated from the committed results', () => {
    expect(read('docs/benchmarks-tables.md'), 'update it with: npm run bench -- page').toBe(pageOf(results));
  });

  it('is generated from results that are equal after they are written and read', () => {
    expect(resultsText(results)).toBe(committed);
  });

  it('leads with Node 24 and 26', () => {
    const page = pageOf({ 20: nodeWith(10), 22: nodeWith(10), 24: nodeWith(10), 26: nodeWith(10) });
    expect(page).toContain(
      '| CPU of a run | Node 24 | × OTLP/JSON | Node 26 | × OTLP/JSON | Node 22 | × OTLP/JSON | Node 20 | × OTLP/JSON |',
    );
    const sections = [...page.matchAll(/^## Node (\d+)$/gm)].map(([, major]) => major);
    expect(sections).toEqual(['24', '26', '22', '20']);
  });

  it('compares each driver with OTLP/JSON on the same Node, by the median of the ratios of all rounds', () => {
    const page = pageOf({ 24: nodeWith(10), 26: nodeWith(40, 0.7) });
    expect(page).toContain('| **runspan, `traceable`** | 20 µs | 2 × | 20 µs | 0.7 × |');
  });

  it('shows no values of an invalid row', () => {
    const node = nodeWith(10);
    const lost = { ...node, cells: node.cells.map(withoutOtlp) };
    expect(pageOf({ 24: lost })).toContain('| OpenTelemetry, OTLP/JSON | – | – |');
    expect(pageOf({ 24: lost })).toContain('| OpenTelemetry, OTLP/JSON | invalid: lost some |');
  });

  it('has a value for each measured goal', () => {
    const page = pageOf({ 24: nodeWith(10) });
    expect(page).toContain('| `traceable` × OTLP/JSON | ≤ 0.8 on 24, ≤ 0.75 on 26 | 2 |');
    expect(page).toContain('| Model calls of 2 s × OTLP/JSON | ≤ 1.1 | not measured |');
  });
});

describe('the throughput', () => {
  const rate = { median: 4_321, min: 4_000, max: 4_400, toTraceable: 1 };
  const figure = { median: 20 };
  const row = { name: 'traceable', runsPerSecond: rate, cpuUsPerRun: rate, receiverCpuUsPerRun: rate };
  const drivers = [
    { ...row, runs: figure, mbPerSecond: figure },
    { name: 'prepared', complaint: 'lost some' },
  ];
  const results = compactResults([measured('v24.1.0', 'ingest', { drivers })], ['ingest']);

  it('is on both pages for each Node that was measured', () => {
    expect(pageOf(results)).toContain('| **runspan, `traceable`** | 4,321 | 1 |');
    expect(withFigures(read('README.md'), results)).toContain(
      '- **Throughput** from `traceable` into the receiver: 4,321 runs per second on Node 24, not measured on Node 26',
    );
  });

  it('shows a dash for what was not measured, and the reason of an invalid row', () => {
    const page = pageOf(results);
    expect(page).toContain('| runspan, `traceable` | 20 | 4,321 (4,000–4,400) | 1 | 20 | 4,321 (4,000–4,400) |');
    expect(page).toContain('| prepared requests of `traceable` | – | – |');
    expect(page).toContain('| prepared requests of `traceable` | invalid: lost some |');
  });
});

describe('README.md', () => {
  it('has figures that are generated from the committed results', () => {
    const readme = read('README.md');
    expect(readme, 'update it with: npm run bench -- page').toBe(withFigures(readme, results));
  });

  it('shows the ratio to OTLP/JSON on Node 24 and 26, and a dash if there is none', () => {
    const readme = withFigures(read('README.md'), { 20: nodeWith(5), 26: nodeWith(40, 0.7) });
    expect(readme).toContain('| **runspan, `traceable`** | – | 0.7 × |');
    expect(readme).toContain('| **runspan, `RunSpanProcessor`** | – | – |');
    expect(readme).toContain('| LangSmith | – | – |');
  });

  it('has ratios that hold on a machine if they are within 15 % of those measured there', () => {
    const stated = ratios({ traceable: 0.8, processor: 1, langfuse: 2, langsmith: 20 });
    const here = ratios({ traceable: 0.91, processor: 1.16, langfuse: 1.69 });
    expect(compareRatios(stated, here)).toEqual([
      'within 15 % of the README: runspan, `traceable` × OTLP/JSON: README 0.8, here 0.91',
      'outside 15 % of the README: runspan, `RunSpanProcessor` × OTLP/JSON: README 1, here 1.16',
      'outside 15 % of the README: Langfuse × OTLP/JSON: README 2, here 1.69',
      'outside 15 % of the README: LangSmith × OTLP/JSON: README 20, here –',
    ]);
    expect(compareRatios(stated, ratios({ langfuse: 1.71 }))[2]).toMatch(/^within /);
  });

  it('keeps the text around its figures', () => {
    const [before, after] = [read('README.md'), withFigures(read('README.md'), {})].map((text) => [
      text.slice(0, text.indexOf('<!-- Generated')),
      text.slice(text.indexOf('<!-- End')),
    ]);
    expect(after).toEqual(before);
    expect(() => withFigures('# No figures', {})).toThrow('Expected <!-- Generated');
  });
});

describe('the compact results', () => {
  it('are keyed by the major version of Node, with cells in the given order', () => {
    const cells = [measured('v24.1.0', 'tiny'), measured('v26.1.0', 'agent'), measured('v24.1.0', 'agent')];
    const compact = compactResults(cells, ['agent', 'tiny']);
    expect(Object.keys(compact)).toEqual(['24', '26']);
    expect(compact['24']?.cells.map(({ name }) => name)).toEqual(['agent', 'tiny']);
  });

  it('leave out cells that the benchmark no longer has', () => {
    expect(compactResults([measured('v24.1.0', 'gone')], ['agent'])).toEqual({});
  });

  it('keep committed cells that were not measured again', () => {
    const before = compactResults([measured('v24.1.0', 'tiny'), measured('v24.1.0', 'agent')], ['agent', 'tiny']);
    const versions = { runspan: '1.1.0' };
    const again = measured('v24.2.0', 'agent', { startedAt: '2026-11-23T10:00:00.000Z', versions });
    const cells = compactResults([again], ['agent', 'tiny'], before)['24']?.cells ?? [];
    expect(cells.map(({ name, measured: { on, node, runspan } }) => [name, on, node, runspan])).toEqual([
      ['agent', '2026-11-23', 'v24.2.0', '1.1.0'],
      ['tiny', '2026-11-20', 'v24.1.0', '1.0.0'],
    ]);
  });
});

function measured(node: string, name: string, more: object = {}): object {
  return {
    name,
    title: name,
    startedAt: '2026-11-20T10:00:00.000Z',
    machine: { cpu: 'a', cores: 2, platform: 'linux-x64', node },
    versions: { runspan: '1.0.0' },
    drivers: [{ name: 'limit', complaint: 'lost some' }],
    ...more,
  };
}

function ratios(toOtlp: Readonly<Record<string, number>>): { cells: Pick<Cell, 'name' | 'drivers'>[] } {
  const drivers = Object.entries(toOtlp).map(([name, ratio]) => ({ name, cpuUsPerRun: { toOtlp: ratio } }));
  return { cells: [{ name: 'agent', drivers }] };
}

/** Results with runspan at 20 µs and OTLP/JSON at `otlpUs`. `toOtlp` is the median of the ratios of all rounds. */
function nodeWith(otlpUs: number, toOtlp = 20 / otlpUs): NodeResults {
  const row = (name: string, us: number): object => {
    const figures = ['cpuUsPerRun', 'turnP50Us', 'turnP99Us', 'loopDelayP99Ms', 'loopDelayMaxMs', 'peakRssMiB'];
    const figure = { median: us, min: us, max: us, toOtlp: name === 'otlp-json' ? 1 : toOtlp };
    return { name, ...Object.fromEntries([...figures, 'runs', 'bytesPerRun'].map((key) => [key, figure])) };
  };
  const drivers = [row('traceable', 20), row('otlp-json', otlpUs)];
  const [node] = Object.values(compactResults([measured('v24.1.0', 'agent', { drivers })], ['agent']));
  if (node === undefined) throw new Error('Expected results of one Node');
  return node;
}

function withoutOtlp(cell: Cell): Cell {
  const drivers = cell.drivers?.map((row) =>
    row.name === 'otlp-json' ? { name: row.name, complaint: 'lost some' } : row,
  );
  return drivers === undefined ? cell : { ...cell, drivers };
}
