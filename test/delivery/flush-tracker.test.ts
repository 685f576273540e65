import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type FlushGroup, FlushTracker } from '#src/delivery/ledger.ts';
import { forAllAsync } from '../support/campaign.ts';

/** A step, with a number that selects the flush that ends, or the run that leaves. */
const step = fc.tuple(fc.constantFrom('enter', 'leave', 'begin', 'end'), fc.nat());

interface Run {
  readonly group: FlushGroup;
  isSettled: boolean;
}

test('A flush resolves exactly when all runs before it have left, in whatever order flushes and runs end', async () => {
  await forAllAsync(100, [fc.array(step, { maxLength: 60 })], async (steps) => {
    const tracker = new FlushTracker();
    const runs: Run[] = [];
    const begun: { readonly flush: ReturnType<FlushTracker['begin']>; readonly before: Run[]; isDone: boolean }[] = [];
    for (const [kind, number] of steps) {
      const waiting = runs.filter(({ isSettled }) => !isSettled);
      if (kind === 'enter') runs.push({ group: tracker.enter(), isSettled: false });
      if (kind === 'begin') {
        const one = { flush: tracker.begin(Number.POSITIVE_INFINITY, false), before: waiting, isDone: false };
        begun.push(one);
        void one.flush.done.then(() => {
          one.isDone = true;
        });
      }
      const left = waiting[number % waiting.length];
      if (kind === 'leave' && left !== undefined) {
        left.isSettled = true;
        tracker.leave(left.group);
      }
      const open = [...tracker.waiting];
      const ended = open[number % open.length];
      if (kind === 'end' && ended !== undefined) tracker.end(ended);
      await Promise.resolve();
      for (const { flush, before, isDone } of begun) {
        if (tracker.waiting.has(flush)) expect(isDone).toBe(before.every(({ isSettled }) => isSettled));
      }
      expect(tracker.size).toBeLessThanOrEqual(tracker.waiting.size + 1);
    }
  });
});
