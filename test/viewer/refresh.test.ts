import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { Refresh } from '../../src/viewer/data/refresh.ts';

/** A refresh whose work ends when it is told to, with how often it has begun. */
function held() {
  const works: { end: () => void; signal: AbortSignal }[] = [];
  const refresh = new Refresh((signal) => new Promise((resolve) => works.push({ end: resolve, signal })));
  return { refresh, works };
}

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

test('what is asked for while one is under way is one more, after it', async () => {
  const { refresh, works } = held();
  refresh.ask();
  refresh.ask();
  refresh.ask();
  expect(works).toHaveLength(1);
  works[0]?.end();
  await vi.advanceTimersByTimeAsync(99);
  expect(works).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(works).toHaveLength(2);
  works[1]?.end();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(works).toHaveLength(2);
  refresh.ask();
  expect(works).toHaveLength(3);
});

test('after one that took long there is a pause of three times as long', async () => {
  const { refresh, works } = held();
  refresh.ask();
  await vi.advanceTimersByTimeAsync(400);
  works[0]?.end();
  await vi.advanceTimersByTimeAsync(1);
  refresh.ask();
  await vi.advanceTimersByTimeAsync(1_198);
  expect(works).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(works).toHaveLength(2);
});

test('nothing begins after the end, and what is under way is told', async () => {
  const { refresh, works } = held();
  refresh.ask();
  refresh.ask();
  refresh.end();
  expect(works[0]?.signal.aborted).toBe(true);
  works[0]?.end();
  await vi.advanceTimersByTimeAsync(10_000);
  refresh.ask();
  expect(works).toHaveLength(1);
});
