import { delay } from '../base/timers.ts';

/** Waits that can be ended all at once. They keep the process alive, as somebody waits for what follows. */
export class Waits {
  readonly #under = new Set<AbortController>();
  #over: Error | undefined;

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  /** Rejects with the reason of the signal, or with that of the end of all waits. */
  async wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#over !== undefined) throw this.#over;
    const ends = new AbortController();
    const abort = (): void => ends.abort(signal?.reason);
    this.#under.add(ends);
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    try {
      await delay(ms, ends.signal, true);
    } finally {
      this.#under.delete(ends);
      signal?.removeEventListener('abort', abort);
    }
  }

  /** Ends those under way, and all to come. */
  end(reason: Error): void {
    this.#over = reason;
    for (const ends of this.#under) ends.abort(reason);
  }
}
