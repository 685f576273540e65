/**
 * Each wait lets the event loop turn, so that `beforeExit` comes again: a listener of the application that traces something
 * there would keep the process for ever.
 */
const WAITS_MAX = 3;

/** An event loop that has waited for so long for something else has not ended, and ends anew. */
const SAME_END_MS = 10;

/** How long an exporter may still hold one end of the process, all its waits together. */
export class ExitAllowance {
  readonly #limitMs: number;
  #leftMs = 0;
  #waits = 0;
  #idleMs = Number.NEGATIVE_INFINITY;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** What is left for a wait; 0 when there is to be none. `idleMs` is for how long the event loop has been idle in all. */
  beginMs(idleMs: number): number {
    if (idleMs - this.#idleMs > SAME_END_MS) {
      this.#leftMs = this.#limitMs;
      this.#waits = 0;
    }
    if (this.#waits >= WAITS_MAX) return 0;
    this.#waits++;
    return this.#leftMs;
  }

  /** The wait is over, and has taken so long. */
  end(tookMs: number, idleMs: number): void {
    this.#leftMs = Math.max(0, this.#leftMs - tookMs);
    this.#idleMs = idleMs;
  }
}
