import { setMaxListeners } from 'node:events';
import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { DELAY_MAX_MS, type Limits } from '../base/limits.ts';
import { messageOf } from '../base/text.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import type { CapturePolicy, FlushLimit, FlushResult, RunSink } from '../run/sink.ts';
import { isoTimestamp } from '../run/timestamp.ts';
import { Barrier } from './barrier.ts';
import { type Delivery, heldBytes, type Item, releasePosted, type Stage } from './delivery.ts';
import type { DropNotice } from './drop-notice.ts';
import type { DropReason, Place, Stats } from './ledger.ts';
import { OpenRuns } from './open-runs.ts';
import type { Pace } from './pace.ts';
import { DeliveryQueue } from './queue.ts';
import type { ServiceInfo } from './service-info.ts';
import type { Outcome, Transport } from './transport.ts';

// Taken once, so that fake timers installed by a test of the application do not stop delivery.
const { setTimeout: setTimer, clearTimeout: clearTimer, setImmediate: setSoon } = globalThis;

/** Runs and ends of accepted traces are taken up to this multiple of the queue's limits. */
const ACCEPTED_SHARE = 1.25;

const FLUSH_TIMEOUT_MS = 30_000;

/** What an exporter is put together from. */
export interface ExporterParts {
  readonly capture: CapturePolicy;
  readonly limits: Limits;
  readonly transport: Transport;
  readonly info: ServiceInfo;
  readonly pace: Pace;
  readonly stats: Stats;
  readonly notice: DropNotice;
  readonly monotonicMs: () => number;
  /** Called when it takes its first run. */
  readonly opened: (exporter: Exporter) => void;
  /** Called when it has closed; ends the connections. */
  readonly closed: (exporter: Exporter) => Promise<void>;
}

/**
 * Takes runs, keeps them within bounds, and delivers them in the background: the one place where the state of delivery
 * changes. `delivery.ts` draws the way of a run, `ledger.ts` says how runs are counted.
 */
export class Exporter implements RunSink {
  readonly capture: CapturePolicy;
  readonly #parts: ExporterParts;
  readonly #limits: Limits;
  readonly #stats: Stats;
  readonly #open: OpenRuns;
  readonly #queue = new DeliveryQueue();
  readonly #barrier = new Barrier();
  readonly #abort = new AbortController();
  readonly #sends = new Set<Promise<void>>();
  #state: 'open' | 'retiring' | 'closing' | 'closed' = 'open';
  /** Runs of which something waits or is under way, and the bytes of it. */
  #backlogRuns = 0;
  #backlogBytes = 0;
  /** Flushes that wait: while there are any, everything is sent at once. */
  #flushes = 0;
  /** How much of what waits has lingered for long enough, of either line of the queue. */
  #due = { starts: 0, ready: 0 };
  #isPumpScheduled = false;
  #lingerTimer: NodeJS.Timeout | undefined;
  #closing: Promise<FlushResult> | undefined;

