import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { AuditStore } from '../../src/cli/audit-store.ts';
import { quiet } from '../../src/cli/quiet.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** Messages of another program, in milliseconds. */
const OFTEN = [200, 400, 600, 800, 1_000, 1_200, 1_400, 1_600];

it.each<[number[], number]>([
  [[], 300],
  [[299], 599],
  [[...OFTEN, 1_699], 1_999],
  [[...OFTEN, 1_700], 2_000],
  [[...OFTEN, 1_800, 1_999], 2_000],
])(
  'an end is held until nothing comes, if not for ever: with messages after %j ms for %i ms',
  async (arrivals, endMs) => {
    const store = new AuditStore(() => {});
    const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
    const done = vi.fn();
    void quiet(store).then(done);
    let nowMs = 0;
    for (const atMs of arrivals) {
      await pass(atMs - nowMs);
      await store.apply([]);
      nowMs = atMs;
    }
    await pass(endMs - 1 - nowMs);
    expect(done).not.toHaveBeenCalled();
    await pass(1);
    expect(done).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  },
);
