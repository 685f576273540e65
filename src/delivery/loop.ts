import { setMaxListeners } from 'node:events';
import { isJest } from '../config/environment.ts';
import { clearTimer, outside, setSoon, setTimer } from '../platform/timers.ts';
import { Attempts, type NewRuns } from './attempts.ts';
import { type Batch, type Delivery, reportBug } from './delivery.ts';
import type { Replay } from './spool/replay.ts';
import type { Spill } from './spool/spill.ts';
import type { DeliveryStates, ExporterParts } from './states.ts';
import { FAILED, type Outcome } from './wire/outcome.ts';
import type { Sender } from './wire/sender.ts';

const NEVER = Number.POSITIVE_INFINITY;

export interface LoopHooks {
  readonly spill: Spill | undefined;
  readonly replay: Replay | undefined;
  /** Called after each response, when every run in the batch is delivered, dropped or queued for a retry. */
  readonly changed: () => void;
}

/** Decides when a batch is created and sent. A single timer fires when the next batch or disk write is due. */
export class DeliveryLoop {
  readonly #parts: ExporterParts;
  readonly #states: DeliveryStates;
  readonly #hooks: LoopHooks;
  readonly #sender: Sender;
  readonly #attempts: Attempts;
  readonly #abort = new AbortController();
  /** Batches in flight. A `Set` would delay garbage collection of sent batches. */
  readonly #inFlight: Batch[] = [];
  /** Time after which a run that has not ended is sent, in milliseconds. */
  readonly #startDueMs: number;
  /** False in Jest, where a timer could fire after the test file has ended. undici cannot be loaded at that time. */
  readonly #sendsByTimer = !isJest;
  #stopped = (): void => {};
  /** Number of pending `flush` and `ready` calls. Runs are sent without delay while a call is pending. */
  waiters = 0;
  /** Time at which ended runs are sent, even if the batch is not full. */
  #lingerUntilMs = NEVER;
  #isPumpScheduled = false;
  #wakesAtMs = NEVER;
  #sleep: AbortController | undefined;

