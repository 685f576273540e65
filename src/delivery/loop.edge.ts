import { clearTimer, delay, setTimer } from '../platform/timers.ts';
import type { Attempts, NewRuns } from './attempts.ts';
import type { Batch } from './batch.ts';
import { isOpen } from './delivery.ts';
import type { ExporterParts } from './exporter-parts.ts';
import type { DeliveryStates } from './states.ts';
import { type Outcome, UNSENT } from './wire/outcome.ts';

/** How often a flush checks whether other requests have sent their batches, in milliseconds. */
const POLL_MS = 20;

/** A batch counts as lost this many milliseconds after its deadline. */
const LOST_AFTER_MS = 1_000;

/** A request with less than half of the request timeout says nothing about its content. */
const TOO_LATE: Outcome = { kind: 'failed', failure: 'unavailable', detail: 'the flush ended before the response' };

const LOST: Outcome = { kind: 'failed', failure: 'later', detail: 'no response arrived before the deadline' };

/**
 * Replaces `loop.ts` on runtimes where timers, promises and connections end with their request. A batch is sent by a
 * flush, or by the call that fills the batch. No request waits for another request's promise.
 */
export class DeliveryLoop {
  readonly #parts: ExporterParts;
  readonly #states: DeliveryStates;
  readonly #attempts: Attempts;
  waiters = 0;

  constructor(parts: ExporterParts, states: DeliveryStates, attempts: Attempts) {
    this.#parts = parts;
    this.#states = states;
    this.#attempts = attempts;
  }

  recorded(): void {
    const { readyRuns, bytes } = this.#states.queue;
    const { batch } = this.#parts.info;
    if (readyRuns >= batch.runs || bytes >= batch.bytes) this.wake();
  }

  /** Sends a batch without waiting for the response. Does nothing while the service accepts no requests. */
  wake(): void {
    const { limits, monotonicMs } = this.#parts;
    const nowMs = monotonicMs();
    const next = this.#attempts.next(nowMs, this.#newRuns(nowMs));
    if (typeof next !== 'number') void this.#send(next, nowMs + limits.requestTimeoutMs);
  }

  /**
   * Sends all ended runs, and the runs that have been open for longer than `limits.startDelayMs`. Resolves to true when
   * all runs that ended before this call are delivered or dropped. Resolves to false after `limitMs`, if the service
   * asks for a longer pause, or, unless `isClosing`, if the service refuses two probes for the same reason.
   */
  async flush(limitMs: number, isClosing: boolean): Promise<boolean> {
    const { endpoint, monotonicMs } = this.#parts;
    const { flushes } = this.#states;
    const endMs = monotonicMs() + limitMs;
    const ended = this.#attempts.unsettled.filter((delivery) => !isOpen(delivery));
    const flush = flushes.begin(endMs, isClosing);
    try {
      while (!flush.isRefused) {
        this.#takeBackLost();
        const nowMs = monotonicMs();
        if (ended.every(({ stage }) => stage === 'settled') && this.#states.queue.readyRuns === 0) return true;
        if (nowMs >= endMs || endpoint.pausedUntilMs > endMs) break;
        const next = this.#attempts.next(nowMs, this.#newRuns(nowMs));
        if (typeof next !== 'number') await this.#send(next, endMs);
        else await delay(Math.min(POLL_MS, endMs - nowMs), undefined, true);
      }
      return ended.every(({ stage }) => stage === 'settled');
    } finally {
      flushes.end(flush);
    }
  }

  #newRuns(nowMs: number): NewRuns {
    const { queue } = this.#states;
    const startsUntilMs = nowMs - this.#parts.limits.startDelayMs;
    const { firstStart } = queue;
    const isDue = queue.readyRuns > 0 || (firstStart !== undefined && firstStart.startedAtMs <= startsUntilMs);
    return { dueMs: isDue ? nowMs : Number.POSITIVE_INFINITY, startsUntilMs };
  }

  /** Moves batches in flight back to the queue. */
  async stop(): Promise<void> {
    for (const batch of [...this.#attempts.inFlight]) this.#attempts.settle(batch, UNSENT);
  }

  /** Never rejects. */
  async #send(batch: Batch, endMs: number): Promise<void> {
    const limitMs = endMs - this.#parts.monotonicMs();
    const ending = new AbortController();
    const timer = setTimer(() => ending.abort(), limitMs);
    batch.endMs = endMs;
    await this.#attempts.send(
      batch,
      ending.signal,
      limitMs * 2 < this.#parts.limits.requestTimeoutMs ? TOO_LATE : LOST,
    );
    clearTimer(timer);
  }

  #takeBackLost(): void {
    const lostMs = this.#parts.monotonicMs() - LOST_AFTER_MS;
    for (const batch of [...this.#attempts.inFlight]) if (batch.endMs < lostMs) this.#attempts.settle(batch, LOST);
  }
}
