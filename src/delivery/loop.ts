import { setMaxListeners } from 'node:events';
import { isJest } from '../config/environment.ts';
import { clearTimer, runInRootContext, setSoon, setTimer } from '../platform/timers.ts';
import type { Attempts } from './attempts.ts';
import type { Batch } from './batch.ts';
import { reportBug } from './delivery.ts';
import type { ExporterParts } from './exporter-parts.ts';
import type { LightRuns } from './slab/light-runs.ts';
import type { SlabWriter } from './slab/slab-writer.ts';
import type { Spill } from './spool/spill.ts';
import type { DeliveryStates } from './states.ts';

const NEVER = Number.POSITIVE_INFINITY;
const AT_ONCE = Number.NEGATIVE_INFINITY;

/** The ways that runs take besides the queue. */
interface Ways {
  readonly spill: Spill | undefined;
  readonly slabs: SlabWriter | undefined;
  readonly light: LightRuns | undefined;
}

/** Decides when a batch is created and sent. A single timer fires when the next batch or disk write is due. */
export class DeliveryLoop {
  readonly #parts: ExporterParts;
  readonly #states: DeliveryStates;
  readonly #ways: Ways;
  readonly #attempts: Attempts;
  readonly #abort = new AbortController();
  /** Time after which a run that has not ended is sent, in milliseconds. */
  readonly #startDueMs: number;
  /** False in Jest, where a timer could fire after the test file has ended. undici cannot be loaded at that time. */
  readonly #sendsByTimer = !isJest;
  #stopped = (): void => {};
  /** Number of pending `flush` and `ready` calls. Runs are sent without delay while a call is pending. */
  waiters = 0;
  #isPumpScheduled = false;
  #wakesAtMs = NEVER;
  #sleep: AbortController | undefined;
  #hasGivenUp = false;

