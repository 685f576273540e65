import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { Waits } from '../../src/clients/waits.ts';

test('a wait passes at its time, or ends with the reason of its signal, of which it lets go', async () => {
  const waits = new Waits();
  const ends = new AbortController();
  await waits.wait(1, ends.signal);
  const waiting = waits.wait(1_000_000, ends.signal);
  const reason = new Error('enough');
  ends.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  await expect(waits.wait(1_000_000, ends.signal)).rejects.toBe(reason);
  expect(getEventListeners(ends.signal, 'abort')).toEqual([]);
});

test('all of them end at once, and those to come', async () => {
  const waits = new Waits();
  const { signal } = new AbortController();
  const both = [waits.wait(1_000_000, signal), waits.wait(1_000_000, undefined)];
  const ended = Promise.allSettled(both);
  const over = new Error('over');
  waits.end(over);
  expect((await ended).map((result) => result.status === 'rejected' && result.reason)).toEqual([over, over]);
  await expect(waits.wait(1, undefined)).rejects.toBe(over);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
