// Taken once, so that fake timers installed by a test of the application do not stop the clock.
/** Milliseconds since 1970, as the wall clock says it. */
export const wallNowMs: () => number = Date.now;
/** Milliseconds since an arbitrary moment, unaffected by the wall clock. */
export const monotonicNowMs: () => number = performance.now.bind(performance);

/** How far the wall clock may depart from the anchored monotonic one before the anchor is retaken. */
const DEPARTURE_MAX_US = 20_000;

/** Where a clock takes its time from; tests pass their own. */
export interface TimeSource {
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
}

/**
 * Time in whole microseconds since 1970. Stamps never repeat and never go backwards, so runs sort by creation; durations
 * come from the monotonic clock, so that a corrected wall clock changes none.
 */
export class Clock {
  readonly #source: TimeSource;
  #anchorUs: number;
  #lastUs = 0;

  constructor(source: TimeSource = { wallMs: wallNowMs, monotonicMs: monotonicNowMs }) {
    this.#source = source;
    this.#anchorUs = this.#takeAnchor(this.monotonicUs());
  }

  /** Microseconds since an arbitrary moment, unaffected by the wall clock; fractions of one included. */
  monotonicUs(): number {
    return this.#source.monotonicMs() * 1_000;
  }

  /** The stamp of a moment just read from `monotonicUs`: later than every stamp given before. */
  stampUs(monotonicUs: number): number {
    const wallUs = this.#source.wallMs() * 1_000;
    let us = Math.floor(this.#anchorUs + monotonicUs);
    // Date.now() is cut to the millisecond, so up to 1 ms of departure is no departure at all.
    if (Math.abs(us - wallUs) > DEPARTURE_MAX_US) {
      this.#anchorUs = this.#takeAnchor(monotonicUs);
      us = Math.floor(this.#anchorUs + monotonicUs);
    }
    this.#lastUs = Math.max(this.#lastUs + 1, us);
    return this.#lastUs;
  }

  nowUs(): number {
    return this.stampUs(this.monotonicUs());
  }

  #takeAnchor(monotonicUs: number): number {
    return this.#source.wallMs() * 1_000 - monotonicUs;
  }
}

/** The clock of the process: live runs take their stamps and ids from this one. */
export const clock: Clock = new Clock();
