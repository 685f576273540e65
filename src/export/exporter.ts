import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import type { Limits } from '../base/limits.ts';
import { messageOf } from '../base/text.ts';
import { setSoon } from '../base/timers.ts';
import { type EncodedRun, releaseRun } from '../run/encoded-run.ts';
import { type CapturePolicy, type FlushLimit, type FlushResult, flushLimitMs, type RunSink } from '../run/sink.ts';
import type { Backlog } from '../run/stats.ts';
import { isoTimestamp } from '../run/time.ts';
import {
  type Delivery,
  dropEndPayloads,
  type Item,
  newDelivery,
  placeOf,
  releaseAll,
  releasePosted,
} from './delivery.ts';
import { Disk } from './disk.ts';
import { Dispatcher } from './dispatcher.ts';
import type { DropNotice } from './drop-notice.ts';
import { type Counts, type DropReason, type Ledger, type Place, type Stats, totalStats } from './ledger.ts';
import { Load } from './load.ts';
import { OpenRuns } from './open-runs.ts';
import type { Outage } from './outage.ts';
import type { Pace } from './pace.ts';
import { DeliveryQueue } from './queue.ts';
import type { ServiceInfo } from './service-info.ts';
import type { Spool } from './spool.ts';
import type { Outcome, Transport } from './transport.ts';

const FLUSH_TIMEOUT_MS = 30_000;

/** What an exporter is put together from. */
export interface ExporterParts {
  readonly capture: CapturePolicy;
  readonly limits: Limits;
  readonly transport: Transport;
  readonly info: ServiceInfo;
  readonly pace: Pace;
  readonly outage: Outage;
  /** Where runs are kept on disk; undefined with durability `memory`. */
  readonly spool: Spool | undefined;
  /** Every record is on disk before the call of the application returns. */
  readonly isWriteAhead: boolean;
  readonly ledger: Ledger;
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
  readonly #stats: Counts;
  readonly #open: OpenRuns;
  readonly #queue = new DeliveryQueue();
  readonly #load: Load;
  readonly #dispatcher: Dispatcher;
  readonly #disk: Disk | undefined;
  #state: 'open' | 'retiring' | 'closing' | 'closed' = 'open';
  #closing: Promise<FlushResult> | undefined;
  /** Starts and ends so far, and how many there were when the end of the process waited for them in vain. */
  #recorded = 0;
  #finishedInVainAt: number | undefined;
  /**
   * Runs that were sent before `end` was called. The keys are weak: a caller that can still call `end` holds the run
   * itself.
   */
  readonly #sentEarly = new WeakMap<EncodedRun, Delivery>();

