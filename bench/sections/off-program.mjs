/** Times bare and wrapped functions in turn, with tracing off, and sends the figures. */
import { configure, traceable } from 'runspan';
import { median } from '../statistics.mjs';

const ROUNDS = 15;
const ROUND_MS = 40;
const CALLS = 1_000;

configure({ tracing: false });
const sync = (a) => a + 1;
const asynchronous = async (a) => a + 1;
const shapes = {
  'sync function': [loop(sync), loop(traceable(sync))],
  'async function': [loopAsync(asynchronous), loopAsync(traceable(asynchronous))],
};

const figures = [];
for (const [name, [bare, wrapped]] of Object.entries(shapes)) {
  const [bareNs, extraNs] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    const ofBare = await nanosecondsOf(bare);
    bareNs.push(ofBare);
    extraNs.push((await nanosecondsOf(wrapped)) - ofBare);
  }
  figures.push({ name, bareNs: median(bareNs), extraNs: median(extraNs) });
}
process.send(figures);
process.disconnect();

/** Processor time of a call. */
async function nanosecondsOf(run) {
  const startMs = performance.now();
  const start = process.cpuUsage();
  let calls = 0;
  do {
    await run();
    calls += CALLS;
  } while (performance.now() - startMs < ROUND_MS);
  const { user, system } = process.cpuUsage(start);
  return ((user + system) * 1_000) / calls;
}

function loop(fn) {
  return () => {
    let sum = 0;
    for (let at = 0; at < CALLS; at++) sum += fn(at);
    return sum;
  };
}

function loopAsync(fn) {
  return async () => {
    let sum = 0;
    for (let at = 0; at < CALLS; at++) sum += await fn(at);
    return sum;
  };
}
