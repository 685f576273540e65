import '../support/virtual-timers.ts';

import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { liveAll } from '../delivery/model/liveness.ts';
import { MOODS } from '../delivery/model/service.ts';
import { STEPS as EVERY_STEP, play, steps } from '../delivery/model/steps.ts';
import { World } from '../delivery/model/world.ts';
import { neverReached, table, tally } from './report.ts';

/** Total number of steps, half of them for each model. */
const STEPS = Number(process.env.FAULT_STEPS ?? 1_000_000);
/** Set it to repeat a campaign. */
const SEED = Number(process.env.FAULT_SEED ?? Date.now() % 2 ** 31);

const PROTOCOLS = ['runs', 'otlp-json'] as const;

/** The durability and the protocols of consecutive processes. */
const WORLDS = (['memory', 'spill', 'write-ahead'] as const).flatMap((durability) =>
  [['runs'] as const, ['otlp-json'] as const, PROTOCOLS].map((protocols) => ({ durability, protocols })),
);
const STEPS_EACH = STEPS / 2 / WORLDS.length;
const WORLDS_AT_ONCE = 50;

let liveSteps = 0;
const reached = new Map<string, number>(EVERY_STEP.map(({ name }) => [name, 0]));
const moodsMet = new Map<string, number>(MOODS.map((mood) => [mood, 0]));
const runs = new Map<string, number>();

test.each(WORLDS)(
  'with $durability and $protocols no promised run is lost, nothing arrives in the wrong order, and the ledger always adds up',
  { timeout: 3_600_000 },
  async (given) => {
    let played = 0;
    const worlds = fc.asyncProperty(steps, async (taken) => {
      const world = new World(given.durability, given);
      await play(world, taken);
      played += taken.length;
      for (const { name } of taken) tally(reached, name);
      count(world);
    });
    const seeds = SEED + WORLDS.indexOf(given) * 1_000_000;
    for (let round = 0; played < STEPS_EACH; round++) {
      await fc.assert(worlds, { numRuns: WORLDS_AT_ONCE, seed: seeds + round });
    }
  },
);

test.each(PROTOCOLS)(
  'with %s every run that the service accepts arrives, whatever happens to other runs and to the key',
  { timeout: 3_600_000 },
  async (protocol) => {
    const { failures, steps } = await liveAll(seedsFrom(SEED), { protocol }, STEPS / 2 / PROTOCOLS.length);
    liveSteps += steps;
    expect(failures).toEqual([]);
  },
);

test('every step was reached, and every mood received a request', () => {
  expect([...neverReached(reached), ...neverReached(moodsMet)]).toEqual([]);
});

function* seedsFrom(first: number): Iterable<number> {
  for (let seed = first; ; seed++) yield seed;
}

function count(world: World): void {
  for (const service of world.services) {
    for (const [mood, times] of service.met) tally(moodsMet, mood, times);
  }
  for (const [what, times] of world.tallies()) tally(runs, what, times);
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((all, count) => all + count, 0);
}

afterAll(() => {
  console.log(
    [
      `Seed ${SEED}, ${sum(reached)} steps of the model of durability, ${liveSteps} of the model of liveness. FAULT_SEED and FAULT_STEPS repeat the run.`,
      table('Steps:', reached),
      table('Requests, by the mood of the service:', moodsMet),
      table('Runs:', runs),
    ].join('\n\n'),
  );
});
