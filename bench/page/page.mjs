/** Generates `docs/benchmarks-tables.md` from the committed results. */
import { figureOf, GOALS } from './goals.mjs';
import { shown } from './numbers.mjs';
import { HOW_TO_READ, INTRODUCTION, METHOD, THROUGHPUT } from './prose.mjs';

/** Node versions at the top of the page. Others follow, newest first. */
export const LEADING = ['24', '26'];

const LABELS = {
  untraced: 'untraced',
  limit: 'by hand',
  traceable: 'runspan, `traceable`',
  sampled: 'runspan, `sampleRate`',
  keep: 'runspan, `keep`',
  spill: 'runspan, `spill`',
  'write-ahead': 'runspan, `write-ahead`',
  processor: 'runspan, `RunSpanProcessor`',
  'traceable-otlp': 'runspan, `traceable`, OTLP',
  'otlp-json': 'OpenTelemetry, OTLP/JSON',
  'otlp-protobuf': 'OpenTelemetry, OTLP/protobuf',
  langfuse: 'Langfuse',
  braintrust: 'Braintrust',
  langsmith: 'LangSmith',
  simple: 'runspan, `traceable`, simple ingestion',
  prepared: 'prepared requests of `traceable`',
};

const COLUMNS = [
  ['runs', ({ runs }) => shown(runs.median)],
  ['CPU µs/run', ({ cpuUsPerRun }) => withSpread(cpuUsPerRun)],
  ['× by hand', ({ cpuUsPerRun: { toLimit } }) => shown(toLimit)],
  ['× OTLP/JSON', ({ cpuUsPerRun: { toOtlp } }) => shown(toOtlp)],
  ['call p50 µs', ({ turnP50Us }) => shown(turnP50Us.median)],
  ['p99', ({ turnP99Us }) => shown(turnP99Us.median)],
  ['loop p99 ms', ({ loopDelayP99Ms }) => shown(loopDelayP99Ms.median)],
  ['longest', ({ loopDelayMaxMs }) => shown(loopDelayMaxMs?.median)],
  ['peak MiB', ({ peakRssMiB }) => shown(peakRssMiB.median)],
  ['bytes/run', ({ bytesPerRun }) => shown(bytesPerRun.median)],
];

const ADDED_TIMES = [
  ['bare ns', ({ bareNs }) => shown(bareNs)],
  ['added ns', ({ extraNs }) => shown(extraNs)],
];

const CELL_COLUMNS = {
  ingest: [
    ['runs', ({ runs }) => shown(runs.median)],
    ['runs/s', ({ runsPerSecond }) => withSpread(runsPerSecond)],
    ['× `traceable`', ({ runsPerSecond: { toTraceable } }) => shown(toTraceable)],
    ['MB/s', ({ mbPerSecond }) => shown(mbPerSecond.median)],
    ['CPU µs/run', ({ cpuUsPerRun }) => withSpread(cpuUsPerRun)],
    ['of the receiver', ({ receiverCpuUsPerRun }) => withSpread(receiverCpuUsPerRun)],
    ['runs/s until indexed', ({ indexedRunsPerSecond }) => shown(indexedRunsPerSecond?.median)],
    ['CPU of the receiver until indexed', ({ indexedCpuUsPerRun }) => shown(indexedCpuUsPerRun?.median)],
  ],
  serialize: [
    ['characters', ({ characters }) => shown(characters)],
    ['`JSON.stringify` µs', ({ nativeUs }) => shown(nativeUs)],
    ['runspan µs', ({ ownUs }) => shown(ownUs)],
    ['ratio', ({ toNative }) => shown(toNative)],
  ],
  off: ADDED_TIMES,
  fetch: ADDED_TIMES,
  register: [
    ['import of `runspan` ms', ({ importMs }) => shown(importMs)],
    ['added ms', ({ registerMs }) => shown(registerMs)],
  ],
  history: [
    ['texts MB', ({ textBytes }) => shown(textBytes / 1e6)],
    ['held MB', ({ heldBytes }) => shown(heldBytes / 1e6)],
    ['in memory MB', ({ usedBytes }) => shown(usedBytes / 1e6)],
    ['resident MB', ({ residentBytes }) => shown(residentBytes / 1e6)],
    ['sent with gzip MB', ({ gzipBytes }) => shown(gzipBytes / 1e6)],
    ['sent with zstd MB', ({ zstdBytes }) => shown(zstdBytes / 1e6)],
  ],
  'first-send': [['longest ms', ({ longestMs }) => shown(longestMs)]],
  size: [
    ['import ms', ({ importMs }) => shown(importMs)],
    ['installed MB', ({ installedMB }) => shown(installedMB)],
    ['packages', ({ packages }) => shown(packages)],
  ],
};

