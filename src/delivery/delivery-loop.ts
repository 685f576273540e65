import { setMaxListeners } from 'node:events';
import { isJest } from '../config/environment.ts';
import { clearTimer, outside, setSoon, setTimer } from '../platform/timers.ts';
import { Batch, type Delivery, reportBug } from './delivery.ts';
import type { ExporterParts } from './exporter-parts.ts';
import { Settling } from './settling.ts';
import type { Replay } from './spool/replay.ts';
import type { Spill } from './spool/spill.ts';
import type { DeliveryStates } from './states.ts';
import type { Outcome } from './wire/outcome.ts';
import type { Sender } from './wire/sender.ts';

/** Retry interval during a flush, in milliseconds. A flush does not wait for the normal retry delay. */
const END_BACK_OFFS_EVERY_MS = 500;

/** No new batch is created while this many runs are waiting for a retry. Does not apply during an outage. */
const RETRIED_RUNS_MAX = 1_000;

const NEVER = Number.POSITIVE_INFINITY;

const FAILED: Outcome = { kind: 'failed', detail: 'the batch could not be sent' };

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
  readonly #settling: Settling;
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
  #backOffsEndedAtMs = Number.NEGATIVE_INFINITY;
  /** True while the service is unavailable or `limits.requestsInFlight` is reached. */
  #isHeld = false;
  #isPumpScheduled = false;
  #wakesAtMs = NEVER;
  #sleep: AbortController | undefined;

  constructor(parts: ExporterParts, states: DeliveryStates, hooks: LoopHooks) {
    this.#parts = parts;
    this.#states = states;
    this.#hooks = hooks;
    this.#sender = parts.sender((bytes) => {
      states.bytes += bytes;
    });
    this.#settling = new Settling(parts, states);
    this.#startDueMs = Math.max(parts.limits.startDelayMs, parts.limits.lingerMs);
    // Each request adds a listener to the abort signal, so Node's limit of ten listeners is lifted.
    setMaxListeners(0, this.#abort.signal);
  }

  get isSending(): boolean {
    return this.#inFlight.length + this.#states.queue.retries.length > 0;
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
    if (this.#isHeld) return;
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
   * `limitMs`. Resolves to false earlier if the service asks for a longer pause and no request is in flight, or if the
   * service refuses two test requests for the same reason. The process stays alive during the flush.
   */
  async flush(limitMs: number): Promise<boolean> {
    const { gate, monotonicMs } = this.#parts;
    const { flushes } = this.#states;
    const nowMs = monotonicMs();
    this.waiters++;
    const flush = flushes.begin(nowMs + limitMs);
    if (limitMs > 0) gate.requestProbe(nowMs);
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
    if (this.#inFlight.length === 0) this.#states.flushes.paused(this.#parts.gate.pausedUntilMs);
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
    const { gate, info, limits, monotonicMs } = this.#parts;
    const states = this.#states;
    const nowMs = monotonicMs();
    if (states.flushes.waiting.size > 0) this.#endBackOffs(nowMs);
    this.#hooks.spill?.run(nowMs);
    this.#hooks.replay?.run();
    if (states.queue.readyRuns === 0) this.#lingerUntilMs = NEVER;
    else if (this.#lingerUntilMs === NEVER) this.#lingerUntilMs = this.#isHeld ? nowMs : nowMs + limits.lingerMs;
    const isOpen = gate.openAtMs <= nowMs;
    if (isOpen && this.#hasSlot) {
      const batch = states.queue.takeRetry(nowMs) ?? this.#freshBatch(nowMs);
      if (batch !== undefined) {
        if (gate.pausedUntilMs <= nowMs) void info.ask();
        void this.#send(batch);
      }
    }
    this.#sleepUntilDue(isOpen);
  }

  get #hasSlot(): boolean {
    const { gate, limits } = this.#parts;
    return this.#inFlight.length < (gate.refusals > 0 ? 1 : limits.requestsInFlight);
  }

  #freshBatch(nowMs: number): Batch | undefined {
    if (this.#freshDueMs > nowMs) return undefined;
    const { info, limits } = this.#parts;
    const states = this.#states;
    const { firstStart, bytes } = states.queue;
    let startsUntilMs = Number.NEGATIVE_INFINITY;
    if (this.waiters > 0 || bytes >= info.batch.bytes) startsUntilMs = NEVER;
    // To save requests, the batch includes open runs that would be due within `lingerMs`.
    else if (firstStart !== undefined && firstStart.startedAtMs + this.#startDueMs <= nowMs) {
      startsUntilMs = nowMs - this.#startDueMs + limits.lingerMs;
    }
    const items = states.take(info.batch, startsUntilMs);
    this.#lingerUntilMs = states.queue.readyRuns === 0 ? NEVER : nowMs + limits.lingerMs;
    return new Batch(items, nowMs);
  }

  get #freshDueMs(): number {
    const { info, gate, limits } = this.#parts;
    const { queue } = this.#states;
    const batches = this.#inFlight.length + queue.retries.length;
    const mayForm = gate.isOutage ? batches < limits.requestsInFlight : queue.retriedRuns < RETRIED_RUNS_MAX;
    if (!mayForm || queue.runs === 0) return NEVER;
    const { runs, bytes } = info.batch;
    if (this.waiters > 0 || queue.readyRuns >= runs || queue.bytes >= bytes) return Number.NEGATIVE_INFINITY;
    return Math.min(this.#lingerUntilMs, (queue.firstStart?.startedAtMs ?? NEVER) + this.#startDueMs);
  }

  #endBackOffs(nowMs: number): void {
    if (nowMs < this.#backOffsEndedAtMs + END_BACK_OFFS_EVERY_MS) return;
    this.#backOffsEndedAtMs = nowMs;
    this.#parts.gate.endBackOff();
    this.#states.queue.endBackOffs(nowMs);
  }

  #sleepUntilDue(isOpen: boolean): void {
    const { gate } = this.#parts;
    const { spill } = this.#hooks;
    const { queue, flushes } = this.#states;
    const hasSlot = this.#hasSlot;
    this.#isHeld = !isOpen || !hasSlot;
    let dueMs = spill?.dueMs ?? NEVER;
    if (hasSlot) {
      const hasWork = queue.runs + queue.retries.length > 0 || this.#parts.spool?.hasNext === true;
      if (isOpen) dueMs = Math.min(dueMs, queue.nextRetryMs, this.#freshDueMs);
      else if (hasWork) dueMs = Math.min(dueMs, gate.openAtMs);
    }
    const isBackingOff = queue.retries.length > 0 || (!isOpen && gate.openAtMs > gate.pausedUntilMs);
    if (flushes.waiting.size > 0 && isBackingOff)
      dueMs = Math.min(dueMs, this.#backOffsEndedAtMs + END_BACK_OFFS_EVERY_MS);
    if (dueMs !== NEVER) this.#pumpAt(dueMs);
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
      this.#settling.settle(batch, outcome);
      this.#endPausedFlushes();
      this.#hooks.changed();
    } catch (thrown) {
      reportBug('delivery', thrown);
    }
    if (signal.aborted && this.#inFlight.length === 0) this.#stopped();
    this.wake();
  }
}
