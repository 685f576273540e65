import fc from 'fast-check';
import { expect } from 'vitest';

export const DAY_MS = 86_400_000;
export const MAX_AGE_MS = 5 * DAY_MS;
const CHECK_MS = 300_000;

/** The clocks of a machine. `aheadMs` is how far its wall clock is ahead of the true time. */
export interface Clocks {
  trueMs: number;
  aheadMs: number;
  upMs: number;
}

export const wallMs = ({ trueMs, aheadMs }: Clocks): number => trueMs + aheadMs;

/** An open store. `add` stores a trace, and `check` does what a receiver does every few minutes. */
export interface AgedStore {
  add(number: number): Promise<unknown>;
  check(): Promise<unknown>;
  numbers(): number[] | Promise<number[]>;
  close(): unknown;
  /** Sets the retention time to the wall clock. Without it, the test waits until it has caught up. */
  prune?(): Promise<void>;
}

/** A time for which the clock is wrong by `aheadDays`. The machine is off, or asleep, before. */
export interface Period {
  readonly offDays: number;
  readonly isAsleep: boolean;
  readonly aheadDays: number;
  readonly checks: number;
}

export const somePeriods: fc.Arbitrary<Period[]> = fc.array(
  fc.record({
    offDays: fc.constantFrom(0, 0, 0.1, 1, 30),
    isAsleep: fc.boolean(),
    aheadDays: fc.constantFrom(0, 0, 100, 4, 0.5, -0.5, -100),
    checks: fc.integer({ min: 1, max: 36 }),
  }),
  { minLength: 2, maxLength: 8 },
);

const RIGHT: Period = { offDays: 0, isAsleep: false, aheadDays: 0, checks: 1 };
/** A clock that jumps ahead, and one that is ahead after the machine was asleep or off. */
export const KNOWN_PERIODS: readonly Period[][] = [
  [RIGHT, { ...RIGHT, aheadDays: 100, checks: 36 }],
  [RIGHT, { ...RIGHT, offDays: 1, isAsleep: true, aheadDays: 100 }],
  [RIGHT, { ...RIGHT, offDays: 1, aheadDays: 100 }],
];

/**
 * Checks that a store deletes no trace that is younger than its maximum age by more than a day per hour in which the clock
 * was ahead, and deletes every trace in the end. A trace that was stored while the clock was late is older for the store.
 */
export async function checkAges(periods: readonly Period[], open: (clocks: Clocks) => Promise<AgedStore>) {
  const clocks: Clocks = { trueMs: Date.UTC(2026, 10, 20), aheadMs: (periods[0]?.aheadDays ?? 0) * DAY_MS, upMs: 0 };
  const stored = new Map<number, number>();
  let [store, wrongMs] = [await open(clocks), 0];
  const check = async (passedMs: number): Promise<void> => {
    clocks.trueMs += passedMs;
    clocks.upMs += passedMs;
    if (clocks.aheadMs > 0) wrongMs += passedMs;
    await store.check();
    const left = await store.numbers();
    for (const [number, storedMs] of stored) {
      if (left.includes(number)) continue;
      expect(clocks.trueMs - storedMs).toBeGreaterThan(MAX_AGE_MS - 24 * wrongMs - 1);
      stored.delete(number);
    }
  };
  for (const [number, { offDays, isAsleep, aheadDays, checks }] of periods.entries()) {
    const offMs = offDays * DAY_MS;
    if (!isAsleep) await store.close();
    clocks.trueMs += offMs;
    clocks.upMs = isAsleep ? clocks.upMs + offMs : 0;
    if (!isAsleep) store = await open(clocks);
    clocks.aheadMs = aheadDays * DAY_MS;
    // The store cannot know for how much of the time since its last check the machine was asleep.
    if (isAsleep && aheadDays > 0) wrongMs += Math.min(offMs, CHECK_MS);
    await check(0);
    await store.add(number);
    stored.set(number, Math.min(clocks.trueMs, wallMs(clocks)));
    for (let at = 0; at < checks; at += 1) await check(CHECK_MS);
  }
  clocks.aheadMs = 0;
  await store.prune?.();
  // An hour for each day that the retention time may be late.
  const checks = store.prune === undefined ? periods.reduce((sum, { offDays }) => sum + offDays * 12, 100 * 12) : 0;
  for (let at = 0; at < checks && stored.size > 0; at += 1) await check(CHECK_MS);
  for (let day = 0; day < 110 && stored.size > 0; day += 5) await check(5 * DAY_MS);
  expect([...stored.keys()]).toEqual([]);
  await store.close();
}