  constructor(parts: ExporterParts, states: DeliveryStates, attempts: Attempts, ways: Ways) {
    this.#parts = parts;
    this.#states = states;
    this.#ways = ways;
    this.#attempts = attempts;
    this.#startDueMs = Math.max(parts.limits.startDelayMs, parts.limits.lingerMs);
    // Each request adds a listener to the abort signal, so Node's limit of ten listeners is lifted.
    setMaxListeners(0, this.#abort.signal);
  }

  /** Called when a run starts or ends, synchronously in the application's code. */
  recorded(): void {
    this.#hasGivenUp = false;
    if (this.#isPumpScheduled) return;
    const sendAtMs = Math.max(this.#attempts.opensAtMs, Math.min(this.#newRunsDueMs, this.#slabDueMs));
    this.#pumpAt(Math.min(this.#ways.spill?.dueMs ?? NEVER, this.#lightDueMs, sendAtMs));
  }

  /**
   * Resolves to true when all runs recorded before this call are delivered or dropped. Resolves to false after
   * `limitMs`. Resolves to false earlier if the service asks for a longer pause and no request is in flight, or, unless
   * `isClosing`, if the service refuses two probes for the same reason. The process stays alive during the flush.
   */
  async flush(limitMs: number, isClosing: boolean): Promise<boolean> {
    const { flushes } = this.#states;
    this.waiters++;
    this.#hasGivenUp = false;
    this.#ways.slabs?.seal();
    const flush = flushes.begin(this.#parts.monotonicMs() + limitMs, isClosing);
    runInRootContext(() => this.#pump());
    this.#attempts.endPausedFlushes();
    const timer = setTimer(() => flush.resolve(false), limitMs);
    try {
      return await flush.done;
    } finally {
      clearTimer(timer);
      this.waiters--;
      flushes.end(flush);
    }
  }

  /**
   * Called when the last flush of a process failed. With `fetch`, requests keep the process alive, so they are aborted,
   * and the next one is sent only after a run is recorded or `flush` or `ready` is called.
   */
  giveUp(): void {
    const { abort } = this.#parts;
    if (abort === undefined) return;
    this.#hasGivenUp = true;
    abort();
  }

  /** Stops sending. Aborts the requests in flight, and resolves when all requests have ended. */
  async stop(): Promise<void> {
    this.#sleep?.abort();
    this.#wakesAtMs = AT_ONCE;
    this.#abort.abort(new Error('the exporter was closed'));
    if (this.#attempts.inFlight.length === 0) return;
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
      const nowMs = this.#parts.monotonicMs();
      this.#ways.spill?.run(nowMs);
      if (this.#lightDueMs <= nowMs) this.#ways.light?.begin(this.#startedBy(nowMs));
      const slabDueMs = Math.max(this.#slabDueMs, this.#attempts.opensAtMs);
      if (slabDueMs <= nowMs) this.#ways.slabs?.seal();
      const newRuns = { dueMs: this.#newRunsDueMs, startsUntilMs: this.#startsUntilMs(nowMs) };
      const next = this.#hasGivenUp && this.waiters === 0 ? NEVER : this.#attempts.next(nowMs, newRuns);
      if (typeof next === 'number') {
        const slabAtMs = slabDueMs > nowMs ? slabDueMs : NEVER;
        this.#pumpAt(Math.min(next, this.#ways.spill?.dueMs ?? NEVER, this.#lightDueMs, slabAtMs));
      } else {
        this.#send(next);
        // At most one batch is encoded per turn of the event loop.
        this.wake();
      }
    } catch (thrown) {
      reportBug('delivery', thrown);
    }
  }

  /** Time at which new runs are sent: at once if they fill a batch, or after `lingerMs`. */
  get #newRunsDueMs(): number {
    const { firstReady, firstStart, runs, readyRuns, bytes } = this.#states.queue;
    const { info, limits } = this.#parts;
    if (runs === 0) return NEVER;
    if (this.waiters > 0 || readyRuns >= info.batch.runs || bytes >= info.batch.bytes) return AT_ONCE;
    const readyDueMs = firstReady === undefined ? NEVER : firstReady.queuedAtMs + limits.lingerMs;
    return firstStart === undefined ? readyDueMs : Math.min(readyDueMs, firstStart.startedAtMs + this.#startDueMs);
  }

  /** Time at which the oldest light run becomes a run of the queue, because its start is due. */
  get #lightDueMs(): number {
    return (this.#ways.light?.firstAtMs ?? NEVER) + this.#startDueMs;
  }

  /** Time at which the open body is sent, even if it is not full. */
  get #slabDueMs(): number {
    const firstAtMs = this.#ways.slabs?.firstAtMs ?? NEVER;
    return this.waiters > 0 && firstAtMs < NEVER ? AT_ONCE : firstAtMs + this.#parts.limits.lingerMs;
  }

  /** A batch includes open runs that started by this time. */
  #startsUntilMs(nowMs: number): number {
    const { firstStart, bytes } = this.#states.queue;
    if (this.waiters > 0 || bytes >= this.#parts.info.batch.bytes) return NEVER;
    if (firstStart === undefined || firstStart.startedAtMs + this.#startDueMs > nowMs) return AT_ONCE;
    return this.#startedBy(nowMs);
  }

  /** To save requests, open runs that would be due within `lingerMs` are sent, too. */
  #startedBy(nowMs: number): number {
    return nowMs - this.#startDueMs + this.#parts.limits.lingerMs;
  }

  #pumpAt(atMs: number): void {
    if (atMs >= this.#wakesAtMs) return;
    const waitMs = atMs - this.#parts.monotonicMs();
    if (waitMs <= 0) {
      this.wake();
      return;
    }
    if (!this.#sendsByTimer && this.waiters === 0) return;
    this.#wakesAtMs = atMs;
    this.#sleep?.abort();
    const sleep = new AbortController();
    this.#sleep = sleep;
    const wake = (): void => {
      this.#wakesAtMs = NEVER;
      this.#pump();
    };
    runInRootContext(() => this.#parts.delay(waitMs, sleep.signal).then(wake, () => {}));
  }

  #send(batch: Batch): void {
    const { signal } = this.#abort;
    void this.#attempts.send(batch, signal).then(() => {
      if (signal.aborted && this.#attempts.inFlight.length === 0) this.#stopped();
      this.wake();
    });
  }
}
