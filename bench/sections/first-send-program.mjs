/** Does turns from its start on. The first traced call configures runspan from the environment. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { importBuild } from '../drivers/build.mjs';
import { runLoop } from '../loop.mjs';
import { agent } from '../workloads/agent.mjs';

const TURNS = 100;
const TURNS_PER_SECOND = 100;

const { flush, traceable } = await importBuild('index');
const isTraced = process.argv[2] !== 'untraced';
const wrap = (fn, name, runType) => (isTraced ? traceable(fn, { name, runType }) : fn);
const work = { turn: agent.make(wrap), runsPerTurn: agent.runsPerTurn };
const loopDelay = monitorEventLoopDelay({ resolution: 1 });
loopDelay.enable();
await runLoop(work, { runsPerSecond: TURNS_PER_SECOND * work.runsPerTurn }, 1, TURNS);
await flush();
process.send({ longestMs: loopDelay.max / 1e6 }, () => process.exit());
