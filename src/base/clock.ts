import { monotonicNowMs, wallNowMs } from '../platform/timers.ts';

export { monotonicNowMs, wallNowMs };

/**
 * Maximum difference between a timestamp and the system clock, in microseconds. If the difference is larger, the clock
 * is reset to the system time.
 */
const DEVIATION_MAX_US = 20_000;

/** Maximum backward jump of the system clock that timestamps ignore, in microseconds. */
const BACKWARD_MAX_US = 5_000_000;

/**
 * Creates timestamps in whole microseconds since 1970. Each timestamp is greater than the previous one, so runs sort by
 * creation time. Timestamps move back only if the system clock moves back by more than 5 s. The monotonic clock
 * measures durations.
 */
export class Clock {
  readonly #wallMs: () => number;
  readonly #monotonicMs: () => number;
  /** System clock minus monotonic clock, in microseconds. */
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

  /** Returns a new timestamp. Pass the current result of `monotonicUs()`. */
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

/** The clock for the timestamps and ids of all runs in this process. */
export const clock: Clock = new Clock();
