/** The rows in the goals table. A row returns undefined if its cell was not measured. */
import { shown } from './numbers.mjs';

const PEERS = ['otlp-json', 'otlp-protobuf', 'langfuse', 'braintrust', 'langsmith'];
const WORK = ['tiny', 'fan-out', 'nested', 'conversation', 'stream', 'errors', 'mixed'];

export const GOALS = [
  {
    title: 'CPU per run with `traceable`, × by hand',
    goal: '≤ 1.1',
    of: (node) => ratio(node, 'agent', 'traceable', 'toLimit'),
  },
  { title: '`traceable` × OTLP/JSON', goal: '≤ 0.8', of: (node) => ratio(node, 'agent', 'traceable', 'toOtlp') },
  {
    title: '`RunSpanProcessor` × OTLP/JSON',
    goal: '≤ 0.95 on 24, ≤ 1.1 on 26',
    of: (node) => ratio(node, 'agent', 'processor', 'toOtlp'),
  },
  {
    title: 'Time to encode a payload, × `JSON.stringify`: chat, many small values, deep, text beyond Latin-1',
    goal: '≤ 1.25 each',
    of: serialization,
  },
  { title: 'Duration of a call, × by hand: p50, p99', goal: '≤ 1, ≤ 1', of: callTimes },
  { title: 'Event-loop delay p99, × by hand (lowest peer)', goal: '≤ 1.5, below every peer', of: loopDelay },
  {
    title: 'Peak memory above that of the untraced program, MiB (OTLP/JSON)',
    goal: 'below OTLP/JSON',
    of: memory,
  },
  { title: 'CPU per run × OTLP/JSON, worst of the other workloads', goal: '≤ 1.0', of: dearestWork },
  {
    title: 'Model calls of 2 s × OTLP/JSON',
    goal: '≤ 1.1',
    of: (node) => ratio(node, 'model-call', 'traceable', 'toOtlp'),
  },
  { title: 'Longest event-loop delay with a 5 MB input, ms', goal: '≤ 15', of: longestStall },
  { title: 'CPU per run with 1,000,000 runs, × with 10,000 runs', goal: '≤ 1.1', of: growth },
  { title: 'Time added to a call with tracing off, ns', goal: '≤ 50', of: (node) => addedTimes(node, 'off') },
  {
    title: 'Time that the recorder adds to a request that is not a model call, ns',
    goal: '≤ 2000',
    of: (node) => addedTimes(node, 'fetch'),
  },
  { title: 'Time to import the package, ms', goal: '≤ 15', of: (node) => sized(node, 'importMs') },
  {
    title: 'Time that `runspan/register` adds to the import, ms',
    goal: '≤ 15',
    of: (node) => textOf(sectionOf(node, 'register')?.[0].registerMs),
  },
  { title: 'Installed size, MB', goal: '≤ 6', of: (node) => sized(node, 'installedMB') },
  { title: 'Installed packages', goal: '≤ 10', of: (node) => sized(node, 'packages') },
];

/** Returns one driver's figure in a cell. Returns undefined if there is none that counts. */
export function figureOf(node, cell, driver, figure, kind = 'median') {
  return node.cells.find(({ name }) => name === cell)?.drivers.find(({ name }) => name === driver)?.[figure]?.[kind];
}

function ratio(node, cell, driver, kind) {
  return textOf(figureOf(node, cell, driver, 'cpuUsPerRun', kind));
}

function serialization(node) {
  return sectionOf(node, 'serialize')
    ?.map(({ toNative }) => shown(toNative))
    .join(', ');
}

function callTimes(node) {
  const ratios = ['turnP50Us', 'turnP99Us'].map((figure) => figureOf(node, 'agent', 'traceable', figure, 'toLimit'));
  return ratios.includes(undefined) ? undefined : ratios.map(shown).join(', ');
}

function loopDelay(node) {
  const ratioOf = (driver) => figureOf(node, 'agent', driver, 'loopDelayP99Ms', 'toLimit');
  const peers = PEERS.map(ratioOf).filter((value) => value !== undefined);
  const own = ratioOf('traceable');
  return own === undefined ? undefined : `${shown(own)} (${peers.length === 0 ? '–' : shown(Math.min(...peers))})`;
}

function memory(node) {
  const [own, otlp] = ['traceable', 'otlp-json'].map((driver) =>
    figureOf(node, 'agent', driver, 'peakRssMiB', 'overUntraced'),
  );
  return own === undefined ? undefined : `${shown(own)} (${shown(otlp)})`;
}

function dearestWork(node) {
  const ratios = WORK.map((cell) => [cell, figureOf(node, cell, 'traceable', 'cpuUsPerRun', 'toOtlp')]);
  const [dearest] = ratios.filter(([, value]) => value !== undefined).sort(([, one], [, other]) => other - one);
  return dearest && `${shown(dearest[1])} (${dearest[0]})`;
}

function longestStall(node) {
  return textOf(figureOf(node, 'large', 'traceable', 'loopDelayMaxMs'));
}

function growth(node) {
  const [few, many] = [10_000, 1_000_000].map((runs) => figureOf(node, `runs-${runs}`, 'traceable', 'cpuUsPerRun'));
  return textOf(many / few);
}

function addedTimes(node, cell) {
  return sectionOf(node, cell)
    ?.map(({ name, extraNs }) => `${shown(extraNs)} (${name})`)
    .join(', ');
}

function sized(node, figure) {
  return textOf(sectionOf(node, 'size')?.find(({ name }) => name === 'runspan')[figure]);
}

function sectionOf(node, cell) {
  return node.cells.find(({ name }) => name === cell)?.figures;
}

function textOf(number) {
  return Number.isFinite(number) ? shown(number) : undefined;
}
