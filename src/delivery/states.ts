import { describeOpenRun, type EncodedRun, type EndOverride, releaseRun } from '../run/encoded-run.ts';
import { bytesBeyondLength, counterOf, Delivery, Item, isOpen, releasePosted, sizeOfContent } from './delivery.ts';
import type { ExporterParts } from './exporter-parts.ts';
import { type Counts, type DropReason, type FlushGroup, FlushTracker, type RunCounter } from './ledger.ts';
import { type BatchSize, DeliveryQueue } from './queue.ts';
import type { Slab } from './slab/slab.ts';
import type { RunName } from './spool/spool.ts';

/** Factor by which child runs and outputs may exceed the queue limits. */
const ACCEPTED_SHARE = 1.25;

/** `Exporter.ready()` resolves when the queue is below this share of its limits. */
const ROOM_SHARE = 0.75;

/** Which process wrote a run to disk. `unfinished`: an earlier one, and this one has delivered the start. */
export type Origin = 'own' | 'earlier process' | 'unfinished';

/** Names a run in the report of a drop if it is not known which run was dropped. */
export const UNKNOWN_RUN: RunName = { id: '', traceId: '', name: '' };

/**
 * Stores the states of all runs in delivery. Each method moves runs from one stage to another. Only this class changes
 * a run's stage and the counters of the stages.
 */
export class DeliveryStates {
  readonly queue: DeliveryQueue = new DeliveryQueue();
  readonly flushes: FlushTracker = new FlushTracker();
  readonly #parts: ExporterParts;
  readonly #counts: Counts;
  #runs = 0;
  /** Memory used by undelivered runs and request bodies, in bytes. */
  #bytes = 0;
  #diskRuns = 0;
  /** Number of open runs without an `EncodedRun`. */
  lightRuns = 0;

