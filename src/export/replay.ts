import { clearTimer, setSoon, setTimer } from '../base/timers.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import { Delivery, type Ticket } from './delivery.ts';
import type { SpoolingParts } from './exporter-parts.ts';
import type { FlushGroup } from './ledger.ts';
import type { ReadSegment, RunName, Segment, SpooledRecord } from './spool/spool.ts';
import type { DeliveryStates, Origin } from './states.ts';

/** Share of the queue's limits above which no segment is read. Runs are written to disk at a higher share. */
const ROOM_SHARE = 0.125;

const LOOK_EVERY_MS = 60_000;

/** Delay before the second call of `look`. A process that was killed just before counts as dead after 10 s. */
const SECOND_LOOK_MS = 11_000;

/** A segment that this process has spilled. Flushes wait for its runs through `group`. */
interface Spilled {
  readonly runs: number;
  readonly group: FlushGroup;
}

/** Callbacks of the delivery loop that the replay uses. */
export interface ReplayHooks {
  /** Whether a batch is in flight or waits for a retry. */
  readonly isSending: () => boolean;
  /** Called when the spool may have segments to read. */
  readonly changed: () => void;
}

/**
 * Decides when segments are read from the spool. This process has spilled these segments, or an earlier process has
 * left them. Segments are read only if few runs wait in the queue and the service is available.
 */
