import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Delivery } from '../../src/export/delivery.ts';
import { DeliveryQueue } from '../../src/export/queue.ts';
import type { Ticket } from '../../src/export/replay.ts';
import { makeDelivery } from '../support/encoded-run.ts';

const start = (bytes = 10) => makeDelivery({ stage: 'started', bytes });
const whole = (bytes = 10) => makeDelivery({ stage: 'whole', bytes });
const size = (runs: number, bytes = 1_000_000) => ({ runs, bytes });
const taken = (queue: DeliveryQueue, runs: number, startsMax = 0, bytes?: number): Delivery[] =>
  queue.take(size(runs, bytes), startsMax).map(({ delivery }) => delivery);

describe('DeliveryQueue', () => {
  it('gives ended runs in the order in which they ended', () => {
    const queue = new DeliveryQueue();
    const all = [whole(), whole(), whole()];
    for (const delivery of all) queue.addReady(delivery);

    expect(taken(queue, 2)).toEqual(all.slice(0, 2));
    expect(taken(queue, 2)).toEqual(all.slice(2));
    expect(queue.runs).toBe(0);
  });

  it('leaves runs that have only started for as long as starts are not wanted', () => {
    const queue = new DeliveryQueue();
    queue.addStart(start());
    queue.addReady(whole());

    expect(taken(queue, 10)).toHaveLength(1);
    expect(queue.runs).toBe(1);
    expect(queue.readyRuns).toBe(0);
  });

  it.each([
    [0, 0],
    [1, 1],
    [2, 2],
    [3, 2],
  ])('takes up to %i starts, oldest first and before ended ones', (startsMax, expected) => {
    const queue = new DeliveryQueue();
    const starts = [start(), start()];
    const ready = whole();
    for (const delivery of starts) queue.addStart(delivery);
    queue.addReady(ready);

    expect(taken(queue, 10, startsMax)).toEqual([...starts.slice(0, expected), ready]);
  });

  it('moves a run that ends before its start was sent to the end of the ended ones', () => {
    const queue = new DeliveryQueue();
    const [early, late] = [start(10), start(10)];
    queue.addStart(early);
    queue.addStart(late);
    queue.addReady(whole());
    early.stage = 'whole';
    early.bytes = 30;
    queue.moveToReady(early, 10);

    expect(queue.bytes).toBe(50);
    expect(taken(queue, 10)[1]).toBe(early);
    expect(queue.bytes).toBe(10);
  });

  it.each([
    [19, 1],
    [20, 2],
    [21, 2],
  ])('cuts a batch of 10-byte records at %i bytes to %i of them', (bytes, expected) => {
    const queue = new DeliveryQueue();
    for (let n = 0; n < 3; n++) queue.addReady(whole(10));

    expect(taken(queue, 10, 0, bytes)).toHaveLength(expected);
  });

  it('gives a record that is larger than a batch alone [fault 96]', () => {
    const queue = new DeliveryQueue();
    const large = whole(5_000);
    queue.addReady(large);
    queue.addReady(whole());

    expect(taken(queue, 10, 0, 100)).toEqual([large]);
  });

  it('moves each record twice at the most, however many there are [fault 95]', () => {
    const count = 20_000;
    const queue = new DeliveryQueue();
    const one = whole(1);
    const all = Array.from({ length: count }, () => ({ ...one }));
    let moved = 0;
    const { slice, shift, splice } = Array.prototype;
    const methods = { slice, shift, splice } as Record<string, (...args: unknown[]) => unknown>;
    for (const [name, method] of Object.entries(methods)) {
      const counted = function (this: unknown[], ...args: unknown[]): unknown {
        moved += this.length;
        return method.apply(this, args);
      };
      Object.assign(Array.prototype, { [name]: counted });
    }
    const batches: number[] = [];
    try {
      for (const delivery of all) queue.addReady(delivery);
      while (queue.runs > 0) batches.push(queue.take(size(100, 20_000_000), 0).length);
    } finally {
      Object.assign(Array.prototype, methods);
    }
    expect(batches).toEqual(Array.from({ length: count / 100 }, () => 100));
    expect(moved).toBeLessThanOrEqual(2 * count);
  });

  it('takes a run that ends out of a hundred thousand that wait without asking the others [fault 95]', () => {
    const queue = new DeliveryQueue();
    let asked = 0;
    const one = start(1);
    const all = Array.from({ length: 100_000 }, () => {
      const delivery = { ...one };
      return new Proxy(delivery, {
        get: (target, key) => {
          asked++;
          return Reflect.get(target, key);
        },
      });
    });
    for (const delivery of all) queue.addStart(delivery);
    asked = 0;
    queue.moveToReady(all[50_000] as Delivery, 1);
    expect(queue.readyRuns).toBe(1);
    expect(asked).toBeLessThan(10);
  });

  const fromDisk = (bytes = 10) => makeDelivery({ stage: 'whole', bytes, ticket: {} as Ticket });

  it('tells apart what has come from the disk', () => {
    const queue = new DeliveryQueue();
    queue.addStart(start(1));
    queue.addReady(whole(2));
    queue.addReady(fromDisk(4));
    queue.addReady(fromDisk(8));
    expect(queue.fresh).toEqual({ runs: 2, readyRuns: 1, bytes: 3 });
    expect([queue.runs, queue.bytes]).toEqual([4, 15]);

    expect(taken(queue, 2)).toHaveLength(2);
    expect(queue.fresh).toEqual({ runs: 1, readyRuns: 0, bytes: 1 });
    queue.drain();
    expect(queue.fresh).toEqual({ runs: 0, readyRuns: 0, bytes: 0 });
  });

  it.each([
    [9, 1],
    [10, 1],
    [19, 1],
    [20, 2],
    [21, 2],
  ])('gives fresh ones of 10 bytes that have ended up to %i bytes: %i, past those from the disk', (bytes, expected) => {
    const queue = new DeliveryQueue();
    const [stored, ...fresh] = [fromDisk(), whole(), whole(), whole()];
    queue.addStart(start());
    for (const delivery of [stored, ...fresh]) queue.addReady(delivery as Delivery);

    expect(queue.takeFresh(bytes, () => true)).toEqual(fresh.slice(0, expected));
    expect(taken(queue, 10)).toEqual([...fresh.slice(expected), stored]);
  });

  it('gives fresh ones as long as they are wanted', () => {
    const queue = new DeliveryQueue();
    for (let n = 0; n < 5; n++) queue.addReady(whole());

    expect(queue.takeFresh(1_000, () => queue.fresh.runs > 3)).toHaveLength(2);
    expect(queue.readyRuns).toBe(3);
  });

  it('moves what it gives into flight', () => {
    const queue = new DeliveryQueue();
    const [open, finished, patch] = [start(), whole(), makeDelivery({ stage: 'patch' })];
    queue.addStart(open);
    queue.addReady(finished);
    queue.addReady(patch);
    const items = queue.take(size(10), 1);

    expect(items.map(({ op, isEnded }) => [op, isEnded])).toEqual([
      ['post', false],
      ['post', true],
      ['patch', true],
    ]);
    expect([open.stage, finished.stage, patch.stage]).toEqual(['posting', 'finishing', 'finishing']);
  });

  it('gives out everything at once when it is drained', () => {
    const queue = new DeliveryQueue();
    const all = [start(), whole(), whole()];
    queue.addStart(all[0] as Delivery);
    for (const delivery of all.slice(1)) queue.addReady(delivery);

    expect(queue.drain()).toEqual(all);
    expect([queue.runs, queue.bytes]).toEqual([0, 0]);
  });

  it('agrees with a plain list, whatever is added and taken', () => {
    const steps = fc.array(fc.oneof(fc.constant('add' as const), fc.integer({ min: 1, max: 5 })), { maxLength: 200 });
    fc.assert(
      fc.property(steps, (commands) => {
        const queue = new DeliveryQueue();
        const model: Delivery[] = [];
        for (const command of commands) {
          if (command === 'add') {
            const delivery = whole();
            queue.addReady(delivery);
            model.push(delivery);
          } else {
            expect(taken(queue, command)).toEqual(model.splice(0, command));
          }
          expect([queue.runs, queue.bytes]).toEqual([model.length, model.length * 10]);
        }
      }),
      { numRuns: 200 },
    );
  });
});
