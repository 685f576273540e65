// The clock functions are captured at load time, so that fake timers in the tests of an application have no effect.
export const wallNowMs: () => number = Date.now;
export const monotonicNowMs: () => number = performance.now.bind(performance);

/** Maximum deviation of timestamps from the wall clock, in microseconds. A larger deviation is corrected. */
const DEVIATION_MAX_US = 20_000;

/** Timestamps follow the wall clock if the wall clock moves back by more than this number of microseconds. */
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

  monotonicUs(): number {
    return this.#monotonicMs() * 1_000;
  }

  /** Returns a new timestamp. The argument is the current result of `monotonicUs()`. */
  stampUs(monotonicUs: number): number {
    const wallUs = this.#wallMs() * 1_000;
    if (Math.abs(this.#anchorUs + monotonicUs - wallUs) > DEVIATION_MAX_US) this.#anchorUs = wallUs - monotonicUs;
    const us = Math.floor(this.#anchorUs + monotonicUs);
    this.#lastUs = this.#lastUs - us > BACKWARD_MAX_US ? us : Math.max(this.#lastUs + 1, us);
    return this.#lastUs;
  }

  nowUs(): number {
    return this.stampUs(this.monotonicUs());
  }
}

/** Timestamps and ids of live runs come from this clock. */
export const clock: Clock = new Clock();
