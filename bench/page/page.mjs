/** `docs/benchmarks.md` and its pictures, made of compact results alone. */
import { chartsOf } from './charts.mjs';
import { claimsOf } from './claims.mjs';
import { CLAIMS, HOW_TO_READ, INTRODUCTION, METHOD } from './prose.mjs';
import { cellsOf } from './results.mjs';
import { cellTable, sizeTable } from './table.mjs';

const GROUPS = [
  { group: 'workloads', title: 'Kinds of work', charts: ['cpu', 'turn', 'loop-delay', 'memory', 'workloads'] },
  { group: 'open-loop', title: 'At fixed rates', charts: ['open-loop'] },
  { group: 'service', title: 'Services that are slow, away, or take gzip', charts: ['service'] },
  { group: 'growth', title: 'Growth', charts: ['growth', 'in-flight'] },
  { group: 'size', title: 'Size and start', charts: ['size', 'start'] },
  { group: 'other-node', title: 'On another Node', charts: [] },
];

/** Every generated file by its path within `docs/`. */
export function filesOf(results) {
  const charts = chartsOf(results);
  const pictures = Object.entries(charts).map(([name, svg]) => [`benchmarks/${name}`, svg]);
  return Object.fromEntries([['benchmarks.md', pageOf(results, charts)], ...pictures]);
}

function pageOf(results, charts) {
  const groups = GROUPS.flatMap(({ group, title, charts: names }) => {
    const cells = cellsOf(results, group);
    if (cells.length === 0) return [];
    const pictures = names.map((name) => `${name}.svg`).filter((name) => charts[name] !== undefined);
    return [`## ${title}`, ...pictures.map((name) => pictureOf(name, charts[name])), ...cells.flatMap(cellParts)];
  });
  return `${[...headOf(results), METHOD, HOW_TO_READ, ...groups].join('\n\n')}\n`;
}

/** A try says what the page looks like; it is no ground to claim anything. */
function headOf(results) {
  const { share } = results;
  const inShort =
    share < 1
      ? [`> These are figures of a try with ${100 * share} % of the turns. Nothing follows from them.`]
      : [
          '## In short',
          CLAIMS,
          claimsOf(results)
            .map((claim) => `- ${claim}`)
            .join('\n'),
        ];
  return ['# What does tracing cost?', INTRODUCTION, ...inShort, '## Machine and versions', machineList(results)];
}

function machineList({ measuredOn, machine: { cpu, cores, platform, node, v8 }, versions }) {
  const packages = Object.entries(versions).map(([name, version]) => `\`${name}\` ${version}`);
  return [
    `- ${cpu}, ${cores} cores, ${platform}; ${measuredOn}`,
    `- Node ${node}, V8 ${v8}`,
    `- ${packages.join(', ')}`,
  ].join('\n');
}

function cellParts(cell) {
  const table = cell.figures === undefined ? cellTable(cell) : sizeTable(cell);
  const [name] = cell.name.split('-on-');
  const rounds = cell.rounds > 1 ? ` Medians of ${cell.rounds} rounds.` : '';
  return [`### ${cell.title}`, `\`npm run bench:full -- --only ${name}\`.${rounds}`, table];
}

function pictureOf(name, svg) {
  const title = /<title>(.*)<\/title>/.exec(svg)?.[1];
  return `![${title}](benchmarks/${name})`;
}
