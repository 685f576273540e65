/** The rows in the goals table. A row returns undefined if its cell was not measured. */
import { shown } from './numbers.mjs';

const PEERS = ['otlp-json', 'otlp-protobuf', 'langfuse', 'braintrust', 'langsmith'];
const KINDS = ['tiny', 'nested', 'fan-out'];
const WORK = [...KINDS, 'conversation', 'stream', 'errors', 'mixed'];

export const GOALS = [
  {
    title: 'CPU per run with `traceable`, × by hand',
    goal: '≤ 1.08 on 24, ≤ 1.15 on 26',
    of: (node) => ratio(node, 'agent', 'traceable', 'toLimit'),
  },
  {
    title: '`traceable` × OTLP/JSON',
    goal: '≤ 0.8 on 24, ≤ 0.75 on 26',
    of: (node) => ratio(node, 'agent', 'traceable', 'toOtlp'),
  },
  {
    title: '`RunSpanProcessor` × OTLP/JSON',
    goal: '≤ 1.1 on 24, ≤ 1.25 on 26',
    of: (node) => ratio(node, 'agent', 'processor', 'toOtlp'),
  },
  {
    title: 'Time to encode a payload, × `JSON.stringify`: chat, many small values, deep, text beyond Latin-1',
    goal: '≤ 1.25 each',
    of: serialization,
  },
  {
    title: 'Median duration of a turn of three runs, µs: `RunSpanProcessor` (`traceable`)',
    goal: '≤ 40',
    of: turnTimes,
  },
  { title: 'Duration of a call, × by hand: p50, p99', goal: '≤ 1.1, ≤ 1', of: callTimes },
  { title: 'Event-loop delay p99, × by hand (lowest peer)', goal: '≤ 1.5, below every peer', of: loopDelay },
  {
    title: 'Peak memory, MiB: `traceable`; `RunSpanProcessor`, × OTLP/JSON',
    goal: '≤ 150; ≤ 1',
    of: memory,
  },
  {
    title: 'Tiny, nested and fan-out runs: `traceable` × OTLP/JSON (`RunSpanProcessor`)',
    goal: '≤ 0.9, 1.1, 0.6 (1.5, 2, 1.2)',
    of: kindsOfWork,
  },
  { title: 'CPU per run × OTLP/JSON, worst of the other workloads', goal: '≤ 1.0', of: dearestWork },
  {
    title: 'Model calls of 2 s × OTLP/JSON',
    goal: '≤ 1.1',
    of: (node) => ratio(node, 'model-call', 'traceable', 'toOtlp'),
  },
  {
    title: 'Conversation of 200 turns, MB: held while there is no service; sent with gzip, with zstd',
    goal: '≤ 12; ≤ 30',
    of: conversation,
  },
  {
    title: 'Longest event-loop delay at the first send, ms (untraced)',
    goal: '≤ 15',
    of: firstSend,
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

function turnTimes(node) {
  const [ofProcessor, ofTraceable] = ['processor', 'traceable'].map((driver) =>
    figureOf(node, 'agent', driver, 'turnP50Us'),
  );
  return ofProcessor === undefined ? undefined : `${shown(ofProcessor)} (${shown(ofTraceable)})`;
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
  const ofTraceable = figureOf(node, 'agent', 'traceable', 'peakRssMiB');
  const ofProcessor = figureOf(node, 'agent', 'processor', 'peakRssMiB', 'toOtlp');
  return ofTraceable === undefined ? undefined : `${shown(ofTraceable)}; ${shown(ofProcessor)}`;
}

function kindsOfWork(node) {
  const ratiosOf = (driver) => KINDS.map((cell) => figureOf(node, cell, driver, 'cpuUsPerRun', 'toOtlp'));
  const [own, ofProcessor] = ['traceable', 'processor'].map(ratiosOf);
  if (own.every((value) => value === undefined)) return undefined;
  return `${own.map(shown).join(', ')} (${ofProcessor.map(shown).join(', ')})`;
}

function dearestWork(node) {
  const ratios = WORK.map((cell) => [cell, figureOf(node, cell, 'traceable', 'cpuUsPerRun', 'toOtlp')]);
  const [dearest] = ratios.filter(([, value]) => value !== undefined).sort(([, one], [, other]) => other - one);
  return dearest && `${shown(dearest[1])} (${dearest[0]})`;
}

function conversation(node) {
  const [own] = sectionOf(node, 'history') ?? [];
  return own && `${shown(own.heldBytes / 1e6)}; ${shown(own.gzipBytes / 1e6)}, ${shown(own.zstdBytes / 1e6)}`;
}

function firstSend(node) {
  const delays = ['traceable', 'untraced'].map(
    (program) => sectionOf(node, 'first-send')?.find(({ name }) => name === program)?.longestMs,
  );
  return delays.includes(undefined) ? undefined : `${shown(delays[0])} (${shown(delays[1])})`;
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
