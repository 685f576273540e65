/** `durability-memory-program.mjs <level> <runs per second> <seconds>`: works at that pace while no service is there. */
import { configure, stats, traceable } from 'runspan';
import { agent } from '../workloads/agent.mjs';

const [level, runsPerSecond, seconds] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const isTraced = level !== 'untraced';
const lines = [];

// Nobody listens on the discard port.
if (isTraced) configure({ endpoint: 'http://127.0.0.1:9', durability: level, log: (_, line) => lines.push(line) });
const work = agent.make((fn, name, runType) => (isTraced ? traceable(fn, { name, runType }) : fn));

const turns = (runsPerSecond * seconds) / agent.runsPerTurn;
const startMs = performance.now();
let turn = 0;
while (turn < turns) {
  const due = ((performance.now() - startMs) / 1_000) * (runsPerSecond / agent.runsPerTurn);
  for (; turn < Math.min(due, turns); turn++) await work(turn);
  await new Promise((resolve) => setTimeout(resolve, 10));
}
process.send(
  { stats: isTraced ? stats() : undefined, lines, peakRssMiB: process.resourceUsage().maxRSS / 1_024 },
  // What is queued will not be delivered.
  () => process.exit(),
);
