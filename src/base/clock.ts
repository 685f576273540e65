// The original functions, so that fake timers in tests of an application do not stop the clock.
/** Milliseconds since 1970 by the wall clock. */
export const wallNowMs: () => number = Date.now;
/** Milliseconds since an arbitrary moment, independent of the wall clock. */
export const monotonicNowMs: () => number = performance.now.bind(performance);

/** Maximum deviation of timestamps from the wall clock in microseconds. A larger deviation is corrected. */
const DEVIATION_MAX_US = 20_000;

/** Maximum jump back of the wall clock in microseconds that timestamps ignore. Timestamps follow a longer jump. */
const BACKWARD_MAX_US = 5_000_000;

/**
 * Creates timestamps in whole microseconds since 1970. Timestamps increase strictly, so runs sort by creation, unless
 * the wall clock moves back by more than 5 s. Durations come from the monotonic clock.
 */
export class Clock {
  readonly #wallMs: () => number;
  readonly #monotonicMs: () => number;
  /** Wall clock minus monotonic clock, in microseconds. */
  #anchorUs: number;
  #lastUs = 0;

  constructor(wallMs: () => number = wallNowMs, monotonicMs: () => number = monotonicNowMs) {
    this.#wallMs = wallMs;
    this.#monotonicMs = monotonicMs;
    this.#anchorUs = wallMs() * 1_000 - this.monotonicUs();
  }

  /** Microseconds since an arbitrary moment, with fractions. */
  monotonicUs(): number {
    return this.#monotonicMs() * 1_000;
  }

  /** Returns a new timestamp, given the current result of `monotonicUs`. */
  stampUs(monotonicUs: number): number {
    const wallUs = this.#wallMs() * 1_000;
    // The wall clock has a resolution of 1 ms, so a deviation of up to 1 ms is normal.
    if (Math.abs(this.#anchorUs + monotonicUs - wallUs) > DEVIATION_MAX_US) this.#anchorUs = wallUs - monotonicUs;
    const us = Math.floor(this.#anchorUs + monotonicUs);
    const isReset = this.#lastUs - us > BACKWARD_MAX_US;
    this.#lastUs = isReset ? us : Math.max(this.#lastUs + 1, us);
    return this.#lastUs;
  }

  nowUs(): number {
    return this.stampUs(this.monotonicUs());
  }
}

/** The clock of the process, which sets the timestamps and ids of live runs. */
export const clock: Clock = new Clock();
