/**
 * What happens in the process of a driver: turns to warm up, delivered and not counted; then, on the orchestrator's
 * word, the measured turns. The clock stops when everything is delivered.
 */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { RUNS_PER_TURN, runTurns } from './workload.mjs';

/** The finest that there is. What an idle loop shows, about as much, is part of the figure. */
const LOOP_DELAY_RESOLUTION_MS = 1;

/** Measures a traced, or untraced, `answer`; `flush` resolves when every run made so far has been delivered. */
export async function measure({ answer, flush }) {
  const [turns, warmupTurns] = process.argv.slice(2).map(Number);
  await runTurns(answer, 1, warmupTurns);
  await flush();
  await told({ kind: 'warm' });
  const turnMs = new Float64Array(turns);
  const loopDelay = monitorEventLoopDelay({ resolution: LOOP_DELAY_RESOLUTION_MS });
  loopDelay.enable();
  const startMs = performance.now();
  const startCpu = process.cpuUsage();
  await runTurns(answer, warmupTurns + 1, turns, turnMs);
  await flush();
  const cpu = process.cpuUsage(startCpu);
  const wallMs = performance.now() - startMs;
  loopDelay.disable();
  turnMs.sort();
  const runs = turns * RUNS_PER_TURN;
  await told({
    kind: 'done',
    figures: {
      cpuUsPerRun: (cpu.user + cpu.system) / runs,
      systemCpuUsPerRun: cpu.system / runs,
      runsPerSecond: runs / (wallMs / 1_000),
      turnP50Us: quantile(turnMs, 0.5) * 1_000,
      turnP99Us: quantile(turnMs, 0.99) * 1_000,
      loopDelayP99Ms: loopDelay.percentile(99) / 1e6,
      peakRssMiB: process.resourceUsage().maxRSS / 1_024,
    },
  });
  process.disconnect();
}

/** Tells the orchestrator, and waits until it answers. */
function told(message) {
  const answered = new Promise((resolve) => process.once('message', resolve));
  process.send(message);
  return answered;
}

function quantile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
