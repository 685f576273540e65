import { describe, expect, test, vi } from 'vitest';
import { Clock, clock } from '#src/base/clock.ts';

/** Returns a clock whose wall time and monotonic time, in milliseconds, the test sets. */
function makeClock(time = { wall: 1_000_000, monotonic: 5_000 }) {
  return {
    time,
    clock: new Clock(
      () => time.wall,
      () => time.monotonic,
    ),
  };
}

/** Advances both times by `ms`, and the wall time also by `departureMs`. */
function pass(time: { wall: number; monotonic: number }, ms: number, departureMs = 0): void {
  time.monotonic += ms;
  time.wall += ms + departureMs;
}

describe('a timestamp', () => {
  test('is the wall time in microseconds', () => {
    expect(makeClock().clock.nowUs()).toBe(1_000_000_000);
  });

  test('follows the monotonic clock in whole microseconds, also between ticks of the wall clock', () => {
    const { clock, time } = makeClock();
    time.monotonic += 0.5;
    expect(clock.nowUs()).toBe(1_000_000_500);
    time.monotonic += 0.0019;
    expect(clock.nowUs()).toBe(1_000_000_501);
  });

  test('does not repeat if the time does not change', () => {
    const { clock } = makeClock();
    expect([clock.nowUs(), clock.nowUs(), clock.nowUs()]).toEqual([1_000_000_000, 1_000_000_001, 1_000_000_002]);
  });

  test('of an earlier moment is later than a timestamp that was already returned', () => {
    const { clock, time } = makeClock();
    const early = clock.monotonicUs();
    pass(time, 7);
    expect(clock.nowUs()).toBe(1_000_007_000);
    expect(clock.stampUs(early)).toBe(1_000_007_001);
  });
});

describe('a wall clock that is set', () => {
  test.each([
    ['ahead, one below', 19.999, 1_000_100_000],
    ['ahead, at', 20, 1_000_100_000],
    ['ahead, one above', 20.001, 1_000_120_001],
    ['behind, one below', -19.999, 1_000_100_000],
    ['behind, at', -20, 1_000_100_000],
    ['behind, one above', -20.001, 1_000_079_999],
  ])('is followed only if it differs by more than 20 ms: %s the limit', (_, departureMs, expectedUs) => {
    const { clock, time } = makeClock();
    pass(time, 100, departureMs);
    expect(clock.nowUs()).toBe(expectedUs);
  });

  test('is followed with its new difference', () => {
    const { clock, time } = makeClock();
    pass(time, 100, 3_600_000);
    expect(clock.nowUs()).toBe(4_600_100_000);
    pass(time, 2.25);
    expect(clock.nowUs()).toBe(4_600_102_250);
  });

  test.each([
    ['one below', -4_999.999, 1_000_000_001],
    ['at', -5_000, 1_000_000_001],
    ['one above', -5_000.001, 994_999_999],
  ])('does not move the timestamps back by up to 5 s: %s the limit', (_, stepMs, expectedUs) => {
    const { clock, time } = makeClock();
    expect(clock.nowUs()).toBe(1_000_000_000);
    time.wall += stepMs;
    expect(clock.nowUs()).toBe(expectedUs);
    pass(time, 6_000);
    expect(clock.nowUs()).toBe(1_000_000_000 + Math.round((stepMs + 6_000) * 1_000));
  });

  test('changes no duration', () => {
    const { clock, time } = makeClock();
    const startUs = clock.monotonicUs();
    pass(time, 12.5, -86_400_000);
    expect(clock.monotonicUs() - startUs).toBe(12_500);
    pass(time, 12.5, 172_800_000);
    expect(clock.monotonicUs() - startUs).toBe(25_000);
  });
});

describe('the clock of the process', () => {
  test('returns strictly increasing timestamps near the wall time', () => {
    const stamps = Array.from({ length: 10_000 }, () => clock.nowUs());
    expect(stamps.every((us, at) => Number.isInteger(us) && (at === 0 || us > (stamps[at - 1] as number)))).toBe(true);
    expect(Math.abs((stamps[0] as number) / 1_000 - Date.now())).toBeLessThan(5_000);
  });

  test('is not changed by fake timers of the application', () => {
    const [beforeUs, beforeMonotonicUs] = [clock.nowUs(), clock.monotonicUs()];
    vi.useFakeTimers({ now: Date.UTC(2100, 0), toFake: ['Date', 'performance'] });
    expect(Date.now()).toBe(4_102_444_800_000);
    expect(clock.nowUs()).toBeGreaterThan(beforeUs);
    expect(clock.nowUs()).toBeLessThan(beforeUs + 60_000_000);
    expect(clock.monotonicUs()).toBeGreaterThan(beforeMonotonicUs);
  });
});
