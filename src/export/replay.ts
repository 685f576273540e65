import type { Limits } from '../base/limits.ts';
import { clearTimer, setSoon, setTimer } from '../base/timers.ts';
import type { FlushGroup } from './barrier.ts';
import { type Delivery, newDelivery } from './delivery.ts';
import type { Outage } from './outage.ts';
import type { Pace } from './pace.ts';
import type { DeliveryQueue } from './queue.ts';
import type { ReadSegment, Segment, Spool } from './spool.ts';
import type { RunName, SpooledRecord } from './spool-record.ts';

/** Share of the queue's limits up to which there is room: well below what would send it to the disk again. */
const ROOM_SHARE = 0.125;

/** Between two looks for what processes have left behind that have ended meanwhile. */
const LOOK_EVERY_MS = 60_000;

/** A segment whose records are on their way again. */
export class Ticket {
  readonly segment: Segment;
  /** Records of it that have not settled, and those of them whose end may stand in a later segment. */
  left = 0;
  starts = 0;
  /** Some of it was not delivered, and stays where it is for the next process. */
  isKept = false;
  /** What is known of it where this process has spilled it. */
  readonly spilled: Spilled | undefined;
  /** Where it is of an earlier process, the runs of damaged records whose end was not read. */
  lost: readonly RunName[] = [];

  constructor(segment: Segment, spilled: Spilled | undefined) {
    this.segment = segment;
    this.spilled = spilled;
  }
}

/** Where a run was counted before it came back from the disk. */
export type Origin = 'own' | 'earlier process' | 'unfinished';

/** What has to be known of runs of ours while they are on disk alone. There may be many: it is little. */
interface Spilled {
  readonly runs: number;
  /** Their ids, those of their traces and their names, as JSON: only needed if the segment turns out to be damaged. */
  readonly names: string;
  /** The flushes that wait for them, and for how many records. */
  readonly groups: ReadonlyMap<FlushGroup, number>;
}

export interface ReplayParts {
  readonly spool: Spool;
  readonly queue: DeliveryQueue;
  readonly limits: Pick<Limits, 'batchRuns' | 'queueRuns' | 'queueBytes'>;
  readonly outage: Outage;
  readonly pace: Pace;
  readonly monotonicMs: () => number;
  /** Whether requests are under way, by which the end of an outage would be seen. */
  readonly isSending: () => boolean;
  /** Called for each run that comes back; one that has been on disk for too long is not to be sent. */
  readonly recovered: (delivery: Delivery, origin: Origin, isExpired: boolean) => void;
  /** Called for each run that can no longer be read, or that waited too long for another destination. */
  readonly lost: (run: RunName, reason: 'corrupt' | 'expired', origin: Origin) => void;
  /**
   * Called when records of this process have settled, with their number. The flushes of this group wait for these
   * records.
   */
  readonly settled: (group: FlushGroup, records: number) => void;
  /** Called with the number of runs of earlier processes whose end was never recorded. */
  readonly endless: (runs: number) => void;
}

/**
 * The way back from the disk, for what this process has spilled and for what earlier ones have left behind: behind what is
 * recorded now, a segment at a time, and only as long as the service answers.
 */