  constructor(parts: ExporterParts) {
    this.#parts = parts;
    this.capture = parts.capture;
    this.#stats = parts.ledger.counts;
    this.#load = new Load(parts.limits);
    this.#dispatcher = new Dispatcher({
      queue: this.#queue,
      transport: parts.transport,
      info: parts.info,
      pace: parts.pace,
      limits: parts.limits,
      taken: (items) => {
        for (const { delivery } of items) if (delivery.stage === 'finishing') this.#move('queued', 'inFlight');
      },
      settle: (item, outcome) => this.#settle(item, outcome),
      finished: () => this.#changed(),
    });
    this.#open = new OpenRuns({
      runsMax: parts.limits.openRuns,
      ageMaxMs: parts.limits.openRunAgeMs,
      monotonicMs: parts.monotonicMs,
      overdue: (delivery) => this.#sendIncomplete(delivery),
    });
    const { spool } = parts;
    if (spool !== undefined) {
      this.#disk = new Disk({
        ...parts,
        spool,
        queue: this.#queue,
        stats: this.#stats,
        load: this.#load,
        isSending: () => this.#dispatcher.isSending,
        changed: () => this.#changed(),
        giveUp: (delivery, reason) => this.#giveUp(delivery, reason),
        countDrop: (run, reason) => this.#countDrop(run, reason),
      });
    }
    // Applications hand them on by themselves, as in `process.once('SIGTERM', exporter.close)`.
    this.flush = this.flush.bind(this);
    this.close = this.close.bind(this);
    this.stats = this.stats.bind(this);
  }

  start(run: EncodedRun): boolean {
    if (this.#stats.created++ === 0) this.#begin();
    const refusal = this.#refusal(run);
    if (refusal !== undefined) {
      this.#countDrop(run, refusal);
      return false;
    }
    const { monotonicMs, pace } = this.#parts;
    const nowMs = monotonicMs();
    const delivery = newDelivery(run, nowMs, pace.activeAt(nowMs), undefined);
    this.#load.awaitPost(delivery);
    this.#stats.open++;
    this.#recorded++;
    this.#load.runs++;
    this.#load.weigh(delivery);
    this.#disk?.started(delivery);
    this.#queue.addStart(delivery);
    this.#open.add(delivery);
    this.#changed();
    return true;
  }

  skip(): void {
    this.#stats.sampledOut++;
  }

  ending(run: EncodedRun): void {
    const delivery = this.#openDelivery(run);
    if (delivery === undefined) return;
    // A flush waits for it from now on.
    this.#load.awaitPatch(delivery);
    if (delivery.stage !== 'posted') return;
    delivery.stage = 'ending';
    this.#load.runs++;
  }

  end(run: EncodedRun): void {
    const delivery = this.#openDelivery(run);
    // Given up before its end, or sent without waiting for what is attached to it: counted already.
    if (delivery === undefined) {
      if (this.#disk?.forgetKept(run) === true) this.#countDrop(run, 'closed');
      const early = this.#sentEarly.get(run);
      if (early === undefined || early.stage === 'settled') releaseRun(run);
      else this.#disk?.ended(early);
      return;
    }
    if (this.#state === 'closed') {
      this.#giveUp(delivery, 'closed');
      return;
    }
    this.#open.delete(run);
    this.#stats.open--;
    this.#stats.queued++;
    this.#recorded++;
    this.#fitEnd(delivery);
    const bytesBefore = delivery.bytes;
    this.#load.weigh(delivery);
    this.#disk?.ended(delivery);
    if (delivery.stage === 'started') {
      delivery.stage = 'whole';
      this.#queue.moveToReady(delivery, bytesBefore);
    } else {
      this.#load.awaitPatch(delivery);
      if (delivery.stage === 'posting') delivery.stage = 'held';
      else this.#queuePatch(delivery);
    }
    this.#changed();
  }

  /**
   * Sends what was recorded before the call and waits until it has settled. Returns early when the service has asked for
   * a pause that outlasts the limit. Never rejects.
   */
  async flush(limit?: FlushLimit): Promise<FlushResult> {
    const limitMs = flushLimitMs('flush and shutdown', limit, FLUSH_TIMEOUT_MS);
    if (this.#pending === 0) return { ok: true, pending: 0 };
    const passed = this.#load.passed();
    this.#disk?.changed();
    this.#parts.pace.hurry();
    this.#dispatcher.hurry();
    let isInTime = false;
    try {
      isInTime = await this.#parts.pace.isSettledWithin(passed, limitMs);
    } catch (thrown) {
      report('flush', thrown);
    }
    this.#dispatcher.calm();
    // What was left on disk meanwhile, by closing, is waited for no longer, and not delivered either.
    const pending = isInTime ? (this.#disk?.keptRuns ?? 0) : this.#pending;
    return { ok: pending === 0, pending };
  }

  /**
   * Flushes, and goes on with what is on disk as long as there is time: the process ends by itself, unless something is
   * recorded yet. What was waited for in vain is not waited for again.
   */
  finish(limit: Required<FlushLimit>): Promise<FlushResult> {
    return this.#withoutRejection('flush', this.#finish(limit));
  }

  async #finish({ timeoutMs }: Required<FlushLimit>): Promise<FlushResult> {
    const recorded = this.#recorded;
    if (recorded === this.#finishedInVainAt) return { ok: false, pending: this.#pending };
    const endMs = this.#parts.monotonicMs() + timeoutMs;
    for (;;) {
      const leftMs = Math.max(0, endMs - this.#parts.monotonicMs());
      const result = await this.flush({ timeoutMs: leftMs });
      if (!result.ok) this.#finishedInVainAt = recorded;
      if (!result.ok || leftMs === 0 || this.#disk?.isReplaying !== true) return result;
      this.#disk.changed();
      await new Promise<void>((resolve) => setSoon(resolve));
    }
  }

  /** Whether there is nothing to deliver, and nothing on its way back from the disk. */
  get isSettled(): boolean {
    return this.#pending === 0 && this.#disk?.isReplaying !== true;
  }

  /**
   * Immediately claims runs that earlier processes left on disk for this destination, without waiting for the first
   * run.
   */
  recover(): void {
    this.#disk?.look(false);
  }

  /** Flushes within the limit, then gives up what is left; later runs are counted as dropped. */
  close(limit?: FlushLimit): Promise<FlushResult> {
    this.#closing ??= this.#withoutRejection('shutdown', this.#close(limit));
    return this.#closing;
  }

  /** Closes as soon as the runs that it has are finished and delivered; theirs are still taken until then. */
  retire(): void {
    if (this.#state !== 'open') return;
    this.#state = 'retiring';
    this.#changed();
  }

  stats(): Stats {
    return totalStats([this.#parts.ledger], [this.backlog()]);
  }

  backlog(): Backlog {
    const nowMs = this.#parts.monotonicMs();
    return { bytes: this.#load.bytes, oldestMs: nowMs - (this.#dispatcher.oldestAtMs ?? nowMs) };
  }

  /** Keeps on disk what is left when the process ends now, and gives up the rest, of which one line tells. */
  endProcess(): void {
    this.#state = 'closed';
    this.#disk?.keep(this.#unsettled(), (delivery) => this.#leave(delivery));
    const left = this.#unsettled();
    for (const delivery of left) this.#giveUp(delivery, 'closed');
    const count = left.length;
    if (count > 0) diagnostics.warn(`the process ends with ${count} ${count === 1 ? 'run' : 'runs'} not delivered`);
    this.#disk?.close();
  }

  #begin(): void {
    this.#parts.opened(this);
    if (this.#disk !== undefined) setSoon(() => this.#disk?.look(true)).unref();
  }

  async #close(limit: FlushLimit | undefined): Promise<FlushResult> {
    this.#state = 'closing';
    try {
      return await this.flush(limit);
    } finally {
      this.#state = 'closed';
      this.#open.close();
      this.#disk?.keep(this.#unsettled(), (delivery) => this.#leave(delivery));
      for (const delivery of this.#queue.drain()) if (delivery.stage !== 'settled') this.#giveUp(delivery, 'closed');
      await this.#dispatcher.stop().catch((thrown) => report('shutdown', thrown));
      this.#disk?.close();
      this.#parts.notice.tell();
      await this.#parts.closed(this);
    }
  }

  /** Logs an internal error instead of rejecting. */
  #withoutRejection(method: string, result: Promise<FlushResult>): Promise<FlushResult> {
    return result.catch((thrown) => {
      report(method, thrown);
      return { ok: false, pending: this.#pending };
    });
  }

  /** Runs of this process that are not delivered and not given up. */
  get #pending(): number {
    const { spilledRuns = 0, keptRuns = 0 } = this.#disk ?? {};
    return this.#load.runs + spilledRuns + keptRuns;
  }

  #refusal(run: EncodedRun): DropReason | undefined {
    if (this.#state === 'closing' || this.#state === 'closed') return 'closed';
    if (run.refused) return 'queue_full';
    if (!this.#load.isFullFor(run)) return undefined;
    if (this.#disk === undefined) return 'queue_full';
    // What waits can go to the disk, or stands there; what is under way cannot, and is bounded by itself.
    while (this.#load.isFullFor(run, this.#queue.fresh)) if (!this.#disk.makeRoom()) return 'queue_full';
    return undefined;
  }

  /** Beyond the limits an end is kept without its payloads, unless others can go to disk instead. */
  #fitEnd(delivery: Delivery): void {
    while (this.#load.isOverfull && this.#disk?.makeRoom() === true);
    if (this.#load.isOverfull) dropEndPayloads(delivery);
  }

  #queuePatch(delivery: Delivery): void {
    // A posted run has nothing in the backlog until its patch comes.
    if (delivery.stage === 'posted') this.#load.runs++;
    delivery.stage = 'patch';
    delivery.queuedAtMs = this.#parts.monotonicMs();
    delivery.recordedAtMs = this.#parts.pace.activeAt(delivery.queuedAtMs);
    this.#queue.addReady(delivery);
  }

  /** Called after every change. */
  #changed(): void {
    if (this.#state === 'retiring' && this.#pending === 0 && this.#open.size === 0) void this.close();
    this.#dispatcher.schedule();
    this.#disk?.changed();
  }

  #settle(item: Item, outcome: Outcome): void {
    const { delivery } = item;
    // Given up meanwhile, by an end that came after closing, and counted then.
    if (delivery.stage === 'settled') return;
    if (outcome.kind !== 'accepted') {
      if (outcome.kind === 'dropped') this.#giveUp(delivery, outcome.reason, outcome.detail || undefined);
      else this.#giveUp(delivery, 'rejected', outcome.kind);
      return;
    }
    const isLast = delivery.stage === 'finishing';
    this.#load.leave(delivery, isLast ? 'both' : 'post');
    if (isLast) {
      this.#move('inFlight', this.#disk?.placeOfAccepted(delivery) ?? 'sent');
      this.#forget(delivery);
      return;
    }
    releasePosted(item);
    this.#disk?.posted(delivery);
    if (delivery.stage === 'held' && this.#state === 'closed') {
      this.#giveUp(delivery, 'closed');
    } else if (delivery.stage === 'held') {
      this.#load.weigh(delivery);
      this.#queuePatch(delivery);
      this.#changed();
    } else {
      delivery.stage = delivery.patchGroup === undefined ? 'posted' : 'ending';
      if (delivery.stage === 'posted') this.#load.runs--;
      this.#load.relieve(delivery);
      if (delivery.incompleteAt !== undefined && !item.isEnded) this.#queueIncomplete(delivery);
    }
  }

  // ── Counting ──

  #giveUp(delivery: Delivery, reason: DropReason, detail?: string): void {
    this.#stats[placeOf(delivery.stage)]--;
    this.#disk?.gaveUp(delivery);
    this.#leave(delivery);
    this.#countDrop(delivery.run, reason, detail);
  }

  /** Lets go of a delivery from wherever it stands. */
  #leave(delivery: Delivery): void {
    this.#open.delete(delivery.run);
    this.#load.leave(delivery, 'both');
    if (delivery.stage === 'posted') this.#load.runs++;
    this.#forget(delivery);
  }

  #countDrop(run: Pick<EncodedRun, 'id' | 'traceId' | 'name'>, reason: DropReason, detail?: string): void {
    this.#stats.dropped++;
    this.#stats.droppedByReason[reason]++;
    this.#parts.notice.add(reason, run, detail);
  }

  #forget(delivery: Delivery): void {
    this.#load.runs--;
    this.#load.relieve(delivery);
    delivery.stage = 'settled';
    releaseAll(delivery);
    this.#disk?.settled(delivery);
  }

  #move(from: Place, to: Place): void {
    this.#stats[from]--;
    this.#stats[to]++;
  }

  /** The deliveries that have not settled, but for runs that are open with nothing to send. */
  #unsettled(): Delivery[] {
    const underWay = this.#dispatcher.underWay.map(({ delivery }) => delivery);
    return [...new Set([...this.#queue.all(), ...underWay])].filter(({ stage }) => stage !== 'settled');
  }

  /**
   * Sends an open run as incomplete because it is too old or too many runs are open. Its end is sent when `end` is
   * called.
   */
  #sendIncomplete(delivery: Delivery): void {
    const { run } = delivery;
    diagnostics.warnOnce(
      'incomplete',
      'a run is sent as incomplete, as will be others that are open for over limits.openRunAgeMs or beyond limits.openRuns',
    );
    this.#sentEarly.set(run, delivery);
    // The run has ended, but its attached streams are still being read.
    if (run.endTime !== undefined) {
      this.end(run);
      return;
    }
    this.#open.delete(run);
    delivery.incompleteAt = isoTimestamp(clock.nowUs());
    if (delivery.stage === 'posted') this.#queueIncomplete(delivery);
  }

  /** Queues a patch that marks a posted run as incomplete. */
  #queueIncomplete(delivery: Delivery): void {
    if (delivery.stage !== 'posted') return;
    this.#load.awaitPost(delivery);
    this.#load.runs++;
    delivery.stage = 'started';
    delivery.queuedAtMs = this.#parts.monotonicMs();
    delivery.recordedAtMs = this.#parts.pace.activeAt(delivery.queuedAtMs);
    this.#queue.addStart(delivery);
    this.#changed();
  }

  /** Returns the delivery of a run whose end has not been recorded, even if the run was already sent as incomplete. */
  #openDelivery(run: EncodedRun): Delivery | undefined {
    const delivery = this.#open.get(run) ?? this.#sentEarly.get(run);
    const isOpen = delivery !== undefined && delivery.stage !== 'settled' && placeOf(delivery.stage) === 'open';
    return isOpen ? delivery : undefined;
  }
}

function report(method: string, thrown: unknown): void {
  diagnostics.error(`${method} failed: ${messageOf(thrown)}`);
}
