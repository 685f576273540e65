import type { Limits } from '../config/limits.ts';
import { describeOpenRun, type EncodedRun, releaseRun } from '../run/encoded-run.ts';
import type { CapturePolicy } from '../run/sink.ts';
import {
  Batch,
  bytesBeyondLength,
  counterOf,
  Delivery,
  Item,
  isOpen,
  releasePosted,
  sizeOfContent,
} from './delivery.ts';
import type { Endpoint } from './endpoint.ts';
import {
  type Counts,
  type DropNotice,
  type DropReason,
  type FlushGroup,
  FlushTracker,
  type Ledger,
  type RunCounter,
} from './ledger.ts';
import type { EndingExporter } from './process-end.ts';
import { type BatchSize, DeliveryQueue } from './queue.ts';
import type { RunName, Spool } from './spool/spool.ts';
import type { Sender, SenderOptions } from './wire/sender.ts';
import type { ServiceInfo } from './wire/service-info.ts';

/** Factor by which child runs and outputs may exceed the queue limits. */
const ACCEPTED_SHARE = 1.25;

/**
 * Maximum UTF-8 bytes per UTF-16 code unit. The exact size of a batch is computed only if this maximum could exceed the
 * size limit.
 */
const CHARACTER_BYTES_MAX = 3;

/** `Exporter.ready()` resolves when the queue is below this share of its limits. */
const ROOM_SHARE = 0.75;

/**
 * The process that wrote a run to disk. `unfinished` is a run of an earlier process whose start this process has
 * already delivered.
 */
export type Origin = 'own' | 'earlier process' | 'unfinished';

/** Objects that the classes of an exporter share. */
export interface ExporterParts {
  readonly capture: CapturePolicy;
  readonly limits: Limits;
  readonly sender: (heldBytes: SenderOptions['heldBytes']) => Sender;
  readonly info: ServiceInfo;
  readonly endpoint: Endpoint;
  /** The folder for undelivered runs. Undefined if `durability` is `memory`. */
  readonly spool: Spool | undefined;
  readonly isWriteAhead: boolean;
  readonly ledger: Ledger;
  readonly notice: DropNotice;
  /** The endpoint's origin, for log lines. */
  readonly address: string;
  readonly monotonicMs: () => number;
  readonly random: () => number;
  readonly delay: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly opened: (exporter: EndingExporter) => void;
  readonly closed: (exporter: EndingExporter) => Promise<void>;
}

export type SpoolingParts = ExporterParts & { readonly spool: Spool };

/**
 * Stores the states of all runs in delivery. Each method moves runs from one stage to another. Only this class changes
 * a run's stage, the counters of runs and the queue.
 */
export class DeliveryStates {
  readonly queue: DeliveryQueue = new DeliveryQueue();
  readonly flushes: FlushTracker = new FlushTracker();
  readonly #parts: ExporterParts;
  readonly #counts: Counts;
  /** Number of undelivered runs in memory. */
  #runs = 0;
  /** Memory used by undelivered runs and request bodies, in bytes. */
  #bytes = 0;
  #spilledRuns = 0;
  #keptRuns = 0;