export class Replay {
  readonly #parts: ReplayParts;
  readonly #tickets = new Set<Ticket>();
  /** By segment, the runs of ours that are on disk alone. */
  readonly #spilled = new Map<Segment, Spilled>();
  #spilledRuns = 0;
  /** Of earlier processes, runs whose end may stand in a later segment: their start is delivered, or given up. */
  readonly #unfinished = new Set<string>();
  readonly #givenUp = new Set<string>();
  #isScheduled = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: ReplayParts) {
    this.#parts = parts;
  }

  /** Runs of this process that are on disk alone. */
  get spilledRuns(): number {
    return this.#spilledRuns;
  }

  /** Whether something is on its way back, or will be as soon as it can. */
  get isBusy(): boolean {
    return this.#tickets.size > 0 || (this.#parts.spool.hasNext && this.#mayRead);
  }

  /**
   * Claims runs that earlier processes left for this destination, immediately and then every minute. `includesOthers`
   * also reports the runs left for other destinations and deletes those that are too old.
   */
  look(includesOthers: boolean): void {
    if (this.#isClosed) return;
    this.#parts.spool.takeOver();
    if (includesOthers) this.#expireNext(this.#parts.spool.expireOthers());
    clearTimer(this.#timer);
    this.#timer = setTimer(() => this.look(includesOthers), LOOK_EVERY_MS).unref();
    this.pumpSoon();
  }

  /** Notes what is on disk alone from now on. */
  note(deliveries: readonly Delivery[], segment: Segment): void {
    const names = JSON.stringify(deliveries.map(({ run: { id, traceId, name } }) => [id, traceId, name]));
    const groups = new Map<FlushGroup, number>();
    for (const { postGroup, patchGroup } of deliveries) {
      if (postGroup !== undefined) groups.set(postGroup, (groups.get(postGroup) ?? 0) + 1);
      if (patchGroup !== undefined) groups.set(patchGroup, (groups.get(patchGroup) ?? 0) + 1);
    }
    this.#spilled.set(segment, { runs: deliveries.length, names, groups });
    this.#spilledRuns += deliveries.length;
  }

  /** Called when there may be room for more: after every change, and when an outage is over. */
  pumpSoon(): void {
    if (this.#isScheduled || !this.#parts.spool.hasNext) return;
    this.#isScheduled = true;
    setSoon(() => {
      this.#isScheduled = false;
      while (this.#mayRead) {
        const read = this.#parts.spool.next();
        if (read === undefined) break;
        this.#take(read);
      }
      // The last segments may have been none that can be read.
      this.#settleEndless();
    }).unref();
  }

  /** Whether the end of a delivered start may still come, from a later segment. */
  awaitsEnd({ run, ticket }: Delivery): boolean {
    if (ticket?.segment.isForeign !== true || run.endTime !== undefined) return false;
    this.#unfinished.add(run.id);
    return true;
  }

  /** Its start is given up, and so is its end, should that come. */
  gaveUp({ run, ticket }: Delivery): void {
    if (ticket?.segment.isForeign === true && run.endTime === undefined) this.#givenUp.add(run.id);
  }

  /** Called when a delivery has settled that may come from the disk. */
  settled({ run, ticket }: Delivery): void {
    if (ticket === undefined) return;
    if (run.endTime === undefined) ticket.starts--;
    this.#release(ticket);
    this.pumpSoon();
  }

  /** What is on disk is left to the next process, and no flush waits for it any more. */
  close(): void {
    this.#isClosed = true;
    clearTimer(this.#timer);
    for (const { groups } of this.#spilled.values()) this.#leave(groups);
    this.#spilled.clear();
    this.#spilledRuns = 0;
  }

  /** A later segment may hold the end of a run whose start is under way; one that nobody accepts holds nothing else up. */
  get #mayRead(): boolean {
    const { queue, limits, outage, pace, isSending } = this.#parts;
    if (this.#isClosed || pace.remainingMs > 0 || queue.readyRuns >= limits.batchRuns) return false;
    if (queue.runs > limits.queueRuns * ROOM_SHARE || queue.bytes > limits.queueBytes * ROOM_SHARE) return false;
    for (const { starts } of this.#tickets) if (starts > 0) return false;
    return !outage.isOn || (this.#tickets.size === 0 && !isSending());
  }

  #take({ segment, records, damagedRuns, isExpired }: ReadSegment): void {
    const spilled = this.#spilled.get(segment);
    this.#spilled.delete(segment);
    this.#spilledRuns -= spilled?.runs ?? 0;
    const ticket = new Ticket(segment, spilled);
    if (spilled === undefined) ticket.lost = lostOf(damagedRuns, records);
    this.#tickets.add(ticket);
    const deliveries = [...(segment.isForeign ? merged(records) : records)]
      .filter(({ run }) => !this.#givenUp.has(run.id))
      .map((record) => this.#delivery(record, ticket));
    // One for this method itself, so that the last of them to settle is not taken for the last of all.
    ticket.left = deliveries.length + 1;
    ticket.starts = deliveries.filter(({ run }) => run.endTime === undefined).length;
    for (const delivery of deliveries) this.#parts.recovered(delivery, this.#originOf(delivery), isExpired);
    if (spilled !== undefined && deliveries.length < spilled.runs) this.#tellCorrupt(spilled, deliveries);
    this.#release(ticket);
  }

  #release(ticket: Ticket): void {
    ticket.left--;
    if (ticket.left === 0) this.#finish(ticket);
  }

  #originOf({ run, ticket }: Delivery): Origin {
    if (ticket?.spilled !== undefined) return 'own';
    return this.#unfinished.delete(run.id) ? 'unfinished' : 'earlier process';
  }

  #tellCorrupt({ names }: Spilled, deliveries: readonly Delivery[]): void {
    const read = new Set(deliveries.map(({ run }) => run.id));
    for (const [id, traceId, name] of JSON.parse(names) as [string, string, string][]) {
      if (!read.has(id)) this.#parts.lost({ id, traceId, name }, 'corrupt', 'own');
    }
  }

  /** A run whose start was delivered, or given up, is one that is counted already. */
  #tellLost(lost: readonly RunName[]): void {
    for (const run of lost) {
      if (this.#givenUp.has(run.id)) continue;
      this.#parts.lost(run, 'corrupt', this.#unfinished.delete(run.id) ? 'unfinished' : 'earlier process');
    }
  }

  #delivery({ op, run }: SpooledRecord, ticket: Ticket): Delivery {
    const { monotonicMs, pace } = this.#parts;
    const delivery = newDelivery(run, monotonicMs(), pace.activeMs, undefined, ticket);
    // A second post of a run would be taken for a repetition, and its end be lost.
    delivery.isPosted = op === 'patch' || this.#unfinished.has(run.id);
    delivery.stage = delivery.isPosted ? 'patch' : 'whole';
    return delivery;
  }

  /** Expires one file per turn of the event loop. */
  #expireNext(files: Iterator<readonly RunName[], unknown>): void {
    const next = this.#isClosed ? undefined : files.next();
    if (next === undefined || next.done === true) return;
    for (const run of next.value) this.#parts.lost(run, 'expired', 'earlier process');
    setSoon(() => this.#expireNext(files)).unref();
  }

  #leave(groups: Spilled['groups']): void {
    for (const [group, records] of groups) this.#parts.settled(group, records);
  }

  #finish(ticket: Ticket): void {
    const { spool } = this.#parts;
    this.#tickets.delete(ticket);
    if (ticket.spilled !== undefined) this.#leave(ticket.spilled.groups);
    if (!ticket.isKept) {
      spool.done(ticket.segment);
      // Not before the file is set aside, so that of several processes that have read it one counts them.
      this.#tellLost(ticket.lost);
    }
    this.#settleEndless();
    this.pumpSoon();
  }

  /** Where nothing more is to be read, what has had no end will have none. */
  #settleEndless(): void {
    const { spool, endless } = this.#parts;
    if (this.#tickets.size > 0 || !spool.isDrained) return;
    endless(this.#unfinished.size);
    this.#unfinished.clear();
    this.#givenUp.clear();
  }
}

/** Each run once, but for those of which an end is whole: that says all of its run. */
function lostOf(damaged: readonly RunName[], records: readonly SpooledRecord[]): RunName[] {
  const ids = new Set(records.filter(({ isEnded }) => isEnded).map(({ run }) => run.id));
  return damaged.filter(({ id }) => id === '' || (!ids.has(id) && ids.add(id)));
}

/** One record for each run: its end goes with its start, where both stand in one segment. */
function merged(records: readonly SpooledRecord[]): Iterable<SpooledRecord> {
  const byId = new Map<string, SpooledRecord>();
  for (const record of records) {
    const before = byId.get(record.run.id);
    byId.set(record.run.id, before === undefined ? record : together(before, record));
  }
  return byId.values();
}

function together(before: SpooledRecord, after: SpooledRecord): SpooledRecord {
  if (before.isEnded && !after.isEnded) return before;
  const inputs = after.run.inputs ?? before.run.inputs;
  const attachments = after.run.attachments ?? before.run.attachments;
  const op = before.op === 'post' || after.op === 'post' ? 'post' : 'patch';
  return { op, isEnded: after.isEnded, run: { ...after.run, inputs, attachments } };
}
