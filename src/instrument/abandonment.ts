import { clock } from '../base/clock.ts';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { clearTimer, outside, setSoon, setTimer } from '../base/timers.ts';

/** A run whose end depends on what the application does with a result. It must not hold on to that result. */
export interface Watched {
  /** Set at each sign of life, and taken back by the watch. */
  wasTouched: boolean;
  /** Time without one after which the result counts as abandoned. */
  readonly idleMaxMs: number;
  /** Called once, when there will be no end. */
  abandon(reason: string): void;
}

/** Tells when results are collected before their end, or stay quiet for too long. One timer serves all of them. */
export class Abandonment {
  readonly #monotonicMs: () => number;
  /** Those of this turn of the event loop: many a generator is through before it is over, and registering is dear. */
  readonly #fresh = new Map<Watched, object>();
  /** Since which sweep each has been quiet; undefined when none has come by yet. */
  readonly #quietSinceMs = new Map<Watched, number | undefined>();
  readonly #collected: FinalizationRegistry<Watched>;
  #timer: NodeJS.Timeout | undefined;
  #delayMs = Number.POSITIVE_INFINITY;

  constructor(monotonicMs: () => number = () => clock.monotonicUs() / 1_000) {
    this.#monotonicMs = monotonicMs;
    this.#collected = new FinalizationRegistry((watched) =>
      this.#abandon(watched, 'the result was collected before its end'),
    );
  }

  /** Begins to watch; what is watched already depends on the given object from now on. */
  watch(result: object, watched: Watched): void {
    this.unwatch(watched);
    if (this.#fresh.size === 0) setSoon(() => this.#register()).unref();
    this.#fresh.set(watched, result);
  }

  /** The end is known, or will come by another way. */
  unwatch(watched: Watched): void {
    if (this.#fresh.delete(watched)) return;
    if (this.#quietSinceMs.delete(watched)) this.#collected.unregister(watched);
  }

  #register(): void {
    for (const [watched, result] of this.#fresh) {
      this.#collected.register(result, watched, watched);
      this.#quietSinceMs.set(watched, undefined);
      if (watched.idleMaxMs < this.#delayMs) this.#sweepIn(watched.idleMaxMs);
    }
    this.#fresh.clear();
  }

  /** Between one and two limits pass before a quiet one is given up: a sign of life carries no time, which would be dear. */
  sweep(): void {
    const nowMs = this.#monotonicMs();
    this.#delayMs = Number.POSITIVE_INFINITY;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [watched, sinceMs = nowMs] of this.#quietSinceMs) {
      const quietMs = watched.wasTouched ? 0 : nowMs - sinceMs;
      if (quietMs >= watched.idleMaxMs) {
        this.#abandon(watched, `nothing was asked of the result for ${watched.idleMaxMs / 1_000} s`);
        continue;
      }
      this.#quietSinceMs.set(watched, nowMs - quietMs);
      watched.wasTouched = false;
      nextMs = Math.min(nextMs, watched.idleMaxMs - quietMs);
    }
    if (nextMs < this.#delayMs) this.#sweepIn(nextMs);
  }

  #sweepIn(delayMs: number): void {
    clearTimer(this.#timer);
    this.#delayMs = delayMs;
    this.#timer = setTimer(() => this.sweep(), Math.min(DELAY_MAX_MS, Math.max(1, delayMs))).unref();
  }

  #abandon(watched: Watched, reason: string): void {
    if (!this.#quietSinceMs.has(watched)) return;
    this.unwatch(watched);
    outside(() => watched.abandon(reason));
  }
}

/** The one of the process. */
export const abandonment: Abandonment = new Abandonment();
