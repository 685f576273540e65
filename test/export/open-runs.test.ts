import { describe, expect, it } from 'vitest';
import type { Delivery } from '../../src/export/delivery.ts';
import { OpenRuns } from '../../src/export/open-runs.ts';
import { makeDelivery } from '../support/encoded-run.ts';
import { gate } from '../support/gate.ts';

/** Open runs of which the overdue ones are taken out and noted; `overdue` resolves when one is. */
function openRuns(limits: { runsMax?: number; ageMaxMs?: number }, time = { nowMs: 0 }) {
  const late: Delivery[] = [];
  const overdue = gate();
  const open = new OpenRuns({
    runsMax: 1_000,
    ageMaxMs: 1_000_000,
    monotonicMs: () => time.nowMs,
    ...limits,
    overdue: (delivery) => {
      open.delete(delivery.run);
      late.push(delivery);
      overdue.open();
    },
  });
  return { open, late, overdue, time };
}

describe('OpenRuns', () => {
  it.each([
    [2, 0],
    [3, 0],
    [4, 1],
  ])('of %i runs at a limit of 3 finds %i overdue, the oldest [fault 93]', (count, expected) => {
    const { open, late } = openRuns({ runsMax: 3 });
    const all = Array.from({ length: count }, () => makeDelivery());
    for (const delivery of all) open.add(delivery);

    expect(late).toEqual(all.slice(0, expected));
  });

  it('does not count runs that have ended', () => {
    const { open, late } = openRuns({ runsMax: 1 });
    const first = makeDelivery();
    open.add(first);
    open.delete(first.run);
    open.add(makeDelivery());

    expect(late).toEqual([]);
    expect(open.get(first.run)).toBeUndefined();
  });

  it('finds those that are as old as they may be, and leaves the younger ones [fault 93]', async () => {
    const { open, late, overdue, time } = openRuns({ ageMaxMs: 10 });
    const [old, atLimit, young] = [0, 5, 6].map((startedAtMs) => makeDelivery({ startedAtMs }));
    for (const delivery of [old, atLimit, young]) open.add(delivery as Delivery);
    time.nowMs = 15;
    await overdue;
    open.close();

    expect(late).toEqual([old, atLimit]);
  });
});
