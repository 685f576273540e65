import { DELAY_MAX_MS } from '../base/limits.ts';

const setTimer = setTimeout;

/** When a service may be sent to next: what one request is told holds for all of that service. */
export class Pace {
  readonly #monotonicMs: () => number;
  readonly #listeners = new Set<() => void>();
  #resumeAtMs = Number.NEGATIVE_INFINITY;
  #pausedMs = 0;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Milliseconds until sending may go on; 0 when it may. */
  get remainingMs(): number {
    return Math.max(0, this.#resumeAtMs - this.#monotonicMs());
  }

  /** Time spent in pauses so far: it does not count towards the age of what waits. */
  get pausedMs(): number {
    return this.#pausedMs - this.remainingMs;
  }

  pause(ms: number): void {
    const longer = this.#monotonicMs() + ms - Math.max(this.#resumeAtMs, this.#monotonicMs());
    if (longer <= 0) return;
    this.#pausedMs += longer;
    this.#resumeAtMs = this.#monotonicMs() + ms;
    for (const listener of this.#listeners) listener();
  }

  /** Calls the listener whenever the pause becomes longer, until the function given back is called. */
  onPause(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Waits out the pause, and pauses that are added meanwhile; rejects when the signal is aborted. */
  async waitOut(signal: AbortSignal): Promise<void> {
    while (this.remainingMs > 0) await delay(this.remainingMs, signal);
  }
}

/** Waits without keeping the process alive; rejects with the signal's reason when it is aborted. */
export function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimer(
      () => {
        signal.removeEventListener('abort', abort);
        resolve();
      },
      Math.min(ms, DELAY_MAX_MS),
    ).unref();
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}
