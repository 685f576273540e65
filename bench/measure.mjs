/**
 * The measurement in a driver's process: first warm-up turns, which are delivered and not counted, and then, after a
 * message from the orchestrator, the measured turns.
 */
import { monitorEventLoopDelay, PerformanceObserver, performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { runLoop } from './loop.mjs';
import { givenPlan } from './plan.mjs';
import { quantile } from './statistics.mjs';
import { runsOf, workloadOf } from './workloads/workload.mjs';

/** The finest resolution. An idle loop shows about the same delay. */
const LOOP_DELAY_RESOLUTION_MS = 1;

/**
 * Measures the planned work with its functions wrapped. `flush` resolves when all runs are delivered. `sampledOut`
 * returns the number of runs that were not sent.
 */
export async function measure({ wrap, flush, sampledOut = () => 0 }) {
  const plan = givenPlan();
  const { turns, warmupTurns, isDelivered } = plan;
  const { make, runsPerTurn } = workloadOf(plan.workload);
  const work = { turn: make(wrap), runsPerTurn };
  // The rate applies to the warm-up only if turns wait.
  const warmupPlan = plan.isOverlapping ? plan : {};
  // Garbage collection also discards compiled code, so more turns follow.
  const turnsAfter = Math.ceil(warmupTurns / 5);
  await runLoop(work, warmupPlan, 1, warmupTurns - turnsAfter);
  await flush();
  // Allocated before the heap is measured.
  const turnMs = new Float64Array(turns);
  const heldBefore = heldBytes();
  await runLoop(work, warmupPlan, warmupTurns - turnsAfter + 1, turnsAfter);
  await flush();
  const measured = async () => {
    const sampledOutBefore = sampledOut();
    await runLoop(work, plan, warmupTurns + 1, turns, turnMs);
    if (isDelivered) await flush();
    return { sampledOut: sampledOut() - sampledOutBefore };
  };
  await measureWork(plan, measured, turnMs, heldBefore);
}

/**
 * Measures the work after the warm-up and ends the process. The work writes the time of each turn into `turnMs`. It may
 * return figures of its own.
 */
export async function measureWork(plan, work, turnMs = new Float64Array(0), heldBefore = heldBytes()) {
  await sendAndWait({ kind: 'warm' });
  const watch = await startWatch(plan);
  const own = await work();
  const { cpu, wallMs, ...figures } = watch.stop();
  const peakRssMiB = process.resourceUsage().maxRSS / 1_024;
  const runs = runsOf(plan);
  await sendAndWait({
    kind: 'done',
    figures: {
      cpuUsPerRun: (cpu.user + cpu.system) / runs,
      systemCpuUsPerRun: cpu.system / runs,
      runsPerSecond: runs / (wallMs / 1_000),
      ...turnFigures(turnMs),
      ...figures,
      ...own,
      peakRssMiB,
      retainedMiB: (heldBytes() - heldBefore) / 2 ** 20,
    },
  });
  // Undelivered runs may keep the process alive.
  process.exit();
}

function turnFigures(turnMs) {
  if (turnMs.length === 0) return {};
  turnMs.sort();
  return {
    turnP50Us: quantile(turnMs, 0.5) * 1_000,
    turnP99Us: quantile(turnMs, 0.99) * 1_000,
    turnP999Us: quantile(turnMs, 0.999) * 1_000,
  };
}

/** Counts processor time, garbage collection and, if planned, loop delay until `stop`. */
async function startWatch({ watchesLoop }) {
  let gcMs = 0;
  const collections = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) gcMs += duration;
  });
  collections.observe({ entryTypes: ['gc'] });
  const loopDelay = monitorEventLoopDelay({ resolution: LOOP_DELAY_RESOLUTION_MS });
  if (watchesLoop) loopDelay.enable();
  // The histogram has no delay until its timer has fired once.
  await sleep(5 * LOOP_DELAY_RESOLUTION_MS);
  const startMs = performance.now();
  const startCpu = process.cpuUsage();
  const stop = () => {
    const cpu = process.cpuUsage(startCpu);
    const wallMs = performance.now() - startMs;
    loopDelay.disable();
    for (const { duration } of collections.takeRecords()) gcMs += duration;
    collections.disconnect();
    return {
      cpu,
      wallMs,
      ...(watchesLoop && { loopDelayP99Ms: loopDelay.percentile(99) / 1e6, loopDelayMaxMs: loopDelay.max / 1e6 }),
      gcPercent: (100 * gcMs) / wallMs,
    };
  };
  return { stop };
}

/** Returns the bytes that survive a full garbage collection. */
function heldBytes() {
  for (let pass = 0; pass < 2; pass++) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Sends a message to the orchestrator and waits for its reply. */
function sendAndWait(message) {
  const answered = new Promise((resolve) => process.once('message', resolve));
  process.send(message);
  return answered;
}
