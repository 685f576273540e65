/**
 * What happens in the process of a driver: turns to warm up, delivered and not counted; then, on the orchestrator's
 * word, the measured turns. The clock stops when everything is delivered.
 */
import { monitorEventLoopDelay, PerformanceObserver, performance } from 'node:perf_hooks';
import { runLoop } from './loop.mjs';
import { givenPlan } from './plan.mjs';
import { quantile } from './statistics.mjs';
import { runsOf, workloadOf } from './workloads/workload.mjs';

/** The finest that there is. What an idle loop shows, about as much, is part of the figure. */
const LOOP_DELAY_RESOLUTION_MS = 1;

/** Measures the planned work with its functions wrapped; `flush` resolves when every run made so far has been delivered. */
export async function measure({ wrap, flush }) {
  const plan = givenPlan();
  const { turns, warmupTurns, isDelivered } = plan;
  const { make, runsPerTurn } = workloadOf(plan.workload);
  const work = { turn: make(wrap), runsPerTurn };
  // Pace is for what is measured, but for turns that wait.
  const warmupPlan = plan.isOverlapping ? plan : {};
  // The collection throws compiled code out as well, hence the turns after it.
  const turnsAfter = Math.ceil(warmupTurns / 5);
  await runLoop(work, warmupPlan, 1, warmupTurns - turnsAfter);
  await flush();
  // Taken before, so that it is no part of what is retained.
  const turnMs = new Float64Array(turns);
  const heldBefore = heldBytes();
  await runLoop(work, warmupPlan, warmupTurns - turnsAfter + 1, turnsAfter);
  await flush();
  await told({ kind: 'warm' });
  const watch = startWatch();
  await runLoop(work, plan, warmupTurns + 1, turns, turnMs);
  if (isDelivered) await flush();
  const { cpu, wallMs, ...figures } = watch.stop();
  const peakRssMiB = process.resourceUsage().maxRSS / 1_024;
  turnMs.sort();
  const runs = runsOf(plan);
  await told({
    kind: 'done',
    figures: {
      cpuUsPerRun: (cpu.user + cpu.system) / runs,
      systemCpuUsPerRun: cpu.system / runs,
      runsPerSecond: runs / (wallMs / 1_000),
      turnP50Us: quantile(turnMs, 0.5) * 1_000,
      turnP99Us: quantile(turnMs, 0.99) * 1_000,
      turnP999Us: quantile(turnMs, 0.999) * 1_000,
      ...figures,
      peakRssMiB,
      retainedMiB: (heldBytes() - heldBefore) / 2 ** 20,
    },
  });
  // What is not delivered may keep the process.
  process.exit();
}

/** Everything that is counted while the work is done. */
function startWatch() {
  let gcMs = 0;
  const collections = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) gcMs += duration;
  });
  collections.observe({ entryTypes: ['gc'] });
  const loopDelay = monitorEventLoopDelay({ resolution: LOOP_DELAY_RESOLUTION_MS });
  loopDelay.enable();
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
      loopDelayP99Ms: loopDelay.percentile(99) / 1e6,
      loopDelayMaxMs: loopDelay.max / 1e6,
      gcPercent: (100 * gcMs) / wallMs,
    };
  };
  return { stop };
}

/** What the process holds when everything that can be collected has been. */
function heldBytes() {
  for (let pass = 0; pass < 2; pass++) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Tells the orchestrator, and waits until it answers. */
function told(message) {
  const answered = new Promise((resolve) => process.once('message', resolve));
  process.send(message);
  return answered;
}