  constructor(parts: ExporterParts) {
    this.#parts = parts;
    this.#counts = parts.ledger.counts;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Number of undelivered runs of this process, in memory and on disk. */
  get pendingRuns(): number {
    return this.#runs + this.#spilledRuns + this.#keptRuns;
  }

  /** Number of runs that the exporter left on disk when it closed. */
  get keptRuns(): number {
    return this.#keptRuns;
  }

  isFullFor({ parentRunId }: EncodedRun, runs: number = this.#runs, bytes: number = this.#bytes): boolean {
    const { queueRuns, queueBytes } = this.#parts.limits;
    const share = parentRunId === undefined ? 1 : ACCEPTED_SHARE;
    return runs >= queueRuns * share || bytes >= queueBytes * share;
  }

  /**
   * Whether the queue is too full to accept more outputs. Ending runs then lose their payloads, unless other runs can
   * be written to disk.
   */
  get isOverfull(): boolean {
    return this.#bytes >= this.#parts.limits.queueBytes * ACCEPTED_SHARE;
  }

  get hasRoom(): boolean {
    const { queueRuns, queueBytes } = this.#parts.limits;
    return this.#runs < queueRuns * ROOM_SHARE && this.#bytes < queueBytes * ROOM_SHARE;
  }

  /** Time at which the next request may be sent. A pending flush shortens the wait. */
  get opensAtMs(): number {
    return this.#parts.endpoint.opensAtMs(this.flushes.waiting.size > 0);
  }

  /** Called when the memory used by request bodies changes. `bytes` is the difference. */
  hold(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Makes the ready run at this index the run that a probe takes. Does nothing if there is none. */
  chooseProbe(index: number): void {
    if (index > 0) this.queue.exchangeFirst(index);
  }

  addRetry(batch: Batch): void {
    this.queue.retries.push(batch);
  }

  removeRetry(batch: Batch): void {
    this.queue.retries.splice(this.queue.retries.indexOf(batch), 1);
  }

  releaseBody(batch: Batch): void {
    this.#bytes -= batch.body?.heldBytes ?? 0;
    batch.body = undefined;
  }

  /** Clears the queue. The caller must pass each removed run to `keep` or `drop`. */
  clear(): void {
    for (const batch of this.queue.retries) this.releaseBody(batch);
    this.queue.clear();
  }

  /** Counts a new run, and returns the number of runs that were created. */
  created(): number {
    return ++this.#counts.created;
  }

  sampledOut(): void {
    this.#counts.sampledOut++;
  }

  start(run: EncodedRun): Delivery {
    const nowMs = this.#parts.monotonicMs();
    const delivery = new Delivery(run, nowMs, this.#parts.endpoint.activeAt(nowMs));
    run.sinkState = delivery;
    delivery.postGroup = this.flushes.enter();
    this.#counts.open++;
    this.#runs++;
    this.#measure(delivery);
    this.queue.addStart(delivery);
    return delivery;
  }

  end(delivery: Delivery): void {
    const { stage } = delivery;
    this.#counts.open--;
    this.#counts.queued++;
    this.queue.removeOpen(delivery, stage === 'started');
    if (stage === 'incomplete') {
      this.queue.release(delivery);
      this.queue.bytes += this.#measure(delivery);
      delivery.stage = delivery.isPosted ? 'patch' : 'whole';
      delivery.patchGroup ??= this.flushes.enter();
      return;
    }
    this.#measure(delivery);
    if (stage !== 'started') delivery.patchGroup ??= this.flushes.enter();
    if (stage === 'started') {
      delivery.stage = 'whole';
      this.queue.addReady(delivery);
    } else if (stage === 'posting') {
      delivery.stage = 'held';
    } else {
      this.#runs++;
      this.#addPatch(delivery);
    }
  }

  /**
   * Queues an open run to be sent as incomplete. If a batch contains the run's start, the run is queued after the
   * service accepts the start.
   */
  sendIncomplete(delivery: Delivery, incompleteAt: string): void {
    this.queue.removeOpen(delivery, delivery.stage === 'started');
    delivery.incompleteAt = incompleteAt;
    if (delivery.stage === 'posting') return;
    if (delivery.stage === 'posted') {
      this.#runs++;
      delivery.postGroup = this.flushes.enter();
      this.#queueAgain(delivery);
    }
    delivery.stage = 'incomplete';
    describeOpenRun(delivery.run);
    this.#measure(delivery);
    this.queue.addReady(delivery);
  }

  countDrop(run: RunName, reason: DropReason, detail?: string): void {
    this.#counts.dropped++;
    this.#counts.droppedByReason[reason]++;
    this.#parts.notice.add(reason, run, detail);
  }

  /**
   * Takes runs from the queue for a batch. Open runs that started by `startsUntilMs` come first, then ended runs. A run
   * that exceeds `size` is sent alone.
   */
  take(size: BatchSize, startsUntilMs: number): Item[] {
    const items: Item[] = [];
    let bytes = 0;
    /** Number of items whose UTF-8 bytes were counted. */
    let counted = 0;
    while (items.length < size.runs) {
      const start = this.queue.firstStart;
      const isStart = start !== undefined && start.startedAtMs <= startsUntilMs;
      const delivery = isStart ? start : this.queue.firstReady;
      if (delivery === undefined) break;
      // The run's tags, metadata or attachments may have changed since its start.
      if (isStart) {
        describeOpenRun(delivery.run);
        this.queue.bytes += this.#measure(delivery);
      }
      bytes += delivery.bytes;
      if (bytes * CHARACTER_BYTES_MAX > size.bytes) {
        for (; counted < items.length; counted++) bytes += bytesBeyondLength((items[counted] as Item).delivery);
        bytes += bytesBeyondLength(delivery);
        counted++;
      }
      if (items.length > 0 && bytes > size.bytes) break;
      if (isStart) this.queue.shiftStart();
      else this.queue.shiftReady();
      items.push(new Item(delivery));
      if (isOpen(delivery)) {
        delivery.stage = 'posting';
      } else {
        delivery.stage = 'finishing';
        this.#counts.queued--;
        this.#counts.inFlight++;
      }
    }
    return items;
  }

  accepted(item: Item): void {
    const { delivery } = item;
    const { stage, ticket, run } = delivery;
    if (stage === 'finishing') {
      this.#move('inFlight', ticket?.awaitsEnd(run) === true ? 'spooled' : 'sent');
      this.#settle(delivery);
    } else if (stage === 'posting' || stage === 'held') {
      releasePosted(item);
      delivery.isPosted = true;
      this.#leavePost(delivery);
      if (stage === 'held') {
        this.#measure(delivery);
        this.#addPatch(delivery);
      } else {
        delivery.stage = 'posted';
        this.#runs--;
        this.#measure(delivery, 0);
        if (delivery.incompleteAt !== undefined && !item.isEnded) this.sendIncomplete(delivery, delivery.incompleteAt);
      }
    }
  }

  /** Drops a run. The run must not be in the queue. */
  drop(delivery: Delivery, reason: DropReason, detail?: string): void {
    if (delivery.stage === 'settled') return;
    this.#counts[counterOf(delivery.stage)]--;
    delivery.ticket?.dropped(delivery.run);
    this.#settle(delivery);
    this.countDrop(delivery.run, reason, detail);
  }

  /** Removes and returns queued runs that can be written to disk, oldest first, while `isWanted` returns true. */
  takeForDisk(bytesMax: number, isWanted: () => boolean): Delivery[] {
    return this.queue.takeFresh(bytesMax, isWanted);
  }

  /** Puts runs back that could not be written to disk. */
  unwritten(deliveries: readonly Delivery[]): void {
    for (const delivery of deliveries) this.queue.addReady(delivery);
  }

  /** Marks runs as written to disk, and returns the flush group that waits for their delivery. */
  spilled(deliveries: readonly Delivery[]): FlushGroup {
    const group = this.flushes.enterOldest(deliveries);
    for (const delivery of deliveries) {
      this.#move('queued', 'spooled');
      this.#settle(delivery);
    }
    this.#spilledRuns += deliveries.length;
    return group;
  }

  recovered(delivery: Delivery, origin: Origin, isExpired: boolean): void {
    this.#countReadFromDisk(origin);
    delivery.stage = delivery.isPosted ? 'patch' : 'whole';
    this.#counts.queued++;
    this.#runs++;
    this.#measure(delivery);
    if (origin !== 'own') delivery.patchGroup = this.flushes.enter();
    if (isExpired) this.drop(delivery, 'expired');
    else this.queue.addReady(delivery);
  }

  lost(run: RunName, reason: 'corrupt' | 'expired', origin: Origin): void {
    this.#countReadFromDisk(origin);
    this.countDrop(run, reason);
  }

  /** Whether a run has failed, and waits for evidence. */
  isWaiting(delivery: Delivery): boolean {
    const { endpoint } = this.#parts;
    return this.queue.retries.some((batch) => !endpoint.isReady(batch) && has(batch, delivery));
  }

  /** Takes the start of a run out of delivery, because the complete run was read from disk. */
  replaced(delivery: Delivery): void {
    const batch = this.queue.retries.find((batch) => has(batch, delivery)) as Batch;
    const others = batch.items.filter((item) => item.delivery !== delivery);
    this.removeRetry(batch);
    this.releaseBody(batch);
    if (others.length > 0) this.addRetry(new Batch(others, batch));
    this.#move(counterOf(delivery.stage), 'spooled');
    this.#settle(delivery);
  }

  /** Counts runs from earlier processes as sent if only their start was on disk and was delivered. */
  sentWithoutEnd(runs: number): void {
    this.#counts.spooled -= runs;
    this.#counts.sent += runs;
  }

  /** Marks a run as left on disk. Called when the exporter closes. */
  keep(delivery: Delivery): void {
    this.#move(counterOf(delivery.stage), 'spooled');
    this.#keptRuns++;
    const isOpenRun = delivery.ticket === undefined && isOpen(delivery);
    if (delivery.ticket !== undefined) delivery.ticket.isKept = true;
    delivery.startSegment = undefined;
    delivery.endSegment = undefined;
    this.#settle(delivery);
    if (isOpenRun) delivery.stage = 'kept';
  }

  keepSpilled(): void {
    this.#keptRuns += this.#spilledRuns;
    this.#spilledRuns = 0;
  }

  /** Drops the end of a run whose start stays on disk after the exporter closed. */
  endKept(delivery: Delivery): void {
    delivery.stage = 'settled';
    this.#counts.spooled--;
    this.#keptRuns--;
    this.countDrop(delivery.run, 'closed');
  }

  #addPatch(delivery: Delivery): void {
    delivery.stage = 'patch';
    this.#queueAgain(delivery);
    this.queue.addReady(delivery);
  }

  #queueAgain(delivery: Delivery): void {
    delivery.queuedAtMs = this.#parts.monotonicMs();
    delivery.activeAtMs = this.#parts.endpoint.activeAt(delivery.queuedAtMs);
  }

  #move(from: RunCounter, to: RunCounter): void {
    this.#counts[from]--;
    this.#counts[to]++;
  }

