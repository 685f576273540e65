import { monotonicNowMs, wallNowMs } from './timers.ts';

export { monotonicNowMs, wallNowMs };

/**
 * Maximum difference between timestamps and the system clock, in microseconds. Timestamps that differ more are set to
 * the system clock again.
 */
const DEVIATION_MAX_US = 20_000;

/** If the system clock moves back by more than this many microseconds, timestamps move back too. */
const BACKWARD_MAX_US = 5_000_000;

/**
 * Creates timestamps in whole microseconds since 1970. Each timestamp is greater than the previous one, so runs sort by
 * creation time, unless the system clock moves back by more than 5 s. Durations are measured with the monotonic clock.
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

/** The clock for timestamps and ids of runs that this process records. */
export const clock: Clock = new Clock();