  constructor(parts: ExporterParts, states: DeliveryStates, hooks: LoopHooks) {
    this.#parts = parts;
    this.#states = states;
    this.#hooks = hooks;
    this.#sender = parts.sender((bytes) => states.hold(bytes));
    this.#attempts = new Attempts(parts, states);
    this.#startDueMs = Math.max(parts.limits.startDelayMs, parts.limits.lingerMs);
    // Each request adds a listener to the abort signal, so Node's limit of ten listeners is lifted.
    setMaxListeners(0, this.#abort.signal);
  }

  get isSending(): boolean {
    return this.#inFlight.length > 0 || this.#attempts.hasReady;
  }

  get oldestAtMs(): number | undefined {
    const { firstStart, firstReady, retries } = this.#states.queue;
    let oldestMs = Math.min(firstStart?.queuedAtMs ?? NEVER, firstReady?.queuedAtMs ?? NEVER);
    for (const { items } of [...retries, ...this.#inFlight]) {
      for (const { delivery } of items) oldestMs = Math.min(oldestMs, delivery.queuedAtMs);
    }
    return oldestMs === NEVER ? undefined : oldestMs;
  }

  get unsettled(): Delivery[] {
    const inFlight = this.#inFlight.flatMap(({ items }) => items.map(({ delivery }) => delivery));
    return [...new Set([...this.#states.queue.all(), ...inFlight])].filter(({ stage }) => stage !== 'settled');
  }

  /** Called when a run starts or ends, synchronously in the application's code. */
  recorded(): void {
    const spillDueMs = this.#hooks.spill?.dueMs ?? NEVER;
    if (spillDueMs !== NEVER) this.#pumpAt(spillDueMs);
    // A response wakes the loop.
    if (this.#inFlight.length >= this.#attempts.slots) return;
    if (this.#parts.endpoint.isClosed) {
      this.#pumpAt(this.#states.opensAtMs);
      return;
    }
    const { readyRuns, firstStart, bytes } = this.#states.queue;
    const { batch } = this.#parts.info;
    if (readyRuns >= batch.runs || bytes >= batch.bytes || this.waiters > 0) {
      this.wake();
    } else if (readyRuns === 0) {
      const dueMs = firstStart === undefined ? NEVER : firstStart.startedAtMs + this.#startDueMs;
      if (dueMs < this.#wakesAtMs) this.#wakeAt(dueMs);
    } else if (this.#lingerUntilMs === NEVER) {
      this.#lingerUntilMs = this.#parts.monotonicMs() + this.#parts.limits.lingerMs;
      this.#wakeAt(this.#lingerUntilMs);
    }
  }

  /**
   * Resolves to true when all runs recorded before this call are delivered or dropped. Resolves to false after
   * `limitMs`. Resolves to false earlier if the service asks for a longer pause and no request is in flight, or, unless
   * `isClosing`, if the service refuses two probes for the same reason. The process stays alive during the flush.
   */
  async flush(limitMs: number, isClosing: boolean): Promise<boolean> {
    const { flushes } = this.#states;
    this.waiters++;
    const flush = flushes.begin(this.#parts.monotonicMs() + limitMs, isClosing);
    outside(() => this.#pump());
    this.#endPausedFlushes();
    const timer = setTimer(() => flush.resolve(false), limitMs);
    try {
      return await flush.done;
    } finally {
      clearTimer(timer);
      this.waiters--;
      flushes.waiting.delete(flush);
    }
  }

  /** Ends flushes that would end during a pause. Requests in flight may still be accepted, so it waits for them. */
  #endPausedFlushes(): void {
    if (this.#inFlight.length === 0) this.#states.flushes.paused(this.#parts.endpoint.pausedUntilMs);
  }

  /** Stops sending. Aborts the requests in flight, and resolves when all requests have ended. */
  async stop(): Promise<void> {
    this.#sleep?.abort();
    this.#wakesAtMs = Number.NEGATIVE_INFINITY;
    this.#abort.abort(new Error('the exporter was closed'));
    if (this.#inFlight.length === 0) return;
    await new Promise<void>((resolve) => {
      this.#stopped = resolve;
    });
  }

  /** Schedules the next batch. At most one batch is created per turn of the event loop. */
  wake(): void {
    if (this.#isPumpScheduled) return;
    this.#isPumpScheduled = true;
    setSoon(() => {
      this.#isPumpScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    if (this.#abort.signal.aborted) return;
    try {
      this.#sendNext();
    } catch (thrown) {
      reportBug('delivery', thrown);
    }
  }

  #sendNext(): void {
    const { info, limits, monotonicMs } = this.#parts;
    const { queue } = this.#states;
    const nowMs = monotonicMs();
    // Reading comes first. Otherwise, runs would be read right after they were written.
    this.#hooks.replay?.run();
    this.#hooks.spill?.run(nowMs);
    if (queue.readyRuns === 0) this.#lingerUntilMs = NEVER;
    else if (this.#lingerUntilMs === NEVER) this.#lingerUntilMs = nowMs + limits.lingerMs;
    const next = this.#attempts.next(nowMs, this.#inFlight.length, this.#newRuns(nowMs));
    let dueMs = this.#hooks.spill?.dueMs ?? NEVER;
    if (typeof next === 'number') {
      dueMs = Math.min(dueMs, next);
    } else {
      void info.ask();
      void this.#send(next);
      // At most one batch is encoded per turn of the event loop.
      this.wake();
    }
    if (dueMs !== NEVER) this.#pumpAt(dueMs);
  }

  #newRuns(nowMs: number): NewRuns {
    return {
      dueMs: this.#newRunsDueMs,
      take: (size) => {
        const { limits } = this.#parts;
        const { queue } = this.#states;
        const items = this.#states.take(size, this.#startsUntilMs(nowMs));
        this.#lingerUntilMs = queue.readyRuns === 0 ? NEVER : nowMs + limits.lingerMs;
        return items;
      },
    };
  }

  get #newRunsDueMs(): number {
    const { queue } = this.#states;
    if (queue.runs === 0) return NEVER;
    const { runs, bytes } = this.#parts.info.batch;
    if (this.waiters > 0 || queue.readyRuns >= runs || queue.bytes >= bytes) return Number.NEGATIVE_INFINITY;
    return Math.min(this.#lingerUntilMs, (queue.firstStart?.startedAtMs ?? NEVER) + this.#startDueMs);
  }

  /** A batch includes open runs that started by this time. */
  #startsUntilMs(nowMs: number): number {
    const { firstStart, bytes } = this.#states.queue;
    if (this.waiters > 0 || bytes >= this.#parts.info.batch.bytes) return NEVER;
    if (firstStart === undefined || firstStart.startedAtMs + this.#startDueMs > nowMs) return Number.NEGATIVE_INFINITY;
    // To save requests, the batch includes open runs that would be due within `lingerMs`.
    return nowMs - this.#startDueMs + this.#parts.limits.lingerMs;
  }

  #pumpAt(atMs: number): void {
    if (atMs <= this.#parts.monotonicMs()) this.wake();
    else this.#wakeAt(atMs);
  }

  #wakeAt(atMs: number): void {
    if (atMs >= this.#wakesAtMs || (!this.#sendsByTimer && this.waiters === 0)) return;
    this.#wakesAtMs = atMs;
    this.#sleep?.abort();
    const sleep = new AbortController();
    this.#sleep = sleep;
    const wake = (): void => {
      this.#wakesAtMs = NEVER;
      this.#pump();
    };
    outside(() => this.#parts.delay(atMs - this.#parts.monotonicMs(), sleep.signal).then(wake, () => {}));
  }

  /** Never rejects. */
  async #send(batch: Batch): Promise<void> {
    const { signal } = this.#abort;
    this.#inFlight.push(batch);
    let outcome: Outcome | Outcome[] = FAILED;
    try {
      outcome = await this.#sender.send(batch, signal);
    } catch (thrown) {
      reportBug('delivery', thrown);
    }
    this.#inFlight.splice(this.#inFlight.indexOf(batch), 1);
    try {
      this.#attempts.settle(batch, outcome);
      this.#endPausedFlushes();
      this.#hooks.changed();
    } catch (thrown) {
      reportBug('delivery', thrown);
    }
    if (signal.aborted && this.#inFlight.length === 0) this.#stopped();
    this.wake();
  }
}
