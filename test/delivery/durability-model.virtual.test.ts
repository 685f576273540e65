import '../support/virtual-timers.ts';

import fc from 'fast-check';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { cases } from '../support/campaign.ts';
import { play, steps } from './model/steps.ts';
import { World } from './model/world.ts';

afterEach(() => diagnostics.setLog('warn'));
// Exporters of dead processes of the model still exist when the tests end.
afterAll(() => diagnostics.setLog('silent'));

describe.each([
  { protocols: ['runs'], numRuns: cases(40) },
  { protocols: ['otlp-json'], numRuns: cases(20) },
  { protocols: ['runs', 'otlp-json'], numRuns: cases(20) },
] as const)('in processes that send $protocols', ({ protocols, numRuns }) => {
  test.each(['memory', 'spill', 'write-ahead'] as const)(
    'with %s no promised run is lost, nothing arrives in the wrong order, and the ledger always adds up',
    async (durability) => {
      await fc.assert(
        fc.asyncProperty(steps, (given) => play(new World(durability, { protocols }), given)),
        { numRuns },
      );
    },
  );
});

test('the late end of an incomplete run is on disk when its call returns, even if the disk was full and the key is wrong', async () => {
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
