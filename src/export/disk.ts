import type { Limits } from '../base/limits.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import { type Delivery, placeOf, releaseAll } from './delivery.ts';
import type { Counts, DropReason } from './ledger.ts';
import type { Load } from './load.ts';
import type { Outage } from './outage.ts';
import type { Pace } from './pace.ts';
import type { DeliveryQueue } from './queue.ts';
import { type Origin, Replay } from './replay.ts';
import type { Segment, Spool } from './spool.ts';
import type { RunName } from './spool-record.ts';
import { Spooling } from './spooling.ts';

export interface DiskParts {
  readonly spool: Spool;
  /** Every record is on disk before the call of the application returns. */
  readonly isWriteAhead: boolean;
  readonly queue: DeliveryQueue;
  readonly load: Load;
  readonly stats: Counts;
  readonly limits: Limits;
  readonly outage: Outage;
  readonly pace: Pace;
  readonly monotonicMs: () => number;
  /** Whether requests are under way. */
  readonly isSending: () => boolean;
  /** Called after every change of the queue. */
  readonly changed: () => void;
  readonly giveUp: (delivery: Delivery, reason: DropReason) => void;
  readonly countDrop: (run: RunName, reason: DropReason) => void;
}

/** The disk beside the queue: what goes there and what comes back, and how it is counted meanwhile. */
export class Disk {
  readonly #parts: DiskParts;
  readonly #spooling: Spooling;
  readonly #replay: Replay;
  /** Open runs whose start was left on disk when the exporter closed. */
  readonly #keptOpen = new WeakSet<EncodedRun>();
  #keptRuns = 0;

  constructor(parts: DiskParts) {
    this.#parts = parts;
    this.#spooling = new Spooling({ ...parts, spilled: (deliveries, segment) => this.#spilled(deliveries, segment) });
    this.#replay = new Replay({
      ...parts,
      recovered: (delivery, origin, isExpired) => this.#recovered(delivery, origin, isExpired),
      lost: (run, reason, origin) => {
        this.#countBack(origin);
        parts.countDrop(run, reason);
      },
      settled: (group, records) => parts.load.leaveGroup(group, records),
      endless: (runs) => {
        parts.stats.spooled -= runs;
        parts.stats.sent += runs;
      },
    });
    parts.outage.onChange(() => {
      this.#spooling.outageChanged();
      this.#replay.pumpSoon();
    });
  }

  /** Runs of this process that are on disk alone. */
  get spilledRuns(): number {
    return this.#replay.spilledRuns;
  }

  /** Runs that were left on disk for the next process when the exporter closed. */
  get keptRuns(): number {
    return this.#keptRuns;
  }

  /** Whether something is on its way back, or will be as soon as it can. */
  get isReplaying(): boolean {
    return this.#replay.isBusy;
  }

  /** Calls `Replay.look`. */
  look(includesOthers: boolean): void {
    this.#replay.look(includesOthers);
  }

  /** Called when a run has started, in the call of the application. */
  started(delivery: Delivery): void {
    this.#spooling.started(delivery);
  }

  /** Called when it has ended, likewise. */
  ended(delivery: Delivery): void {
    this.#spooling.ended(delivery);
  }

  /** The service has the start of a run. */
  posted(delivery: Delivery): void {
    this.#spooling.posted(delivery);
  }

  /** Where a delivered record is counted: a start of an earlier process whose end may still come is not sent yet. */
  placeOfAccepted(delivery: Delivery): 'spooled' | 'sent' {
    return this.#replay.awaitsEnd(delivery) ? 'spooled' : 'sent';
  }

  gaveUp(delivery: Delivery): void {
    this.#replay.gaveUp(delivery);
  }

  /** Nothing of a run has to be kept any more. */
  settled(delivery: Delivery): void {
    this.#spooling.settled(delivery);
    this.#replay.settled(delivery);
  }

  /** Makes room at once, for a run that would be refused otherwise; false when nothing could be written. */
  makeRoom(): boolean {
    return this.#spooling.makeRoom();
  }

  /** Called after every change of the queue. */
  changed(): void {
    this.#spooling.changed();
    this.#replay.pumpSoon();
  }

  /** Writes what will not be sent any more, and leaves it to the next process: `leave` is called for each that is written. */
  keep(deliveries: readonly Delivery[], leave: (delivery: Delivery) => void): void {
    this.#keptRuns += this.#replay.spilledRuns;
    // It would take back what is written here.
    this.#replay.close();
    const unwritten = new Set(this.#spooling.keep(deliveries));
    for (const delivery of deliveries) {
      if (unwritten.has(delivery)) continue;
      const { stats } = this.#parts;
      stats[placeOf(delivery.stage)]--;
      stats.spooled++;
      this.#keptRuns++;
      if (delivery.ticket !== undefined) delivery.ticket.isKept = true;
      else if (delivery.run.endTime === undefined) this.#keptOpen.add(delivery.run);
      delivery.startSegment = undefined;
      delivery.endSegment = undefined;
      leave(delivery);
    }
  }

  /** Takes note of the end of a run that came after the exporter had closed; false when its start is not on disk. */
  forgetKept(run: EncodedRun): boolean {
    if (!this.#keptOpen.delete(run)) return false;
    this.#parts.stats.spooled--;
    this.#keptRuns--;
    return true;
  }

  /** Called after `keep`. */
  close(): void {
    this.#spooling.close();
  }

  #spilled(deliveries: readonly Delivery[], segment: Segment): void {
    const { stats, load, changed } = this.#parts;
    this.#replay.note(deliveries, segment);
    for (const delivery of deliveries) {
      stats.queued--;
      stats.spooled++;
      load.runs--;
      load.relieve(delivery);
      this.#spooling.settled(delivery);
      delivery.postGroup = undefined;
      delivery.patchGroup = undefined;
      delivery.stage = 'settled';
      releaseAll(delivery);
    }
    changed();
  }

  #recovered(delivery: Delivery, origin: Origin, isExpired: boolean): void {
    const { stats, load, queue, giveUp, changed } = this.#parts;
    this.#countBack(origin);
    stats.queued++;
    load.runs++;
    load.weigh(delivery);
    if (origin !== 'own') load.awaitPatch(delivery);
    if (isExpired) {
      giveUp(delivery, 'expired');
      return;
    }
    queue.addReady(delivery);
    changed();
  }

  /** Takes a run off the disk's count, or takes it over from an earlier process. */
  #countBack(origin: Origin): void {
    if (origin === 'earlier process') this.#parts.stats.recovered++;
    else this.#parts.stats.spooled--;
  }
}