  constructor(parts: ExporterParts) {
    this.#parts = parts;
    this.capture = parts.capture;
    this.#limits = parts.limits;
    this.#stats = parts.stats;
    // Each request in flight listens to it.
    setMaxListeners(0, this.#abort.signal);
    this.#open = new OpenRuns({
      runsMax: parts.limits.openRuns,
      ageMaxMs: parts.limits.openRunAgeMs,
      monotonicMs: parts.monotonicMs,
      overdue: (delivery) => this.#sendIncomplete(delivery),
    });
  }

  start(run: EncodedRun): boolean {
    if (this.#stats.created++ === 0) this.#parts.opened(this);
    const refusal = this.#refusal(run);
    if (refusal !== undefined) {
      this.#countDrop(run, refusal);
      return false;
    }
    const nowMs = this.#parts.monotonicMs();
    const delivery: Delivery = {
      run,
      startedAtMs: nowMs,
      recordedAtMs: nowMs,
      stage: 'started',
      bytes: 0,
      postGroup: this.#barrier.enter(),
      patchGroup: undefined,
    };
    this.#stats.open++;
    this.#backlogRuns++;
    this.#setBytes(delivery, heldBytes(run));
    this.#queue.addStart(delivery);
    this.#open.add(delivery);
    this.#schedule();
    return true;
  }

  end(run: EncodedRun): void {
    const delivery = this.#open.get(run);
    // Given up before its end, or sent as incomplete: counted already.
    if (delivery === undefined) return;
    if (this.#state === 'closed') {
      this.#giveUp(delivery, 'closed');
      return;
    }
    this.#open.delete(run);
    this.#stats.open--;
    this.#stats.queued++;
    this.#fitEnd(delivery);
    const bytesBefore = delivery.bytes;
    this.#setBytes(delivery, heldBytes(run));
    if (delivery.stage === 'started') {
      delivery.stage = 'whole';
      this.#queue.moveToReady(delivery, bytesBefore);
    } else {
      delivery.patchGroup = this.#barrier.enter();
      if (delivery.stage === 'posting') delivery.stage = 'held';
      else this.#queuePatch(delivery);
    }
    this.#schedule();
  }

  /**
   * Sends what was recorded before the call and waits until it has settled. Returns early when the service has asked for
   * a pause that outlasts the limit. Never rejects.
   */
  async flush({ timeoutMs }: FlushLimit = {}): Promise<FlushResult> {
    if (this.#backlogRuns === 0) return { ok: true, pending: 0 };
    const passed = this.#barrier.passed();
    const limitMs = timeoutMs !== undefined && timeoutMs >= 0 ? Math.min(timeoutMs, DELAY_MAX_MS) : FLUSH_TIMEOUT_MS;
    this.#flushes++;
    this.#pump();
    const ok = this.#parts.pace.remainingMs <= limitMs && (await isSettledWithin(passed, limitMs));
    this.#flushes--;
    return { ok, pending: ok ? 0 : this.#backlogRuns };
  }

  /** Flushes within the limit, then gives up what is left; later runs are counted as dropped. */
  close(limit?: FlushLimit): Promise<FlushResult> {
    this.#closing ??= this.#close(limit);
    return this.#closing;
  }

  /** Closes as soon as the runs that it has are finished and delivered; theirs are still taken until then. */
  retire(): void {
    if (this.#state !== 'open') return;
    this.#state = 'retiring';
    this.#schedule();
  }

  stats(): Stats {
    return structuredClone(this.#stats);
  }

  /** Says in the log what was dropped and has not been told, and what will be lost if the process ends now. */
  tellLosses(): void {
    this.#parts.notice.tell();
    if (this.#backlogRuns > 0) diagnostics.warn(`the process ends with ${this.#backlogRuns} runs not delivered`);
  }

  async #close(limit: FlushLimit | undefined): Promise<FlushResult> {
    this.#state = 'closing';
    const result = await this.flush(limit);
    this.#state = 'closed';
    clearTimer(this.#lingerTimer);
    this.#open.close();
    this.#abort.abort(new Error('the exporter was closed'));
    for (const delivery of this.#queue.drain()) this.#giveUp(delivery, 'closed');
    await Promise.allSettled(this.#sends);
    this.#parts.notice.tell();
    await this.#parts.closed(this);
    return result;
  }

  #refusal(run: EncodedRun): DropReason | undefined {
    if (this.#state === 'closing' || this.#state === 'closed') return 'closed';
    if (run.refused) return 'queue_full';
    const share = run.parentRunId === undefined ? 1 : ACCEPTED_SHARE;
    const { queueRuns, queueBytes } = this.#limits;
    const isFull = this.#backlogRuns >= queueRuns * share || this.#backlogBytes >= queueBytes * share;
    return isFull ? 'queue_full' : undefined;
  }

  /** Beyond the limits an end is kept without its payloads. */
  #fitEnd({ run }: Delivery): void {
    if (this.#backlogBytes < this.#limits.queueBytes * ACCEPTED_SHARE) return;
    if (run.outputs !== undefined) run.outputs = '{"runspan":"left out: the queue was full"}';
    run.events = undefined;
    run.attachments = undefined;
  }

  #setBytes(delivery: Delivery, bytes: number): void {
    this.#backlogBytes += bytes - delivery.bytes;
    delivery.bytes = bytes;
  }

  #queuePatch(delivery: Delivery): void {
    // A posted run has nothing in the backlog until its patch comes.
    if (delivery.stage === 'posted') this.#backlogRuns++;
    delivery.stage = 'patch';
    delivery.recordedAtMs = this.#parts.monotonicMs();
    this.#queue.addReady(delivery);
  }

  // ── Sending ──

  /** Called after every change: decides whether a batch is to be sent now, later, or when a request has finished. */
  #schedule(): void {
    if (this.#state === 'retiring' && this.#backlogRuns === 0 && this.#stats.open === 0) void this.close();
    if (this.#sends.size >= this.#limits.requestsInFlight) return;
    if (this.#isBatchDue) this.#pumpSoon();
    else if (this.#queue.runs > 0) this.#linger();
  }

  get #isBatchDue(): boolean {
    const { runs, bytes } = this.#parts.info.batch;
    if (this.#queue.readyRuns >= runs || this.#queue.bytes >= bytes) return true;
    return this.#queue.runs > 0 && (this.#flushes > 0 || this.#due.starts + this.#due.ready > 0);
  }

  /** The linger counts from the first run that waits; later ones do not put it off. */
  #linger(): void {
    this.#lingerTimer ??= setTimer(() => {
      this.#lingerTimer = undefined;
      this.#due = { starts: this.#queue.runs - this.#queue.readyRuns, ready: this.#queue.readyRuns };
      this.#pump();
    }, this.#limits.lingerMs).unref();
  }

  /** Batches are laid outside of the call path, one for each turn of the event loop. */
  #pumpSoon(): void {
    if (this.#isPumpScheduled) return;
    this.#isPumpScheduled = true;
    setSoon(() => {
      this.#isPumpScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    if (this.#state === 'closed' || this.#sends.size >= this.#limits.requestsInFlight || !this.#isBatchDue) return;
    void this.#parts.info.ask();
    const items = this.#queue.take(this.#parts.info.batch, this.#startsMax);
    const ended = items.filter((item) => item.isEnded).length;
    this.#due.ready = Math.max(0, this.#due.ready - ended);
    this.#due.starts = this.#queue.runs === this.#queue.readyRuns ? 0 : this.#due.starts - (items.length - ended);
    const send = this.#send(items).finally(() => {
      this.#sends.delete(send);
      this.#schedule();
    });
    this.#sends.add(send);
    this.#schedule();
  }

  /** Runs that have only started are taken when they have lingered, or when everything has to go. */
  get #startsMax(): number {
    const isOverBytes = this.#queue.bytes >= this.#parts.info.batch.bytes;
    return this.#flushes > 0 || isOverBytes ? Number.POSITIVE_INFINITY : this.#due.starts;
  }

  async #send(items: readonly Item[]): Promise<void> {
    const unsettled = new Set(items);
    for (const { isEnded } of items) if (isEnded) this.#move('queued', 'inFlight');
    let left: Outcome = { kind: 'dropped', reason: 'closed', detail: '' };
    try {
      for await (const settlement of this.#parts.transport.send(items, this.#abort.signal)) {
        for (const item of settlement.items) {
          unsettled.delete(item);
          this.#settle(item, settlement.outcome);
        }
      }
    } catch (thrown) {
      if (!this.#abort.signal.aborted) {
        diagnostics.error(`a batch could not be sent: ${messageOf(thrown)}`);
        left = { kind: 'dropped', reason: 'rejected', detail: messageOf(thrown) };
      }
    }
    for (const item of unsettled) this.#settle(item, left);
  }

  #settle(item: Item, outcome: Outcome): void {
    const { delivery } = item;
    if (outcome.kind !== 'accepted') {
      this.#giveUp(delivery, outcome.kind === 'dropped' ? outcome.reason : 'rejected');
      return;
    }
    this.#leaveGroup(delivery, item.isEnded ? 'both' : 'post');
    if (item.isEnded) {
      this.#move('inFlight', 'sent');
      this.#forget(delivery);
      return;
    }
    releasePosted(item);
    if (delivery.stage === 'held') {
      this.#setBytes(delivery, heldBytes(delivery.run));
      this.#queuePatch(delivery);
      this.#schedule();
    } else {
      delivery.stage = 'posted';
      this.#backlogRuns--;
      this.#setBytes(delivery, 0);
    }
  }

  // ── Counting ──

  #giveUp(delivery: Delivery, reason: DropReason): void {
    this.#stats[placeOf(delivery.stage)]--;
    this.#open.delete(delivery.run);
    this.#leaveGroup(delivery, 'both');
    if (delivery.stage === 'posted') this.#backlogRuns++;
    this.#forget(delivery);
    this.#countDrop(delivery.run, reason);
  }

  #countDrop(run: EncodedRun, reason: DropReason): void {
    this.#stats.dropped++;
    this.#stats.droppedByReason[reason]++;
    this.#parts.notice.add(reason, run);
  }

  #forget(delivery: Delivery): void {
    delivery.stage = 'settled';
    this.#backlogRuns--;
    this.#setBytes(delivery, 0);
  }

  #leaveGroup(delivery: Delivery, which: 'post' | 'both'): void {
    if (delivery.postGroup !== undefined) this.#barrier.leave(delivery.postGroup);
    delivery.postGroup = undefined;
    if (which === 'post') return;
    if (delivery.patchGroup !== undefined) this.#barrier.leave(delivery.patchGroup);
    delivery.patchGroup = undefined;
  }

  #move(from: Place, to: Place): void {
    this.#stats[from]--;
    this.#stats[to]++;
  }

  /** Ends a run in the application's place: it was open for too long, or too many were. */
  #sendIncomplete({ run }: Delivery): void {
    diagnostics.warnOnce(
      'incomplete',
      `run "${run.name}" is sent as incomplete, as will be others that are open for over limits.openRunAgeMs or beyond limits.openRuns`,
    );
    run.error = 'Incomplete: the run had not ended when its exporter gave up waiting for it';
    run.endTime = isoTimestamp(clock.nowUs());
    this.end(run);
  }
}

function placeOf(stage: Stage): Place {
  if (stage === 'whole' || stage === 'patch' || stage === 'held') return 'queued';
  return stage === 'finishing' ? 'inFlight' : 'open';
}

/** The one timer of ours that may hold the process: a flush that somebody waits for. */
async function isSettledWithin(promise: Promise<void>, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimer(() => resolve(false), limitMs);
  });
  const isInTime = await Promise.race([promise.then(() => true), late]);
  clearTimer(timer);
  return isInTime;
}