  #countReadFromDisk(origin: Origin): void {
    if (origin === 'own') this.#spilledRuns--;
    if (origin === 'earlier process') this.#counts.recovered++;
    else this.#counts.spooled--;
  }

  #settle(delivery: Delivery): void {
    this.queue.removeOpen(delivery, false);
    // A run in stage `posted` has nothing to deliver.
    if (delivery.stage !== 'posted') this.#runs--;
    this.#measure(delivery, 0);
    delivery.stage = 'settled';
    delivery.countedMetadata = undefined;
    this.#leavePost(delivery);
    if (delivery.patchGroup !== undefined) this.flushes.leave(delivery.patchGroup);
    delivery.patchGroup = undefined;
    if (delivery.endSegment !== undefined) this.#parts.spool?.release(delivery.endSegment);
    delivery.endSegment = undefined;
    delivery.ticket?.settled(delivery.run);
    releaseRun(delivery.run);
  }

  #leavePost(delivery: Delivery): void {
    if (delivery.postGroup !== undefined) this.flushes.leave(delivery.postGroup);
    delivery.postGroup = undefined;
    if (delivery.startSegment !== undefined) this.#parts.spool?.release(delivery.startSegment);
    delivery.startSegment = undefined;
  }

  #measure(delivery: Delivery, bytes: number = sizeOfContent(delivery)): number {
    const difference = bytes - delivery.bytes;
    this.#bytes += difference;
    delivery.bytes = bytes;
    return difference;
  }
}

function has({ items }: Batch, delivery: Delivery): boolean {
  return items.some((item) => item.delivery === delivery);
}
