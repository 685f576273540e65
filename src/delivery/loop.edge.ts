import { clearTimer, delay, setTimer } from '../platform/timers.ts';
import { Attempts, type NewRuns } from './attempts.ts';
import { type Batch, type Delivery, isOpen, reportBug } from './delivery.ts';
import type { LoopHooks } from './loop.ts';
import type { DeliveryStates, ExporterParts } from './states.ts';
import { FAILED, type Outcome, UNSENT } from './wire/outcome.ts';
import type { Sender } from './wire/sender.ts';

/** How often a flush checks whether other requests have sent their batches, in milliseconds. */
const POLL_MS = 20;

/** A batch counts as lost this many milliseconds after its deadline. */
const LOST_AFTER_MS = 1_000;

/** A request with less than half of the request timeout says nothing about its content. */
const TOO_LATE: Outcome = { kind: 'failed', failure: 'unavailable', detail: 'the flush ended before the response' };

const LOST: Outcome = { kind: 'failed', failure: 'later', detail: 'no response arrived before the deadline' };

interface InFlight {
  readonly batch: Batch;
  readonly endMs: number;
}

/**
 * Replaces `loop.ts` on runtimes where timers, promises and connections end with their request. A batch is sent by a
 * flush, or by the call that fills the batch. No request waits for another request's promise.
 */
export class DeliveryLoop {
  readonly #parts: ExporterParts;
  readonly #states: DeliveryStates;
  readonly #changed: () => void;
  readonly #sender: Sender;
  readonly #attempts: Attempts;
  readonly #inFlight: InFlight[] = [];
  waiters = 0;

  constructor(parts: ExporterParts, states: DeliveryStates, { changed }: LoopHooks) {
    this.#parts = parts;
    this.#states = states;
    this.#changed = changed;
    this.#sender = parts.sender((bytes) => states.hold(bytes));
    this.#attempts = new Attempts(parts, states);
  }

  get isSending(): boolean {
    return this.#inFlight.length > 0 || this.#attempts.hasReady;
  }

  get oldestAtMs(): number | undefined {
    const times = this.unsettled.map(({ queuedAtMs }) => queuedAtMs);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  get unsettled(): Delivery[] {
    const inFlight = this.#inFlight.flatMap(({ batch }) => batch.items.map(({ delivery }) => delivery));
    return [...new Set([...this.#states.queue.all(), ...inFlight])].filter(({ stage }) => stage !== 'settled');
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
    const next = this.#attempts.next(nowMs, this.#inFlight.length, this.#newRuns(nowMs));
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
    const ended = this.unsettled.filter((delivery) => !isOpen(delivery));
    const flush = flushes.begin(endMs, isClosing);
    try {
      while (!flush.isRefused) {
        this.#takeBackLost();
        const nowMs = monotonicMs();
        if (ended.every(({ stage }) => stage === 'settled') && this.#states.queue.readyRuns === 0) return true;
        if (nowMs >= endMs || endpoint.pausedUntilMs > endMs) break;
        const next = this.#attempts.next(nowMs, this.#inFlight.length, this.#newRuns(nowMs));
        if (typeof next !== 'number') await this.#send(next, endMs);
        else await delay(Math.min(POLL_MS, endMs - nowMs), undefined, true);
      }
      return ended.every(({ stage }) => stage === 'settled');
    } finally {
      flushes.waiting.delete(flush);
    }
  }

  #newRuns(nowMs: number): NewRuns {
    const { queue } = this.#states;
    const startsUntilMs = nowMs - this.#parts.limits.startDelayMs;
    const { firstStart } = queue;
    const isDue = queue.readyRuns > 0 || (firstStart !== undefined && firstStart.startedAtMs <= startsUntilMs);
    return {
      dueMs: isDue ? nowMs : Number.POSITIVE_INFINITY,
      take: (size) => this.#states.take(size, startsUntilMs),
    };
  }

  /** Moves batches in flight back to the queue. */
  async stop(): Promise<void> {
    for (const inFlight of [...this.#inFlight]) this.#settle(inFlight, UNSENT);
  }

  /** Never rejects. */
  async #send(batch: Batch, endMs: number): Promise<void> {
    const { info, monotonicMs } = this.#parts;
    const inFlight = { batch, endMs };
    this.#inFlight.push(inFlight);
    void info.ask();
    const ending = new AbortController();
    const limitMs = endMs - monotonicMs();
    const timer = setTimer(() => ending.abort(), limitMs);
    let outcome: Outcome | Outcome[] = FAILED;
    try {
      outcome = await this.#sender.send(batch, ending.signal);
      if (outcome === UNSENT) outcome = limitMs * 2 < this.#parts.limits.requestTimeoutMs ? TOO_LATE : LOST;
    } catch (thrown) {
      reportBug('delivery', thrown);
    } finally {
      clearTimer(timer);
    }
    this.#settle(inFlight, outcome);
  }

  #settle(inFlight: InFlight, outcome: Outcome | Outcome[]): void {
    const at = this.#inFlight.indexOf(inFlight);
    if (at < 0) return;
    this.#inFlight.splice(at, 1);
    try {
      this.#attempts.settle(inFlight.batch, outcome);
      this.#changed();
    } catch (thrown) {
      reportBug('delivery', thrown);
    }
  }

  #takeBackLost(): void {
    const lostMs = this.#parts.monotonicMs() - LOST_AFTER_MS;
    for (const inFlight of [...this.#inFlight]) if (inFlight.endMs < lostMs) this.#settle(inFlight, LOST);
  }
}