export class Replay {
  readonly #parts: SpoolingParts;
  readonly #states: DeliveryStates;
  readonly #hooks: ReplayHooks;
  readonly #tickets = new Set<SegmentTicket>();
  /** Segments of this process whose runs are only on disk. */
  readonly spilled: Map<Segment, Spilled> = new Map();
  /** Ids of runs whose start is delivered (`unfinished`) or dropped (`givenUp`), but whose end may follow. */
  readonly unfinished: Set<string> = new Set();
  readonly givenUp: Set<string> = new Set();
  #hasLooked = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(parts: SpoolingParts, states: DeliveryStates, hooks: ReplayHooks) {
    this.#parts = parts;
    this.#states = states;
    this.#hooks = hooks;
  }

  /** Whether runs from disk are in delivery, or a segment can be read now. */
  get isBusy(): boolean {
    return this.#tickets.size > 0 || (this.#parts.spool.hasNext && this.#mayRead);
  }

  /**
   * Claims runs that earlier processes left for this destination, now and every minute. If `includesOthers` is true,
   * also logs runs that were left for other destinations, and deletes runs that are too old.
   */
  look(includesOthers: boolean): void {
    if (this.#isClosed) return;
    const { spool } = this.#parts;
    spool.takeOver();
    if (includesOthers) this.#expireNext(spool.expireOthers());
    clearTimer(this.#timer);
    const delayMs = this.#hasLooked ? LOOK_EVERY_MS : SECOND_LOOK_MS;
    this.#hasLooked = true;
    this.#timer = setTimer(() => this.look(includesOthers), delayMs).unref();
    this.#hooks.changed();
  }

  /** Reads segments while the queue has room. */
  run(): void {
    while (this.#parts.spool.hasNext && this.#mayRead) {
      const read = this.#parts.spool.next();
      if (read === undefined) break;
      this.#take(read);
    }
    // If the last segments were unreadable, no ticket has called this method.
    this.#settleEndless();
  }

  /** Leaves all segments to the next process. Flushes no longer wait for these segments. */
  close(): void {
    this.#isClosed = true;
    clearTimer(this.#timer);
    for (const { group } of this.spilled.values()) this.#states.flushes.leave(group);
    this.spilled.clear();
    this.#states.keepSpilled();
  }

  /** Records that all runs of a segment are settled. */
  finish(ticket: SegmentTicket): void {
    const { spool } = this.#parts;
    this.#tickets.delete(ticket);
    if (ticket.spilled !== undefined) this.#states.flushes.leave(ticket.spilled.group);
    if (!ticket.isKept) {
      spool.done(ticket.segment);
      // Lost runs are counted after the file was set aside, so that only one of several processes counts them.
      for (const run of ticket.lost) {
        // If the start of the run was dropped, the run is already counted.
        if (!this.givenUp.has(run.id)) this.#states.lost(run, 'corrupt', this.#originOf(run, ticket));
      }
    }
    this.#settleEndless();
  }

  /**
   * Whether a segment may be read. No segment is read while a start from disk is in delivery, because a later segment
   * may contain the end of the run. During an outage, a segment is read only if no other request probes the service.
   */
  get #mayRead(): boolean {
    const { limits, gate, monotonicMs } = this.#parts;
    const { queue } = this.#states;
    if (this.#isClosed || gate.openAtMs > monotonicMs() || queue.readyRuns >= limits.batchRuns) return false;
    if (queue.runs > limits.queueRuns * ROOM_SHARE || queue.bytes > limits.queueBytes * ROOM_SHARE) return false;
    for (const { starts } of this.#tickets) if (starts > 0) return false;
    return !gate.isOutage || (this.#tickets.size === 0 && !this.#hooks.isSending());
  }

  #take({ segment, records, damagedRuns, ageMs, isExpired }: ReadSegment): void {
    const { gate, monotonicMs } = this.#parts;
    const states = this.#states;
    const spilled = this.spilled.get(segment);
    this.spilled.delete(segment);
    const ticket = new SegmentTicket(this, segment, spilled);
    this.#tickets.add(ticket);
    const nowMs = monotonicMs();
    // The age includes the time on disk. A run of an earlier process is sent at least once, even if it is too old.
    const activeAtMs = gate.activeAt(nowMs) - ageMs;
    const deliveries = [...(segment.isForeign ? merged(records) : records)]
      .filter(({ run }) => !this.givenUp.has(run.id))
      .map(({ op, run }) => {
        const delivery = new Delivery(run, nowMs, activeAtMs, ticket);
        // A second post of a run would receive a 409, and the end of the run would be lost.
        delivery.isPosted = op === 'patch' || this.unfinished.has(run.id);
        delivery.stage = delivery.isPosted ? 'patch' : 'whole';
        return delivery;
      });
    ticket.starts = deliveries.filter(({ run }) => run.endTime === undefined).length;
    // Adds 1, so that the ticket is not finished before all runs are recovered.
    ticket.left = deliveries.length + 1;
    for (const delivery of deliveries) states.recovered(delivery, this.#originOf(delivery.run, ticket), isExpired);
    if (spilled === undefined) ticket.lost = lostOf(damagedRuns, records);
    else for (const run of missingOf(spilled.runs - deliveries.length, damagedRuns)) states.lost(run, 'corrupt', 'own');
    ticket.leave();
  }

  #originOf({ id }: RunName, { spilled }: SegmentTicket): Origin {
    if (spilled !== undefined) return 'own';
    return this.unfinished.delete(id) ? 'unfinished' : 'earlier process';
  }

  /** Deletes one expired file per turn of the event loop. */
  #expireNext(files: Iterator<readonly RunName[], unknown>): void {
    const next = this.#isClosed ? undefined : files.next();
    if (next === undefined || next.done === true) return;
    for (const run of next.value) this.#states.lost(run, 'expired', 'earlier process');
    setSoon(() => this.#expireNext(files)).unref();
  }

  /** When all segments are settled, counts delivered starts without an end as sent. */
  #settleEndless(): void {
    if (this.#tickets.size > 0 || !this.#parts.spool.isDrained) return;
    this.#states.endless(this.unfinished.size);
    this.unfinished.clear();
    this.givenUp.clear();
  }
}

/** A segment whose runs are in delivery. The segment stays on disk until all its runs are settled. */
class SegmentTicket implements Ticket {
  readonly segment: Segment;
  /** Set if this process has spilled the segment. */
  readonly spilled: Spilled | undefined;
  /** Number of unsettled runs, and number of unsettled runs without an end. */
  left = 0;
  starts = 0;
  isKept = false;
  /** Runs of earlier processes whose records could not be read. */
  lost: readonly RunName[] = [];
  readonly #replay: Replay;

  constructor(replay: Replay, segment: Segment, spilled: Spilled | undefined) {
    this.#replay = replay;
    this.segment = segment;
    this.spilled = spilled;
  }

  awaitsEnd({ id, endTime }: EncodedRun): boolean {
    if (!this.segment.isForeign || endTime !== undefined) return false;
    this.#replay.unfinished.add(id);
    return true;
  }

  gaveUp({ id, endTime }: EncodedRun): void {
    if (this.segment.isForeign && endTime === undefined) this.#replay.givenUp.add(id);
  }

  settled({ endTime }: EncodedRun): void {
    if (endTime === undefined) this.starts--;
    this.leave();
  }

  leave(): void {
    this.left--;
    if (this.left === 0) this.#replay.finish(this);
  }
}

/** Returns each damaged run once. Leaves out runs whose end could be read, because the end contains all data. */
function lostOf(damaged: readonly RunName[], records: readonly SpooledRecord[]): RunName[] {
  const ids = new Set(records.filter(({ isEnded }) => isEnded).map(({ run }) => run.id));
  return damaged.filter(({ id }) => id === '' || (!ids.has(id) && ids.add(id)));
}

/** Returns `count` runs of a damaged segment of this process, with their names if the names can be read. */
function missingOf(count: number, damaged: readonly RunName[]): RunName[] {
  return Array.from({ length: Math.max(0, count) }, (_, at) => damaged[at] ?? { id: '', traceId: '', name: '' });
}

/** Merges the start and the end of each run in a segment into one record. */
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
