import { DELAY_MAX_MS } from '../base/limits.ts';
import { clearTimer, setTimer } from '../base/timers.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import type { Delivery } from './delivery.ts';

export interface OpenRunsOptions {
  readonly runsMax: number;
  readonly ageMaxMs: number;
  readonly monotonicMs: () => number;
  /** Called for each run that is one too many, or too old; it has to be deleted by then or there. */
  readonly overdue: (delivery: Delivery) => void;
}

/** The runs that have started and not ended, oldest first, bounded in number and age. */
export class OpenRuns {
  readonly #options: OpenRunsOptions;
  readonly #deliveries = new Map<EncodedRun, Delivery>();
  /** One timer, for the run that has been open for longest. */
  #timer: NodeJS.Timeout | undefined;

  constructor(options: OpenRunsOptions) {
    this.#options = options;
  }

  add(delivery: Delivery): void {
    this.#deliveries.set(delivery.run, delivery);
    if (this.#deliveries.size > this.#options.runsMax) this.#options.overdue(this.#oldest() ?? delivery);
    this.#watch();
  }

  get size(): number {
    return this.#deliveries.size;
  }

  get(run: EncodedRun): Delivery | undefined {
    return this.#deliveries.get(run);
  }

  delete(run: EncodedRun): void {
    this.#deliveries.delete(run);
  }

  /** Stops watching their age. */
  close(): void {
    clearTimer(this.#timer);
  }

  #oldest(): Delivery | undefined {
    return this.#deliveries.values().next().value;
  }

  #watch(): void {
    const oldest = this.#timer === undefined ? this.#oldest() : undefined;
    if (oldest === undefined) return;
    const { ageMaxMs, monotonicMs } = this.#options;
    const leftMs = Math.max(1, oldest.startedAtMs + ageMaxMs - monotonicMs());
    this.#timer = setTimer(() => this.#sweep(), Math.min(DELAY_MAX_MS, leftMs)).unref();
  }

  #sweep(): void {
    this.#timer = undefined;
    const { ageMaxMs, monotonicMs, overdue } = this.#options;
    const bornBeforeMs = monotonicMs() - ageMaxMs;
    for (const delivery of [...this.#deliveries.values()]) {
      if (delivery.startedAtMs > bornBeforeMs) break;
      overdue(delivery);
    }
    this.#watch();
  }
}
