import { monotonicNowMs } from '../base/clock.ts';

/**
 * Timeout of a flush. A tracer provider gives up on a processor or an exporter after 30 s, so it still receives the
 * result.
 */
const FLUSH_TIMEOUT_MS = 29_000;

/** Limits each flush to one timeout. A failed flush and a shutdown right after it share a single timeout. */
export class FlushTime {
  /** Start of the last flush, if it did not deliver everything. */
  #startedMs = Number.NEGATIVE_INFINITY;
  #endedMs = Number.NEGATIVE_INFINITY;

  /** Calls `flush` with the full timeout. `flush` resolves to true if everything was delivered. */
  async whole(flush: (timeoutMs: number) => Promise<boolean>): Promise<void> {
    const startedMs = monotonicNowMs();
    const isDelivered = await flush(FLUSH_TIMEOUT_MS);
    this.#startedMs = isDelivered ? Number.NEGATIVE_INFINITY : startedMs;
    this.#endedMs = isDelivered ? Number.NEGATIVE_INFINITY : monotonicNowMs();
  }

  /**
   * Milliseconds for the flush at shutdown: the full timeout, or its remainder after a failed flush that ended
   * recently.
   */
  get lastMs(): number {
    const isRecent = monotonicNowMs() - this.#endedMs < FLUSH_TIMEOUT_MS;
    return isRecent ? Math.max(0, FLUSH_TIMEOUT_MS - (this.#endedMs - this.#startedMs)) : FLUSH_TIMEOUT_MS;
  }
}
