import { turnsOf, warmupTurnsOf } from '../drivers.mjs';
import { shown } from '../page/scale.mjs';
import { ALL, closedCell } from './cell.mjs';

const APART_RUNS_PER_SECOND = 6_000;
/** These could not keep up with that. */
const APART_RUNS_PER_SECOND_OF = { braintrust: 600, langsmith: 300 };
const APART_TURNS = 10_000;
const APART_WARMUP_TURNS = 2_500;
const LARGE_RUNS_PER_SECOND = 40;

const closed = (workload, title, turns) =>
  closedCell(workload, 'workloads', title, { plan: { workload, turns }, rounds: workload === 'agent' ? 5 : 3 });

/** Every kind of work, as fast as it goes. */
export const workloads = [
  closed('agent', '3-run turns of 8 KB', 10_000),
  {
    name: 'apart',
    group: 'workloads',
    title: `The same, the parts taking 400 ms each, at ${shown(APART_RUNS_PER_SECOND)} runs a second`,
    drivers: ALL,
    rounds: 3,
    jobOf: apartJob,
  },
  closed('tiny', 'Tiny runs (200 B)', 12_000),
  closed('fan-out', '1 000 children of one run', 40),
  closed('nested', '100 runs, each within the one before', 300),
  // As fast as they go they would fill a queue of 64 MiB, which is what runspan has.
  paced(closed('large', `Payloads of 1 MB, ${LARGE_RUNS_PER_SECOND} a second`, 150), LARGE_RUNS_PER_SECOND),
  closed('conversation', 'Conversations that grow to 200 messages', 40),
  closed('stream', 'Answers in 5 000 chunks', 200),
  closed('errors', 'Errors', 12_000),
  closed('mixed', 'All kinds, mixed', 3_000),
];

function paced({ jobOf, ...cell }, runsPerSecond) {
  return { ...cell, jobOf: (driver) => ({ plan: { ...jobOf(driver).plan, runsPerSecond } }) };
}

function apartJob(driver) {
  const turns = Math.min(APART_TURNS, turnsOf(driver, APART_TURNS));
  const runsPerSecond = APART_RUNS_PER_SECOND_OF[driver] ?? APART_RUNS_PER_SECOND;
  const warmupTurns = warmupTurnsOf(driver, APART_WARMUP_TURNS);
  return { plan: { workload: 'apart', turns, warmupTurns, runsPerSecond, isOverlapping: true } };
}
