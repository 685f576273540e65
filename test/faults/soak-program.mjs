// Records a given number of runs per second for a given time, and reports its heap, its descriptors and, at the end,
// its ledger.
import { readdirSync } from 'node:fs';
import { configure, currentRun, flush, shutdown, stats, traceable } from 'runspan';

const [seconds, runsPerSecond] = process.argv.slice(2).map(Number);
/** Interval at which traces of two runs are started. */
const EVERY_MS = 10;
const SAMPLE_EVERY_MS = 2_000;
/** With more runs in memory, the heap size depends more on the service than on runspan. */
const CALM_RUNS = 1_000;

const descriptors = () => readdirSync('/proc/self/fd').length;
const say = (kind, facts) => console.log(JSON.stringify({ kind, ...facts }));

process.env.RUNSPAN_DEV = '{"limits":{"retryDelayMaxMs":1000}}';
configure({ durability: 'spill', spoolDir: process.env.SPOOL, limits: { requestTimeoutMs: 1_000 } });

let created = 0;
/** The sum of the last 32 bits of all ids. */
let checksum = 0;

function note() {
  created++;
  checksum += Number.parseInt(currentRun().id.slice(-8), 16);
}

const retrieve = traceable(
  async (question) => {
    note();
    if (created % 50 === 0) throw new Error('not found');
    return { pages: [question, 'x'.repeat(200)] };
  },
  { name: 'retrieve', runType: 'retriever' },
);
const answer = traceable(
  async (question) => {
    note();
    const found = await retrieve(question).catch(() => ({ pages: [] }));
    return { text: `${found.pages.length} pages` };
  },
  { name: 'answer', tags: ['soak'] },
);

const begunMs = performance.now();
const elapsedMs = () => performance.now() - begunMs;
let sampledMs = 0;

function sample() {
  if (elapsedMs() - sampledMs < SAMPLE_EVERY_MS) return;
  const { queued, inFlight, open } = stats();
  if (queued + inFlight + open > CALM_RUNS) return;
  sampledMs = elapsedMs();
  gc();
  say('sample', { atMs: sampledMs, heapBytes: process.memoryUsage().heapUsed, descriptors: descriptors() });
}

const begin = setInterval(() => {
  const dueRuns = (Math.min(elapsedMs(), seconds * 1_000) * runsPerSecond) / 1_000;
  while (created < dueRuns) void answer(`question ${created}`);
  sample();
  if (elapsedMs() < seconds * 1_000) return;
  clearInterval(begin);
  say('recorded', {});
  process.stdin.once('data', () => void end());
}, EVERY_MS);

async function end() {
  const flushed = await flush({ timeoutMs: 120_000 });
  await shutdown();
  say('end', { flushed, created, checksum, stats: stats(), descriptors: descriptors() });
  process.stdin.destroy();
}
