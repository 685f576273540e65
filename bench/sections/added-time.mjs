/**
 * Times bare and traced functions alternately, in nanoseconds of processor time, and sends the figures to the parent
 * process.
 */
import { median } from '../statistics.mjs';

const ROUNDS = 15;
const ROUND_MS = 40;
const CALLS = 1_000;

/**
 * `shapes` contains a bare and a traced function by name. If the bare function returns a promise, each call is awaited.
 */
export async function sendAddedTimes(shapes) {
  const figures = [];
  for (const [name, functions] of Object.entries(shapes)) {
    const [bare, traced] = functions.map(functions[0](1) instanceof Promise ? loopAsync : loop);
    const [bareNs, extraNs] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      const ofBare = await nanosecondsOf(bare);
      bareNs.push(ofBare);
      extraNs.push((await nanosecondsOf(traced)) - ofBare);
    }
    figures.push({ name, bareNs: median(bareNs), extraNs: median(extraNs) });
  }
  process.send(figures);
  process.disconnect();
}

/** Returns the processor time of a call. */
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
