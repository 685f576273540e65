import { diagnostics } from '../../base/diagnostics.ts';
import type { StoreChange } from './store.ts';

export type Forgotten = NonNullable<StoreChange['forgotten']>;

/** Between two lines. */
const TELL_EVERY_MS = 60_000;

/** Tells what a store has forgotten: the first time at once, then in a line per minute at the most. */
export class ForgottenNotice {
  readonly #monotonicMs: () => number;
  readonly #limits: string;
  #runs = 0;
  #traces = 0;
  #toldAtMs = Number.NEGATIVE_INFINITY;

  /** `limits` are the names of the options that say how much is kept. */
  constructor(monotonicMs: () => number, limits: string) {
    this.#monotonicMs = monotonicMs;
    this.#limits = limits;
  }

  add({ runs, traces }: Forgotten): void {
    this.#runs += runs;
    this.#traces += traces;
    const nowMs = this.#monotonicMs();
    if (nowMs - this.#toldAtMs < TELL_EVERY_MS) return;
    diagnostics.warn(
      `the receiver's store has forgotten ${count(this.#traces, 'trace')} of ${count(this.#runs, 'run')}, the oldest first, to stay within ${this.#limits}`,
    );
    this.#runs = 0;
    this.#traces = 0;
    this.#toldAtMs = nowMs;
  }
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
