/**
 * The benchmark's tables. A cell measures some `drivers` with one kind of work in `rounds` rounds. `jobOf(driver)`
 * returns a driver's job for `runDriver`, or for the cell's own `measure(driver, job)`. A cell without drivers has a
 * `section({ sink, beside })` that measures by itself. `npm run bench` runs the cells with `isQuick`, and `npm run bench -- full` all cells.
 */
import { DRIVER_NAMES, DURABLE, isUsual, turnsOf, warmupTurnsOf } from './drivers.mjs';
import { runIntoReceiver } from './ingest.mjs';
import { shown } from './page/numbers.mjs';
import { INGEST_COLUMNS } from './report.mjs';
import { firstSend } from './sections/first-send.mjs';
import { history } from './sections/history.mjs';
import { fetch, off } from './sections/off.mjs';
import { register } from './sections/register.mjs';
import { serialize } from './sections/serialize.mjs';
import { size } from './sections/size.mjs';

/** `traceable`, of which a tenth of the traces is sent. */
const SAMPLING = ['sampled', 'keep'];
const ALL = DRIVER_NAMES.filter((name) => isUsual(name) && ![...DURABLE, ...SAMPLING].includes(name));
const FAST = ALL.filter((name) => name !== 'braintrust' && name !== 'langsmith');
/** The first runs are slow until the compiler has optimized their code. */
const WARMUP_TURNS = 5_000;

const MODEL_CALLS_PER_SECOND = 3_000;
/** At the full rate, their own cost would keep the process busy. */
const SLOW_MODEL_CALLS_PER_SECOND = { braintrust: 600, langsmith: 300 };
const MODEL_CALL_SECONDS = 5;

const DOWN_RUNS_PER_SECOND = 5_000;
const DOWN_SECONDS = 6;

export const CELLS = [
  closed(
    'agent',
    '3-run turns of 8 KB',
    { turns: 20_000, warmupTurns: WARMUP_TURNS },
    { drivers: DRIVER_NAMES.filter((name) => name === 'keep' || ALL.includes(name)), rounds: 5, isQuick: true },
  ),
  { name: 'serialize', title: 'A payload as JSON', section: serialize, isQuick: true },
  { name: 'off', title: 'Tracing turned off', section: off, isQuick: true },
  { name: 'fetch', title: 'Requests that are not model calls', section: fetch, isQuick: true },
  { name: 'register', title: 'Start with `runspan/register`', section: register, isQuick: true },
  {
    ...closed(
      'ingest',
      'Into the receiver',
      { turns: 7_000, warmupTurns: 1_000, hasRoom: true, watchesLoop: false },
      { drivers: ['traceable', 'processor', 'simple', 'prepared', 'langsmith'] },
    ),
    measure: runIntoReceiver,
    columns: [INGEST_COLUMNS],
  },
  {
    name: 'model-call',
    title: `Model calls of 2 s, ${shown(MODEL_CALLS_PER_SECOND)} a second`,
    drivers: ALL,
    rounds: 3,
    jobOf: modelCallJob,
  },
  closed('tiny', 'Tiny runs of 200 B', { workload: 'tiny', turns: 12_000 }),
  closed('fan-out', '1,000 children of one run', { workload: 'fan-out', turns: 40 }),
  closed('nested', '100 runs, each within the one before', { workload: 'nested', turns: 300 }),
  closed('conversation', 'Conversations that grow to 200 messages', { workload: 'conversation', turns: 40 }),
  closed('stream', 'Answers in 5,000 chunks', { workload: 'stream', turns: 200 }),
  closed('errors', 'Errors', { workload: 'errors', turns: 12_000 }),
  closed('mixed', 'All kinds, mixed', { workload: 'mixed', turns: 3_000 }),
  {
    name: 'large',
    title: 'One input of 5 MB, twice a second',
    drivers: FAST,
    rounds: 3,
    jobOf: () => ({ plan: { workload: 'large', turns: 12, warmupTurns: 10, runsPerSecond: 2 } }),
  },
  growth(10_000, 5),
  growth(1_000_000, 2),
  {
    name: 'down',
    title: `No service for ${DOWN_SECONDS} s, ${shown(DOWN_RUNS_PER_SECOND)} runs a second`,
    drivers: [...FAST, ...DURABLE].filter((name) => name !== 'limit'),
    rounds: 3,
    jobOf: downJob,
  },
  closed(
    'gzip',
    'Bodies compressed with gzip',
    { turns: 6_000, encoding: 'gzip' },
    { drivers: [...FAST.filter((name) => name !== 'langfuse'), 'langsmith'] },
  ),
  closed(
    'zstd',
    'Bodies compressed with zstd',
    { turns: 6_000, encoding: 'zstd' },
    // OpenTelemetry's exporter has no zstd.
    { drivers: ['untraced', 'limit', 'traceable', 'processor', 'langsmith'] },
  ),
  closed('durability', 'Levels of durability', { turns: 6_000 }, { drivers: ['limit', 'traceable', ...DURABLE] }),
  closed(
    'sampling',
    'A tenth of the traces',
    { turns: 20_000, warmupTurns: WARMUP_TURNS },
    { drivers: ['untraced', 'limit', 'traceable', ...SAMPLING], rounds: 5 },
  ),
  { name: 'history', title: 'A conversation that sends its history', section: history },
  { name: 'first-send', title: 'The first send', section: firstSend },
  { name: 'size', title: 'Size and start', section: size },
];

/** Turns that follow each other as fast as possible. */
function closed(name, title, plan, { drivers = ALL, rounds = 3, isQuick = false } = {}) {
  const warmupTurns = plan.warmupTurns ?? Math.ceil(plan.turns / 2);
  const jobOf = (driver) => ({
    plan: { ...plan, turns: turnsOf(driver, plan.turns), warmupTurns: warmupTurnsOf(driver, warmupTurns) },
  });
  return { name, title, drivers, rounds, isQuick, jobOf };
}

function modelCallJob(driver) {
  const runsPerSecond = SLOW_MODEL_CALLS_PER_SECOND[driver] ?? MODEL_CALLS_PER_SECOND;
  const turns = runsPerSecond * MODEL_CALL_SECONDS;
  return {
    plan: { workload: 'model-call', turns, warmupTurns: Math.ceil(turns / 2), runsPerSecond, isOverlapping: true },
  };
}

function downJob() {
  const runsPerSecond = DOWN_RUNS_PER_SECOND;
  const turns = Math.round((runsPerSecond * DOWN_SECONDS) / 3);
  return {
    plan: { turns, warmupTurns: WARMUP_TURNS, runsPerSecond, isDelivered: false },
    behaviour: { isDown: true },
  };
}

function growth(runs, rounds) {
  return {
    name: `runs-${runs}`,
    title: `${shown(runs)} runs`,
    drivers: ['limit', 'traceable', 'processor', 'otlp-json'],
    rounds,
    jobOf: () => ({ plan: { turns: Math.round(runs / 3), warmupTurns: WARMUP_TURNS } }),
  };
}
