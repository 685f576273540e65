import '../support/virtual-timers.ts';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { World } from '../export/model/world.ts';
import { virtualClock } from '../support/virtual-timers.ts';
import { FaultyFs, FS_FAULTS, type FsFault } from './faulty-fs.ts';
import { neverReached, table, tally } from './report.ts';

/** After which a disk that has failed is tried again. */
const RETRY_MS = 60_000;

/** Processes that may come after the three, to take what a failed call has left. */
const MORE_PROCESSES = 3;

const failedCalls = new Map<string, number>();
const faultsReached = new Map<string, number>(FS_FAULTS.map((fault) => [fault, 0]));
const runs = new Map<string, number>();

/** Runs in three processes: one that is killed in an outage, one that exits in another, one that delivers what is left. */
async function threeProcesses(world: World): Promise<void> {
  const many = async (count: number): Promise<void> => {
    for (let run = 0; run < count; run++) world.whole(0);
    await pass(world, 250);
  };
  await many(3);
  world.start(0, 'long');
  await pass(world, 1_000);
  world.turnTo(0, 'down');
  await many(5);
  world.start(0, 'never ended');
  await pass(world, 6_000);
  world.end(0, 0);
  await many(2);
  await pass(world, RETRY_MS + 1);
  await many(3);
  await pass(world, 6_000);
  world.crash();

  await many(2);
  await pass(world, RETRY_MS + 1);
  world.turnTo(0, 'up');
  await pass(world, RETRY_MS + 1);
  world.flush(0, 1_000);
  await pass(world, 1_000);
  world.turnTo(0, 'down');
  await many(8);
  await pass(world, 6_000);
  await many(1);
  world.exit();

  world.turnTo(0, 'up');
  await many(2);
  await pass(world, RETRY_MS + 1);
  await world.drain();
  await world.close(0);
  for (let more = 0; more < MORE_PROCESSES && !world.isEmpty; more++) {
    await world.drain();
    await world.close(0);
  }
}

async function pass(world: World, ms: number): Promise<void> {
  await world.advance(ms);
  world.check();
}

describe.each(['spill', 'write-ahead'] as const)('with %s', (durability) => {
  let calls: readonly string[] = [];

  beforeAll(async () => {
    const fs = new FaultyFs();
    const world = new World(durability, { limits: {}, throughFs: fs.through });
    await threeProcesses(world);
    expect(world.missing()).toEqual([]);
    calls = fs.calls;
  });

  /**
   * Whatever one call comes to: nothing throws, the ledger adds up at every step, no patch comes before its post, and no
   * file is left in the end. A run that has ended arrives as it was, but for one that
   *
   * - was told as given up, by `onDrop` or in the line that counts what an exit loses; or
   * - ended in a process that was killed, does not stand on disk, and was not promised to: with `spill` any, with
   *   `write-ahead` one that ended at the failed call or within a minute of it, in which the disk is left alone.
   *
   * What stands on disk when its process ends is never lost, so that a read, rename, deletion or closing that fails costs
   * nothing.
   */
  it.each(FS_FAULTS)(
    'no call that comes to %s loses more than was told or belongs to it',
    { timeout: 600_000 },
    async (fault) => {
      for (const [index, name] of calls.entries()) {
        if (fault === 'short write' && name !== 'writeSync') continue;
        await failAt(durability, index, name, fault);
      }
    },
  );
});

async function failAt(durability: 'spill' | 'write-ahead', index: number, name: string, fault: FsFault): Promise<void> {
  let failedAtMs = Number.NEGATIVE_INFINITY;
  const fs = new FaultyFs(index, fault, () => {
    failedAtMs = virtualClock.nowMs;
    tally(failedCalls, name);
    tally(faultsReached, fault);
  });
  const isDiskSound = (): boolean => virtualClock.nowMs - failedAtMs > RETRY_MS;
  const world = new World(durability, { limits: {}, throughFs: fs.through, isDiskSound });
  const where = `${fault} at call ${index}, ${name}`;
  try {
    await threeProcesses(world);
  } catch (thrown) {
    throw new Error(where, { cause: thrown });
  }
  expect(world.missing(), where).toEqual([]);
  expect(world.isEmpty, where).toBe(true);
  for (const [what, times] of world.tallies()) tally(runs, what, times);
}

it('every call and every fault was reached', () => {
  expect(failedCalls.size).toBeGreaterThan(0);
  expect(neverReached(faultsReached)).toEqual([]);
});

afterAll(() => {
  console.log(
    [table('Calls failed, by name:', failedCalls), table('Faults:', faultsReached), table('Runs:', runs)].join('\n\n'),
  );
});
