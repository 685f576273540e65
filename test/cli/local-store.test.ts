import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { AuditStore, waitForIdle } from '../../src/cli/local-store.ts';
import { DEFAULT_SCOPE } from '../../src/receiver.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const OFTEN = [200, 400, 600, 800, 1_000, 1_200, 1_400, 1_600];

it.each<[number[], number]>([
  [[], 300],
  [[299], 599],
  [[...OFTEN, 1_699], 1_999],
  [[...OFTEN, 1_700], 2_000],
  [[...OFTEN, 1_800, 1_999], 2_000],
])('with records after %j ms, the wait for an idle store takes %i ms', async (arrivals, endMs) => {
  const store = new AuditStore(() => {});
  const done = vi.fn();
  void waitForIdle(store).then(done);
  let nowMs = 0;
  for (const atMs of arrivals) {
    await vi.advanceTimersByTimeAsync(atMs - nowMs);
    await store.apply(DEFAULT_SCOPE, []);
    nowMs = atMs;
  }
  await vi.advanceTimersByTimeAsync(endMs - 1 - nowMs);
  expect(done).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(done).toHaveBeenCalledOnce();
  expect(vi.getTimerCount()).toBe(0);
});
