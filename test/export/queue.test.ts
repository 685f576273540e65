import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Batch, type Delivery, newBatch } from '../../src/export/delivery.ts';
import { DeliveryQueue } from '../../src/export/queue.ts';
import { ended, makeDelivery, makeItem, makeRun } from '../support/encoded-run.ts';

const start = (): Delivery => makeDelivery(makeRun(), 'started');
const whole = (bytes = 1): Delivery => Object.assign(makeDelivery(), { bytes });
const batch = (fields: Partial<Batch>, runs = 1): Batch =>
  Object.assign(
    newBatch(
      Array.from({ length: runs }, () => makeItem()),
      0,
    ),
    fields,
  );

/** The bytes of spillable runs, taken in slices of 10. */
const taken = (queue: DeliveryQueue): number[] => queue.takeFresh(10, () => true).map(({ bytes }) => bytes);

describe('DeliveryQueue', () => {
  it('agrees with plain lists, whatever is added and removed', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(4), fc.nat())), (steps) => {
        const queue = new DeliveryQueue();
        const open: Delivery[] = [];
        const ready: Delivery[] = [];
        let sent = 0;
        for (const [kind, pick] of steps) {
          if (kind < 2) {
            const delivery = start();
            queue.addStart(delivery);
            open.push(delivery);
          } else if (kind === 2 && open.length > 0) {
            const at = pick % open.length;
            const [delivery] = open.splice(at, 1) as [Delivery];
            queue.removeOpen(delivery, at >= sent);
            if (at < sent) sent--;
            queue.removeOpen(delivery, false);
            ended(delivery.run);
            delivery.stage = 'whole';
            queue.addReady(delivery);
            ready.push(delivery);
          } else if (kind === 3 && sent < open.length) {
            queue.shiftStart();
            sent++;
          } else if (ready.length > 0) {
            queue.shiftReady();
            ready.shift();
          }
          expect(queue.oldestOpen).toBe(open[0]);
          expect(queue.firstStart).toBe(open[sent]);
          expect(queue.firstReady).toBe(ready[0]);
          expect([queue.openRuns, queue.starts, queue.readyRuns]).toEqual([
            open.length,
            open.length - sent,
            ready.length,
          ]);
          const waiting = [...open.slice(sent), ...ready];
          expect(queue.bytes).toBe(waiting.reduce((sum, { bytes }) => sum + bytes, 0));
          expect(queue.all()).toEqual(waiting);
        }
        queue.clear();
        expect([queue.runs, queue.bytes, queue.openRuns]).toEqual([0, 0, sent]);
      }),
    );
  });

  it('takes a hundred thousand runs from the middle of as many without visiting the others [fault 95]', () => {
    const queue = new DeliveryQueue();
    const all = Array.from({ length: 100_000 }, start);
    for (const delivery of all) queue.addStart(delivery);
    const began = performance.now();
    for (const delivery of all.reverse()) queue.removeOpen(delivery, true);

    expect(queue.runs).toBe(0);
    expect(performance.now() - began).toBeLessThan(2_000);
  });

  it('gives runs that can go to disk up to a number of bytes, or one larger run', () => {
    const queue = new DeliveryQueue();
    for (const bytes of [4, 6, 11, 1]) queue.addReady(whole(bytes));

    expect([taken(queue), taken(queue), taken(queue), taken(queue)]).toEqual([[4, 6], [11], [1], []]);
  });

  it('sends the retry first that is due and has the fewest attempts, then the fewest runs', () => {
    const queue = new DeliveryQueue();
    const [late, tried, large, small] = [
      batch({ notBeforeMs: 10 }),
      batch({ attempts: 2 }),
      batch({ attempts: 1 }, 4),
      batch({ attempts: 1 }, 2),
    ];
    for (const retry of [late, tried, large, small]) queue.addRetry(retry as Batch);

    expect(queue.nextRetryMs).toBe(0);
    expect([1, 2, 3, 4].map(() => queue.takeRetry(5))).toEqual([small, large, tried, undefined]);
    expect([queue.nextRetryMs, queue.retriedRuns]).toEqual([10, 1]);
    queue.endBackOffs(5);
    expect(queue.takeRetry(5)).toBe(late);
  });
});
