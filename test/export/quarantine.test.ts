import { describe, expect, it } from 'vitest';
import type { Item } from '../../src/export/delivery.ts';
import { Quarantine } from '../../src/export/quarantine.ts';
import { makeItem } from '../support/encoded-run.ts';

const itemsOf = (count: number): Item[] => Array.from({ length: count }, () => makeItem());

/** A quarantine before a service that fails for some runs; it ends when it has been sent so many batches. */
function inFrontOf(bad: ReadonlySet<Item>, sendsMax: number) {
  const sent: (readonly Item[])[] = [];
  const waits: number[] = [];
  let underWay = 0;
  let most = 0;
  const quarantine = new Quarantine({
    async send(items) {
      sent.push(items);
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setImmediate(resolve));
      underWay--;
      return sent.length < sendsMax && items.some((item) => bad.has(item)) ? items : [];
    },
    backOff: async (failures) => void waits.push(failures),
  });
  return { quarantine, sent, waits, most: () => most };
}

describe('Quarantine', () => {
  it('finds one run at fault among 64 by halves, two requests for each halving, and one wait [fault 21]', async () => {
    const items = itemsOf(64);
    const { quarantine, sent, waits } = inFrontOf(new Set([items[0] as Item]), 14);
    quarantine.admit(items);
    await quarantine.emptied();

    expect(sent.slice(0, 13).map(({ length }) => length)).toEqual([64, 32, 32, 16, 16, 8, 8, 4, 4, 2, 2, 1, 1]);
    expect(sent[13]).toEqual([items[0]]);
    // After the whole and its first half, which might be the service.
    expect(waits).toEqual([2]);
  });

  it('waits for longer the more often in a row it has failed, and not after a success [fault 21]', async () => {
    const [bad] = itemsOf(1) as [Item];
    const { quarantine, waits, sent } = inFrontOf(new Set([bad]), 6);
    quarantine.admit([bad]);
    await quarantine.emptied();
    quarantine.admit(itemsOf(1));
    await quarantine.emptied();

    expect(waits).toEqual([2, 3, 4, 5]);
    expect(sent).toHaveLength(7);
  });

  it('sends one batch at a time, however many it has [fault 21]', async () => {
    const { quarantine, sent, most } = inFrontOf(new Set(), 0);
    for (let batch = 0; batch < 5; batch++) quarantine.admit(itemsOf(2));
    await quarantine.emptied();

    expect([sent.length, most()]).toEqual([5, 1]);
  });

  it.each([
    [999, 1, true],
    [999, 2, false],
    [1_000, 1, false],
  ])('with %i runs in it takes %i more: %s', async (there, more, isTaken) => {
    const { quarantine } = inFrontOf(new Set(), 0);
    quarantine.admit(itemsOf(there));
    expect(quarantine.admit(itemsOf(more))).toBe(isTaken);
    await quarantine.emptied();
    // What has left it makes room.
    expect(quarantine.admit(itemsOf(1_000))).toBe(true);
  });
});
