/** So many times as long as a refresh took is waited before the next: what is large is read less often. */
const PAUSE_FACTOR = 3;
const PAUSE_MS_MIN = 100;

/**
 * Runs one refresh at a time. What is asked for meanwhile is one more, after it and after a pause that grows with the time
 * that it took.
 */
export class Refresh {
  readonly #work: (signal: AbortSignal) => Promise<void>;
  readonly #ending = new AbortController();
  #isRunning = false;
  #isWanted = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(work: (signal: AbortSignal) => Promise<void>) {
    this.#work = work;
  }

  ask(): void {
    if (this.#ending.signal.aborted) return;
    this.#isWanted = true;
    if (!this.#isRunning && this.#timer === undefined) void this.#run();
  }

  end(): void {
    this.#ending.abort();
    clearTimeout(this.#timer);
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    this.#isWanted = false;
    const startMs = performance.now();
    try {
      await this.#work(this.#ending.signal);
    } finally {
      this.#isRunning = false;
      const pauseMs = Math.max(PAUSE_MS_MIN, (performance.now() - startMs) * PAUSE_FACTOR);
      if (!this.#ending.signal.aborted) this.#timer = setTimeout(() => this.#resume(), pauseMs);
    }
  }

  #resume(): void {
    this.#timer = undefined;
    if (this.#isWanted) void this.#run();
  }
}
