import '../support/virtual-timers.ts';

import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { MOODS } from '../export/model/service.ts';
import { type Reached, steps } from '../export/model/steps.ts';
import { World } from '../export/model/world.ts';
import { neverReached, table, tally } from './report.ts';

/** Steps in all, shared out over the durabilities. */
const STEPS = Number(process.env.FAULT_STEPS ?? 1_000_000);
/** Makes a run the same again. */
const SEED = Number(process.env.FAULT_SEED ?? Date.now() % 2 ** 31);

const DURABILITIES = ['memory', 'spill', 'write-ahead'] as const;
const STEPS_EACH = STEPS / DURABILITIES.length;
const WORLDS_AT_ONCE = 50;

const reached: Reached = new Map();
const moodsMet = new Map<string, number>(MOODS.map((mood) => [mood, 0]));
const ends = new Map<string, number>();
const runs = new Map<string, number>();

test.each(DURABILITIES)(
  'with %s nothing that is promised is lost, no patch comes before its post, and the ledger adds up at every step',
  { timeout: 3_600_000 },
  async (durability) => {
    const goneThrough: Reached = new Map();
    const worlds = fc.asyncProperty(steps(goneThrough), async (commands) => {
      const world = new World(durability);
      await fc.asyncModelRun(() => ({ model: {}, real: world }), commands);
      await world.settle();
      expect(world.missing()).toEqual([]);
      count(world);
    });
    const seeds = SEED + DURABILITIES.indexOf(durability) * 1_000_000;
    for (let round = 0; sum(goneThrough) < STEPS_EACH; round++) {
      await fc.assert(worlds, { numRuns: WORLDS_AT_ONCE, seed: seeds + round });
    }
    for (const [name, times] of goneThrough) tally(reached, name, times);
  },
);

test('every step was reached, and every mood was met by a request', () => {
  expect([...neverReached(reached), ...neverReached(moodsMet)]).toEqual([]);
});

function count(world: World): void {
  for (const service of world.services) {
    for (const [mood, times] of service.met) tally(moodsMet, mood, times);
  }
  for (const [what, times] of world.tallies()) tally(runs, what, times);
  for (const [end, times] of world.ends()) tally(ends, end, times);
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((all, count) => all + count, 0);
}

afterAll(() => {
  console.log(
    [
      `Seed ${SEED}, ${sum(reached)} steps. FAULT_SEED and FAULT_STEPS make the run the same again.`,
      table('Steps gone through:', reached),
      table('Requests, by the mood of the service:', moodsMet),
      table('Processes, by their end:', ends),
      table('Runs:', runs),
    ].join('\n\n'),
  );
});
