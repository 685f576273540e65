import { monotonicNowMs } from '../base/clock.ts';

/** Less than the 30 s after which a tracer provider gives up on a processor or an exporter, so that it gets the result. */
const FLUSH_TIMEOUT_MS = 29_000;

/** Limits each flush, and a flush with the shutdown after it, to one timeout. */
export class FlushTime {
  /** The last flush, if it did not deliver everything. */
  #startedMs = Number.NEGATIVE_INFINITY;
  #endedMs = Number.NEGATIVE_INFINITY;

  /** Calls `flush` with the whole timeout. `flush` resolves to whether everything was delivered. */
  async whole(flush: (timeoutMs: number) => Promise<boolean>): Promise<void> {
    const startedMs = monotonicNowMs();
    const isDelivered = await flush(FLUSH_TIMEOUT_MS);
    this.#startedMs = isDelivered ? Number.NEGATIVE_INFINITY : startedMs;
    this.#endedMs = isDelivered ? Number.NEGATIVE_INFINITY : monotonicNowMs();
  }

  /** Milliseconds for the flush at shutdown: what a failed flush left of its timeout, if it ended less than a timeout ago. */
  get lastMs(): number {
    const isRecent = monotonicNowMs() - this.#endedMs < FLUSH_TIMEOUT_MS;
    return isRecent ? Math.max(0, FLUSH_TIMEOUT_MS - (this.#endedMs - this.#startedMs)) : FLUSH_TIMEOUT_MS;
  }
}