  constructor(parts: ExporterParts) {
    this.#parts = parts;
    this.#counts = parts.ledger.counts;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Number of undelivered runs of this process, in memory and on disk. */
  get pendingRuns(): number {
    return this.#runs + this.#diskRuns;
  }

  isFullFor(
    { parentRunId }: Pick<EncodedRun, 'parentRunId'>,
    runs: number = this.#runs,
    bytes: number = this.#bytes,
  ): boolean {
    const { queueRuns, queueBytes } = this.#parts.limits;
    const share = parentRunId === undefined ? 1 : ACCEPTED_SHARE;
    return runs >= queueRuns * share || bytes >= queueBytes * share;
  }

  /** Whether the queue accepts no more outputs. Ending runs lose their payloads if no run can be written to disk. */
  get isOverfull(): boolean {
    return this.#bytes >= this.#parts.limits.queueBytes * ACCEPTED_SHARE;
  }

  get openRuns(): number {
    return this.queue.openRuns + this.lightRuns;
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

  start(run: EncodedRun, nowMs: number = this.#parts.monotonicMs()): Delivery {
    const delivery = new Delivery(run, nowMs, this.#parts.endpoint.activeAt(nowMs));
    delivery.owner = this;
    run.sinkState = delivery;
    this.#counts.open++;
    this.#measure(delivery);
    if (this.#parts.sendsStarts) {
      delivery.group = this.flushes.enter();
      this.#runs++;
    } else delivery.stage = 'posted';
    this.queue.addOpen(delivery);
    return delivery;
  }

  startLight(): void {
    this.#counts.open++;
    this.#runs++;
    this.lightRuns++;
  }

  /** Called for a light run that gets a `Delivery`. */
  beginLight(run: EncodedRun, startedAtMs: number): Delivery {
    this.#forgetLight();
    this.#runs--;
    return this.start(run, startedAtMs);
  }

  endLight(): void {
    this.#forgetLight();
    this.#counts.queued++;
  }

  #forgetLight(): void {
    this.#counts.open--;
    this.lightRuns--;
  }

  end(delivery: Delivery): void {
    const { stage } = delivery;
    if (stage === 'started') {
      this.endWhole(delivery);
      this.queueWhole(delivery);
      return;
    }
    this.#move('open', 'queued');
    this.queue.removeOpen(delivery, false);
    delivery.group ??= this.flushes.enter();
    // Removes the error that was sent with the incomplete run.
    if (delivery.endOverride !== undefined) delivery.run.error ??= '';
    if (stage === 'incomplete') {
      this.queue.bytes += this.#measure(delivery);
      delivery.stage = delivery.isPosted ? 'patch' : 'whole';
      return;
    }
    this.#measure(delivery);
    if (stage === 'posting') {
      delivery.stage = 'ended';
    } else {
      this.#runs++;
      this.#addPatch(delivery);
    }
  }

  /** Ends a run of which nothing was sent, which `SlabWriter` then writes into a request body. */
  endWhole(delivery: Delivery): void {
    this.#move('open', 'queued');
    this.queue.removeOpen(delivery, true);
    delivery.stage = 'whole';
  }

  /** Queues a run after `endWhole`, if it could not be written. */
  queueWhole(delivery: Delivery): void {
    this.#measure(delivery);
    this.#queueAgain(delivery);
    this.queue.addReady(delivery);
  }

  written(delivery: Delivery): void {
    this.#measure(delivery, 0);
    delivery.stage = 'settled';
    this.#leave(delivery);
    releaseRun(delivery.run);
  }

  /** Called when a slab is sent for the first time, or thawed before. */
  sending({ runs }: Slab): void {
    this.#counts.queued -= runs;
    this.#counts.inFlight += runs;
  }

  delivered(slab: Slab): void {
    this.#counts.inFlight -= slab.runs;
    this.#counts.sent += slab.runs;
    this.#runs -= slab.runs;
    this.#bytes -= slab.kept.bytes.length;
    this.flushes.leave(slab.written.group);
  }

  /** Returns the slabs with the runs for whose index `isFirst` returns true, and with the others. */
  split(slab: Slab, isFirst: (at: number) => boolean): [Slab, Slab] {
    const [one, other] = slab.split(isFirst);
    this.#bytes += one.kept.bytes.length + other.kept.bytes.length - slab.kept.bytes.length;
    this.flushes.join(slab.written.group);
    return [one, other];
  }

  /** Returns the runs of a slab as they would be if they had gone through the queue. */
  readonly thaw = (slab: Slab, isSent: boolean): Item[] => {
    if (!isSent) this.sending(slab);
    this.#bytes -= slab.kept.bytes.length;
    const items: Item[] = [];
    for (const { run, activeAtMs } of slab.read()) {
      if (run === undefined) {
        this.#counts.inFlight--;
        this.#runs--;
        this.countDrop(UNKNOWN_RUN, 'corrupt');
        continue;
      }
      const delivery = new Delivery(run, slab.written.firstAtMs, activeAtMs);
      delivery.stage = 'whole';
      delivery.detail = slab.detail;
      delivery.group = this.flushes.join(slab.written.group);
      this.#measure(delivery);
      items.push(new Item(delivery));
      delivery.stage = 'finishing';
    }
    this.flushes.leave(slab.written.group);
    return items;
  };

  /** Queues an open run to be sent as incomplete. If a batch has its start, it waits until the start is accepted. */
  sendIncomplete(delivery: Delivery, end: EndOverride): void {
    this.queue.removeOpen(delivery, delivery.stage === 'started');
    delivery.endOverride = end;
    if (delivery.stage === 'posting') return;
    if (delivery.stage === 'posted') {
      this.#runs++;
      delivery.group ??= this.flushes.enter();
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

  /** Takes runs for a batch: open ones that started by `startsUntilMs`, then ended ones. One above `size` is alone. */
  take(size: BatchSize, startsUntilMs: number): Item[] {
    const items: Item[] = [];
    let bytes = 0;
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
      bytes += delivery.bytes + bytesBeyondLength(delivery);
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
    delivery.detail = undefined;
    const { stage, ticket, run } = delivery;
    if (stage === 'finishing') {
      this.#move('inFlight', ticket?.awaitsEnd(run) === true ? 'spooled' : 'sent');
      this.#settle(delivery);
    } else if (stage === 'posting' || stage === 'ended') {
      // The span of a run that was sent as incomplete contains the whole run again.
      const { sendsStarts } = this.#parts;
      if (sendsStarts) releasePosted(item);
      delivery.isPosted = sendsStarts;
      if (stage === 'ended') {
        this.#measure(delivery);
        this.#addPatch(delivery);
      } else {
        const end = item.isEnded ? undefined : delivery.endOverride;
        delivery.stage = 'posted';
        // A flush that waits for the start also waits for an end that was set while the start was in flight.
        if (end === undefined) this.#leave(delivery);
        this.#runs--;
        this.#measure(delivery, sendsStarts ? 0 : undefined);
        if (end !== undefined) this.sendIncomplete(delivery, end);
      }
    }
  }

  /** Drops a run. The run must not be in the queue. `name` names the run in the report. */
  drop(
    delivery: Delivery,
    reason: DropReason,
    detail: string | undefined = delivery.detail,
    name: RunName = delivery.run,
  ): void {
    if (delivery.stage === 'settled') return;
    this.#counts[counterOf(delivery.stage)]--;
    delivery.ticket?.dropped(delivery.run);
    this.#settle(delivery);
    this.countDrop(name, reason, detail);
  }

  /** Marks runs as written to disk, and returns the flush group that waits for their delivery. */
  spilled(deliveries: readonly Delivery[]): FlushGroup {
    const group = this.flushes.enterOldest(deliveries);
    for (const delivery of deliveries) {
      this.#move('queued', 'spooled');
      this.#settle(delivery);
    }
    this.#diskRuns += deliveries.length;
    return group;
  }

  recovered(delivery: Delivery, origin: Origin, isExpired: boolean): void {
    this.#countReadFromDisk(origin);
    delivery.stage = delivery.isPosted ? 'patch' : 'whole';
    this.#counts.queued++;
    this.#runs++;
    this.#measure(delivery);
    if (origin !== 'own') delivery.group = this.flushes.enter();
    if (isExpired) this.drop(delivery, 'expired');
    else this.queue.addReady(delivery);
  }

  lost(run: RunName, reason: 'corrupt' | 'expired', origin: Origin): void {
    this.#countReadFromDisk(origin);
    this.countDrop(run, reason);
  }

  /** Takes the start of a run out of delivery, because the complete run was read from disk. */
  replaced(delivery: Delivery): void {
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
    this.#diskRuns++;
    const isOpenRun = delivery.ticket === undefined && isOpen(delivery);
    if (delivery.ticket !== undefined) delivery.ticket.staysOnDisk = true;
    delivery.startSegment = undefined;
    delivery.endSegment = undefined;
    this.#settle(delivery);
    if (isOpenRun) delivery.stage = 'leftOnDisk';
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
    if (origin === 'own') this.#diskRuns--;
    if (origin === 'earlier process') this.#counts.recovered++;
    else this.#counts.spooled--;
  }

  #settle(delivery: Delivery): void {
    this.queue.removeOpen(delivery, false);
    if (delivery.stage === 'leftOnDisk') this.#diskRuns--;
    // A run in stage `posted` has nothing to deliver.
    else if (delivery.stage !== 'posted') this.#runs--;
    this.#measure(delivery, 0);
    delivery.stage = 'settled';
    this.#leave(delivery);
    if (delivery.endSegment !== undefined) this.#parts.spool?.release(delivery.endSegment);
    delivery.endSegment = undefined;
    delivery.ticket?.settled(delivery.run);
    releaseRun(delivery.run);
  }

  #leave(delivery: Delivery): void {
    if (delivery.group !== undefined) this.flushes.leave(delivery.group);
    delivery.group = undefined;
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
