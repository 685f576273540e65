import '../support/virtual-timers.ts';

import fc from 'fast-check';
import { afterAll, afterEach, expect, test } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { steps } from './model/steps.ts';
import { World } from './model/world.ts';

afterEach(() => diagnostics.setLog('warn'));
// The exporters of processes that have died in the model are still there when the tests end.
afterAll(() => diagnostics.setLog('silent'));

test.each(['memory', 'spill', 'write-ahead'] as const)(
  'with %s nothing that is promised is lost, no patch comes before its post, and the ledger adds up at every step',
  async (durability) => {
    await fc.assert(
      fc.asyncProperty(steps(new Map()), async (commands) => {
        const world = new World(durability);
        await fc.asyncModelRun(() => ({ model: {}, real: world }), commands);
        await world.settle();
        expect(world.missing()).toEqual([]);
      }),
      { numRuns: 40 },
    );
  },
);

test('the late end of a run that was sent as incomplete, while the disk was full and the key wrong, is on disk when its call returns', async () => {
  const world = new World('write-ahead');
  await world.setDiskFull(true);
  world.start(0, 'run');
  world.turnTo(0, 'wrong key');
  await world.advance(360_000);
  await world.setDiskFull(false);
  expect(world.disk.text).toBe('');
  world.end(0, 0);
  world.crash();
  await world.settle();
  expect(world.missing()).toEqual([]);
});
