// Read once, so that fake timers installed by a test of the application do not stop the clock.
/** Milliseconds since 1970 by the wall clock. */
export const wallNowMs: () => number = Date.now;
/** Milliseconds since an arbitrary moment, independent of the wall clock. */
export const monotonicNowMs: () => number = performance.now.bind(performance);

/** Deviation between the timestamps and the wall clock that is corrected. */
const DEVIATION_MAX_US = 20_000;

/** If the wall clock moves back by more, the timestamps follow it instead of staying at their latest value. */
const BACKWARD_MAX_US = 5_000_000;

/**
 * Timestamps in whole microseconds since 1970. They increase strictly, so runs sort by creation, unless the wall clock
 * moves back by more than 5 s. Durations come from the monotonic clock.
 */
export class Clock {
  readonly #wallMs: () => number;
  readonly #monotonicMs: () => number;
  /** Difference between the wall clock and the monotonic clock. */
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

  /** Returns a new timestamp for a value just read from `monotonicUs`. */
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

/** The clock of the process. It gives live runs their timestamps and ids. */
export const clock: Clock = new Clock();
