import { warmupTurnsOf } from '../drivers.mjs';
import { shown } from '../page/scale.mjs';
import { FAST } from './cell.mjs';

const SECONDS = 4;
const RUNS_PER_TURN = 3;
const WARMUP_TURNS = 5_000;

/** Turns that are due at a fixed rate: what is added to each, counted from when it was due. */
export const openLoop = [1_000, 5_000, 10_000, 20_000].map((runsPerSecond) => ({
  name: `open-${runsPerSecond}`,
  group: 'open-loop',
  title: `3-run turns of 8 KB, due at ${shown(runsPerSecond)} runs a second`,
  // At higher rates these two would only show how far they fall behind.
  drivers: ['untraced', ...FAST, ...(runsPerSecond <= 5_000 ? ['braintrust', 'langsmith'] : [])],
  rounds: 2,
  jobOf: (driver) => ({
    plan: {
      turns: Math.round((runsPerSecond * SECONDS) / RUNS_PER_TURN),
      warmupTurns: warmupTurnsOf(driver, WARMUP_TURNS),
      runsPerSecond,
    },
  }),
}));
