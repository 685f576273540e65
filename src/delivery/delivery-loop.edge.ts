import { clearTimer, delay, setTimer } from '../platform/timers.ts';
import { Batch, type Delivery, isOpen, reportBug } from './delivery.ts';
import type { LoopHooks } from './delivery-loop.ts';
import type { ExporterParts } from './exporter-parts.ts';
import { Settling } from './settling.ts';
import type { DeliveryStates } from './states.ts';
import { type Outcome, UNSENT } from './wire/outcome.ts';
import type { Sender } from './wire/sender.ts';

/** How often a flush checks whether other requests have sent their batches, in milliseconds. */
const POLL_MS = 20;

/** A batch counts as lost this many milliseconds after its deadline. */
const LOST_AFTER_MS = 1_000;

const FAILED: Outcome = { kind: 'failed', detail: 'the batch could not be sent' };

interface InFlight {
  readonly batch: Batch;
  readonly endMs: number;
}

/**
 * Replaces `delivery-loop.ts` on runtimes where timers, promises and connections end with their request. A batch is
 * sent by a flush, or by the call that fills the batch. No request waits for another request's promise.
 */
export class DeliveryLoop {
  readonly #parts: ExporterParts;
  readonly #states: DeliveryStates;
  readonly #changed: () => void;
  readonly #sender: Sender;
  readonly #settling: Settling;
  readonly #inFlight: InFlight[] = [];
  waiters = 0;

  constructor(parts: ExporterParts, states: DeliveryStates, { changed }: LoopHooks) {
    this.#parts = parts;
    this.#states = states;
    this.#changed = changed;
    this.#sender = parts.sender((bytes) => {
      states.bytes += bytes;
    });
    this.#settling = new Settling(parts, states);
  }

  get isSending(): boolean {
    return this.#inFlight.length + this.#states.queue.retries.length > 0;
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
    const { gate, limits, monotonicMs } = this.#parts;
    const nowMs = monotonicMs();
    if (gate.openAtMs > nowMs || this.#inFlight.length >= limits.requestsInFlight) return;
    const batch = this.#nextBatch(nowMs);
    if (batch !== undefined) void this.#send(batch, nowMs + limits.requestTimeoutMs);
  }

  /**
   * Sends all ended runs, and the runs that have been open for longer than `limits.startDelayMs`. Resolves to true when
   * all runs that ended before this call are delivered or dropped. Resolves to false after `limitMs`, or if the service
   * asks for a longer pause.
   */
  async flush(limitMs: number): Promise<boolean> {
    const { gate, monotonicMs } = this.#parts;
    const endMs = monotonicMs() + limitMs;
    this.#takeBackLost();
    const ended = this.unsettled.filter((delivery) => !isOpen(delivery));
    if (limitMs > 0) gate.requestProbe(monotonicMs());
    for (;;) {
      const nowMs = monotonicMs();
      const batch = gate.openAtMs <= nowMs ? this.#nextBatch(nowMs) : undefined;
      if (batch !== undefined) await this.#send(batch, endMs);
      else if (ended.every(({ stage }) => stage === 'settled')) return true;
      else if (gate.pausedUntilMs > endMs) return false;
      if (monotonicMs() >= endMs) return false;
      if (batch === undefined) await delay(Math.min(POLL_MS, endMs - nowMs), undefined, true);
    }
  }

  /** Moves batches in flight back to the queue. */
  async stop(): Promise<void> {
    for (const inFlight of [...this.#inFlight]) this.#settle(inFlight, UNSENT);
  }

  #nextBatch(nowMs: number): Batch | undefined {
    const { info, limits } = this.#parts;
    const { queue } = this.#states;
    const retried = queue.takeRetry(nowMs);
    if (retried !== undefined) return retried;
    const items = this.#states.take(info.batch, nowMs - limits.startDelayMs);
    return items.length === 0 ? undefined : new Batch(items, nowMs);
  }

  /** Never rejects. */
  async #send(batch: Batch, endMs: number): Promise<void> {
    const { info, monotonicMs } = this.#parts;
    const inFlight = { batch, endMs };
    this.#inFlight.push(inFlight);
    void info.ask();
    const ending = new AbortController();
    const timer = setTimer(() => ending.abort(), endMs - monotonicMs());
    let outcome: Outcome | Outcome[] = FAILED;
    try {
      outcome = await this.#sender.send(batch, ending.signal);
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
      this.#settling.settle(inFlight.batch, outcome);
      this.#changed();
    } catch (thrown) {
      reportBug('delivery', thrown);
    }
  }

  #takeBackLost(): void {
    const lostMs = this.#parts.monotonicMs() - LOST_AFTER_MS;
    for (const inFlight of [...this.#inFlight]) if (inFlight.endMs < lostMs) this.#settle(inFlight, UNSENT);
  }
}
