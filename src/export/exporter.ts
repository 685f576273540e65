import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { DELAY_MAX_MS, type Limits } from '../base/limits.ts';
import { shown } from '../base/text.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import type { CapturePolicy, FlushLimit, FlushResult, RunSink } from '../run/sink.ts';
import type { Backlog } from '../run/stats.ts';
import { isoTimestamp } from '../run/timestamp.ts';
import { Barrier } from './barrier.ts';
import {
  type Delivery,
  dropAttachments,
  heldBytes,
  type Item,
  newDelivery,
  placeOf,
  releaseAll,
  releasePosted,
  releaseRun,
} from './delivery.ts';
import { Dispatcher } from './dispatcher.ts';
import type { DropNotice } from './drop-notice.ts';
import { type Counts, type DropReason, type Ledger, type Place, type Stats, totalStats } from './ledger.ts';
import { OpenRuns } from './open-runs.ts';
import type { Pace } from './pace.ts';
import { DeliveryQueue } from './queue.ts';
import type { ServiceInfo } from './service-info.ts';
import type { Outcome, Transport } from './transport.ts';

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
  readonly #limits: Limits;
  readonly #stats: Counts;
  readonly #open: OpenRuns;
  readonly #queue = new DeliveryQueue();
  readonly #barrier = new Barrier();
  readonly #dispatcher: Dispatcher;
  #state: 'open' | 'retiring' | 'closing' | 'closed' = 'open';
  /** Runs of which something waits or is under way, and the bytes of it. */
  #backlogRuns = 0;
  #backlogBytes = 0;
  #closing: Promise<FlushResult> | undefined;
  /** Runs that had ended and were not waited for any longer; their end comes once more, and they may still be on their way. */
  readonly #sentEarly = new WeakSet<EncodedRun>();

  constructor(parts: ExporterParts) {
    this.#parts = parts;
    this.capture = parts.capture;
    this.#limits = parts.limits;
    this.#stats = parts.ledger.counts;
    this.#dispatcher = new Dispatcher({
      queue: this.#queue,
      transport: parts.transport,
      info: parts.info,
      limits: parts.limits,
      taken: (items) => {
        for (const { isEnded } of items) if (isEnded) this.#move('queued', 'inFlight');
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
    // Applications hand them on by themselves, as in `process.once('SIGTERM', exporter.close)`.
    this.flush = this.flush.bind(this);
    this.close = this.close.bind(this);
    this.stats = this.stats.bind(this);
  }

  start(run: EncodedRun): boolean {
    if (this.#stats.created++ === 0) this.#parts.opened(this);
    const refusal = this.#refusal(run);
    if (refusal !== undefined) {
      this.#countDrop(run, refusal);
      return false;
    }
    const { monotonicMs, pace } = this.#parts;
    const nowMs = monotonicMs();
    const delivery = newDelivery(run, nowMs, pace.activeAt(nowMs), this.#barrier.enter());
    this.#stats.open++;
    this.#backlogRuns++;
    this.#setBytes(delivery, heldBytes(delivery));
    this.#queue.addStart(delivery);
    this.#open.add(delivery);
    this.#changed();
    return true;
  }

  skip(): void {
    this.#stats.sampledOut++;
  }

  ending(run: EncodedRun): void {
    const delivery = this.#open.get(run);
    if (delivery === undefined) return;
    // A flush waits for it from now on.
    delivery.patchGroup = this.#barrier.enter();
    if (delivery.stage !== 'posted') return;
    delivery.stage = 'ending';
    this.#backlogRuns++;
  }

  end(run: EncodedRun): void {
    const delivery = this.#open.get(run);
    // Given up before its end, or sent without waiting for what is attached to it: counted already.
    if (delivery === undefined) {
      if (!this.#sentEarly.has(run)) releaseRun(run);
      return;
    }
    if (this.#state === 'closed') {
      this.#giveUp(delivery, 'closed');
      return;
    }
    this.#open.delete(run);
    this.#stats.open--;
    this.#stats.queued++;
    this.#fitEnd(delivery);
    const bytesBefore = delivery.bytes;
    this.#setBytes(delivery, heldBytes(delivery));
    if (delivery.stage === 'started') {
      delivery.stage = 'whole';
      this.#queue.moveToReady(delivery, bytesBefore);
    } else {
      delivery.patchGroup ??= this.#barrier.enter();
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
    const limitMs = Math.min(timeoutOf(limit) ?? FLUSH_TIMEOUT_MS, DELAY_MAX_MS);
    if (this.#backlogRuns === 0) return { ok: true, pending: 0 };
    const passed = this.#barrier.passed();
    this.#parts.pace.hurry();
    this.#dispatcher.hurry();
    const ok = await this.#parts.pace.isSettledWithin(passed, limitMs);
    this.#dispatcher.calm();
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
    this.#changed();
  }

  stats(): Stats {
    return totalStats([this.#parts.ledger], [this.backlog()]);
  }

  backlog(): Backlog {
    const nowMs = this.#parts.monotonicMs();
    return { bytes: this.#backlogBytes, oldestMs: nowMs - (this.#dispatcher.oldestAtMs ?? nowMs) };
  }

  /** Says in the log what will be lost if the process ends now. */
  tellLosses(): void {
    const left = this.#backlogRuns;
    if (left > 0) diagnostics.warn(`the process ends with ${left} ${left === 1 ? 'run' : 'runs'} not delivered`);
  }

  async #close(limit: FlushLimit | undefined): Promise<FlushResult> {
    this.#state = 'closing';
    const result = await this.flush(limit);
    this.#state = 'closed';
    this.#open.close();
    for (const delivery of this.#queue.drain()) this.#giveUp(delivery, 'closed');
    await this.#dispatcher.stop();
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
  #fitEnd({ run, stage, attachedAtStart }: Delivery): void {
    if (this.#backlogBytes < this.#limits.queueBytes * ACCEPTED_SHARE) return;
    if (run.outputs !== undefined) run.outputs = '{"runspan":"left out: the queue was full"}';
    run.events = undefined;
    // Those that are under way with the post arrive.
    const underWay = stage === 'posting' ? attachedAtStart : [];
    dropAttachments(run, run.attachments?.filter((attachment) => !underWay.includes(attachment)) ?? []);
  }

  #setBytes(delivery: Delivery, bytes: number): void {
    this.#backlogBytes += bytes - delivery.bytes;
    delivery.bytes = bytes;
  }

  #queuePatch(delivery: Delivery): void {
    // A posted run has nothing in the backlog until its patch comes.
    if (delivery.stage === 'posted') this.#backlogRuns++;
    delivery.stage = 'patch';
    delivery.queuedAtMs = this.#parts.monotonicMs();
    delivery.recordedAtMs = this.#parts.pace.activeAt(delivery.queuedAtMs);
    this.#queue.addReady(delivery);
  }

  /** Called after every change. */
  #changed(): void {
    if (this.#state === 'retiring' && this.#backlogRuns === 0 && this.#stats.open === 0) void this.close();
    this.#dispatcher.schedule();
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
    this.#leaveGroup(delivery, item.isEnded ? 'both' : 'post');
    if (item.isEnded) {
      this.#move('inFlight', 'sent');
      this.#forget(delivery);
      return;
    }
    releasePosted(item);
    if (delivery.stage === 'held' && this.#state === 'closed') {
      this.#giveUp(delivery, 'closed');
    } else if (delivery.stage === 'held') {
      this.#setBytes(delivery, heldBytes(delivery));
      this.#queuePatch(delivery);
      this.#changed();
    } else {
      delivery.stage = delivery.patchGroup === undefined ? 'posted' : 'ending';
      if (delivery.stage === 'posted') this.#backlogRuns--;
      this.#setBytes(delivery, 0);
    }
  }

  // ── Counting ──

  #giveUp(delivery: Delivery, reason: DropReason, detail?: string): void {
    this.#stats[placeOf(delivery.stage)]--;
    this.#open.delete(delivery.run);
    this.#leaveGroup(delivery, 'both');
    if (delivery.stage === 'posted') this.#backlogRuns++;
    this.#forget(delivery);
    this.#countDrop(delivery.run, reason, detail);
  }

  #countDrop(run: EncodedRun, reason: DropReason, detail?: string): void {
    this.#stats.dropped++;
    this.#stats.droppedByReason[reason]++;
    this.#parts.notice.add(reason, run, detail);
  }

  #forget(delivery: Delivery): void {
    delivery.stage = 'settled';
    this.#backlogRuns--;
    this.#setBytes(delivery, 0);
    releaseAll(delivery);
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
      'a run is sent as incomplete, as will be others that are open for over limits.openRunAgeMs or beyond limits.openRuns',
    );
    if (run.endTime === undefined) {
      run.error = 'Incomplete: the run had not ended when its exporter gave up waiting for it';
      run.endTime = isoTimestamp(clock.nowUs());
    } else {
      // What is attached to it is still read.
      this.#sentEarly.add(run);
    }
    this.end(run);
  }
}

/** The time that a caller gives; undefined where none was given, or what is none, which one line tells. */
function timeoutOf(limit: unknown): number | undefined {
  if (limit === undefined) return undefined;
  const isObject = typeof limit === 'object' && limit !== null;
  const given = guard('flush', () => ({ timeoutMs: isObject ? (limit as FlushLimit).timeoutMs : limit }));
  if (given === undefined || (isObject && given.timeoutMs === undefined)) return undefined;
  const { timeoutMs } = given;
  if (isObject && typeof timeoutMs === 'number' && timeoutMs >= 0) return timeoutMs;
  diagnostics.warnOnce(
    'flush limit',
    `flush and shutdown: expected { timeoutMs } with a number from 0, got ${isObject ? '`timeoutMs` ' : ''}${shown(timeoutMs)}; the limit is 30 seconds.`,
  );
  return undefined;
}
