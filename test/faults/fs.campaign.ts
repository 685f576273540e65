import '../support/virtual-timers.ts';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callsOf, FS_FAULTS, failAt } from './faulty-fs.ts';
import { neverReached, table, tally } from './report.ts';

const failedCalls = new Map<string, number>();
const faultsReached = new Map<string, number>(FS_FAULTS.map((fault) => [fault, 0]));
const runs = new Map<string, number>();

describe.each(['spill', 'write-ahead'] as const)('with %s', (durability) => {
  let calls: readonly string[] = [];

  beforeAll(async () => {
    calls = await callsOf(durability);
  });

  /**
   * For each failing call: nothing throws, the ledger adds up at every step, no patch comes before its post, and no
   * file is left in the end. A run that has ended arrives unchanged, unless it
   *
   * - was reported as dropped, by `onDrop` or in the line that counts what an exit loses; or
   * - ended in a killed process, is not on disk, and was not promised to be: with `spill` any run, with `write-ahead`
   *   one that ended at the failed call or within the following minute, in which the disk is not used.
   *
   * Runs that are on disk when their process ends are never lost, so a failed read, rename, deletion or close loses
   * nothing.
   */
  it.each(FS_FAULTS)(
    'no call that comes to %s loses more than was told or belongs to it',
    { timeout: 600_000 },
    async (fault) => {
      for (const [index, name] of calls.entries()) {
        if (fault === 'short write' && name !== 'writeSync') continue;
        const world = await failAt(durability, index, fault);
        tally(failedCalls, name);
        tally(faultsReached, fault);
        for (const [what, times] of world.tallies()) tally(runs, what, times);
      }
    },
  );
});

it('every call and every fault was reached', () => {
  expect(failedCalls.size).toBeGreaterThan(0);
  expect(neverReached(faultsReached)).toEqual([]);
});

afterAll(() => {
  console.log(
    [table('Calls failed, by name:', failedCalls), table('Faults:', faultsReached), table('Runs:', runs)].join('\n\n'),
  );
});