export function pageOf(results) {
  const nodes = Object.entries(results)
    .map(([major, node]) => ({ major, ...node }))
    .sort((one, other) => rankOf(one) - rankOf(other));
  return `${[
    '# Benchmark tables',
    INTRODUCTION,
    costTable(nodes),
    '## Goals',
    goalsTable(nodes),
    THROUGHPUT,
    throughputTable(nodes),
    METHOD,
    HOW_TO_READ,
    ...nodes.flatMap(nodeParts),
  ].join('\n\n')}\n`;
}

function rankOf({ major }) {
  const at = LEADING.indexOf(major);
  return at < 0 ? 1_000 - Number(major) : at;
}

/** Each driver's cost per run, with its ratio to OTLP/JSON. */
function costTable(nodes) {
  const shownNodes = nodes.filter((node) => figureOf(node, 'agent', 'traceable', 'cpuUsPerRun') !== undefined);
  const names = [...new Set(shownNodes.flatMap((node) => driversOf(node, 'agent')))].filter(
    (name) => name !== 'untraced',
  );
  const head = ['CPU of a run', ...shownNodes.flatMap(({ major }) => [`Node ${major}`, '× OTLP/JSON'])];
  const rows = names.map((name) => [costLabel(name), ...shownNodes.flatMap((node) => costCells(node, name))]);
  return markdownTable(head, rows);
}

function costCells(node, name) {
  const us = figureOf(node, 'agent', name, 'cpuUsPerRun');
  return [us === undefined ? '–' : `${shown(us)} µs`, costRatio(node, name)];
}

export function costLabel(name) {
  return name === 'traceable' || name === 'processor' ? `**${labelOf(name)}**` : labelOf(name);
}

export function labelOf(name) {
  return LABELS[name] ?? name;
}

/** The median of the ratios of all rounds. A quotient of two medians would compare different rounds. */
export function costRatio(node, name) {
  const ratio = figureOf(node, 'agent', name, 'cpuUsPerRun', 'toOtlp');
  return ratio === undefined ? '–' : `${shown(ratio)} ×`;
}

/** Each driver's runs per second into the receiver, with the ratio to `traceable`. */
function throughputTable(nodes) {
  const names = [...new Set(nodes.flatMap((node) => driversOf(node, 'ingest')))];
  if (names.length === 0) return 'Not measured.';
  const shownNodes = nodes.filter((node) => driversOf(node, 'ingest').length > 0);
  const head = ['runs per second', ...shownNodes.flatMap(({ major }) => [`Node ${major}`, '× `traceable`'])];
  const cellsOf = (node, name) =>
    ['median', 'toTraceable'].map((kind) => shown(figureOf(node, 'ingest', name, 'runsPerSecond', kind)));
  const rows = names.map((name) => [costLabel(name), ...shownNodes.flatMap((node) => cellsOf(node, name))]);
  return markdownTable(head, rows);
}

function driversOf(node, cell) {
  return node.cells.find(({ name }) => name === cell)?.drivers.map(({ name }) => name) ?? [];
}

function goalsTable(nodes) {
  const head = ['', 'goal on 24 and 26', ...nodes.map(({ major }) => `Node ${major}`)];
  return markdownTable(
    head,
    GOALS.map(({ title, goal, of }) => [title, goal, ...nodes.map((node) => of(node) ?? 'not measured')]),
  );
}

function nodeParts({ major, versions, cells }) {
  const packages = Object.entries(versions).map(([name, version]) => `\`${name}\` ${version}`);
  return [
    `## Node ${major}`,
    `Package versions: ${packages.join(', ')}.`,
    ...cells.flatMap((cell) => [`### ${cell.title}, Node ${major}`, commandOf(cell, major), cellTable(cell)]),
  ];
}

function commandOf({ name, rounds, measured: { on, runspan, node, cores, cpu, platform } }, major) {
  const command = `\`npm run bench -- full --node ${major} --only ${name}\``;
  const note = rounds > 1 ? ` (${rounds} rounds)` : '';
  return `Measured on ${on} with runspan ${runspan} and Node ${node} on ${cores} cores (${cpu}, ${platform}). To repeat this benchmark${note}, run ${command}.`;
}

function cellTable({ name: cell, drivers, figures }) {
  const columns = CELL_COLUMNS[cell] ?? COLUMNS;
  const rows = (drivers ?? figures).map(({ name, complaint, ...row }) => {
    if (complaint !== undefined) return [labelOf(name), `invalid: ${complaint}`, ...columns.slice(1).map(() => '')];
    return [labelOf(name), ...columns.map(([, textOf]) => textOf(row))];
  });
  return markdownTable(['', ...columns.map(([title]) => title)], rows);
}

/** Aligns the first column to the left, and all others to the right. */
export function markdownTable(head, rows) {
  const rule = head.map((_, at) => (at === 0 ? '---' : '--:'));
  return [head, rule, ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
}

function withSpread({ median, min, max }) {
  return min === undefined ? shown(median) : `${shown(median)} (${shown(min)}–${shown(max)})`;
}
