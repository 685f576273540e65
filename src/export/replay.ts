import { clearTimer, setSoon, setTimer } from '../base/timers.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import { Delivery, type Ticket } from './delivery.ts';
import type { SpoolingParts } from './exporter-parts.ts';
import type { FlushGroup } from './ledger.ts';
import type { ReadSegment, RunName, Segment, SpooledRecord } from './spool/spool.ts';
import type { DeliveryStates, Origin } from './states.ts';

/** No segment is read while the queue is fuller than this share of its limits. */
const ROOM_SHARE = 0.125;

const SEARCH_EVERY_MS = 60_000;

/**
 * Delay before the second search for runs that earlier processes left. A process that was killed just before the first
 * search counts as dead only 10 s later, so the first search skips its runs.
 */
const SECOND_SEARCH_MS = 11_000;

interface Spilled {
  readonly runs: number;
  readonly group: FlushGroup;
}

export interface ReplayHooks {
  /** Whether a batch is in flight or waiting for a retry. */
  readonly isSending: () => boolean;
  /** Called when a segment may be ready to be read. */
  readonly changed: () => void;
}

/**
 * Decides when runs are read from disk. Runs on disk were left by an earlier process or spilled by this one. Segments
 * are read only while the queue is nearly empty and the service is available.
 */
export class Replay {
  readonly #parts: SpoolingParts;
  readonly #states: DeliveryStates;
  readonly #hooks: ReplayHooks;
  readonly #tickets = new Set<SegmentTicket>();
  /** Segments that this process has spilled and not yet read. */
  readonly spilled: Map<Segment, Spilled> = new Map();
  /** Ids of runs from earlier processes for which only the start is delivered. A later segment may contain the end. */
  readonly deliveredStarts: Set<string> = new Set();
  /**
   * Ids of runs from earlier processes whose start was dropped. If a later segment contains the end of such a run, that
   * end is skipped.
   */
  readonly droppedStarts: Set<string> = new Set();
  #hasSearched = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(parts: SpoolingParts, states: DeliveryStates, hooks: ReplayHooks) {
    this.#parts = parts;
    this.#states = states;
    this.#hooks = hooks;
  }

  get isBusy(): boolean {
    return this.#tickets.size > 0 || (this.#parts.spool.hasNext && this.#mayRead);
  }

  /**
   * Takes over the runs that earlier processes left for this destination, immediately and then every minute. With
   * `includesOthers`, also logs a command that delivers runs left for other destinations, and deletes runs older than
   * `limits.spoolAgeMs`.
   */
  search(includesOthers: boolean): void {
    if (this.#isClosed) return;
    const { spool } = this.#parts;
    spool.takeOver();
    if (includesOthers) this.#expireNext(spool.expireOthers());
    clearTimer(this.#timer);
    const delayMs = this.#hasSearched ? SEARCH_EVERY_MS : SECOND_SEARCH_MS;
    this.#hasSearched = true;
    this.#timer = setTimer(() => this.search(includesOthers), delayMs).unref();
    this.#hooks.changed();
  }

  run(): void {
    while (this.#parts.spool.hasNext && this.#mayRead) {
      const read = this.#parts.spool.next();
      if (read === undefined) break;
      this.#take(read);
    }
    // An unreadable segment has no ticket, so `finish` is not called for it.
    this.#settleUnfinished();
  }

  /** Stops reading. The next process takes over all segments. */
  close(): void {
    this.#isClosed = true;
    clearTimer(this.#timer);
    for (const { group } of this.spilled.values()) this.#states.flushes.leave(group);
    this.spilled.clear();
    this.#states.keepSpilled();
  }

  /** Called when all runs in a segment are settled. */
  finish(ticket: SegmentTicket): void {
    const { spool } = this.#parts;
    this.#tickets.delete(ticket);
    if (ticket.spilled !== undefined) this.#states.flushes.leave(ticket.spilled.group);
    if (!ticket.isKept) {
      spool.done(ticket.segment);
      // Counts lost runs only after the file was moved, so that no other process counts the same runs.
      for (const run of ticket.lost) {
        // A run whose start was dropped has already been counted.
        if (!this.droppedStarts.has(run.id)) this.#states.lost(run, 'corrupt', this.#originOf(run, ticket));
      }
    }
    this.#settleUnfinished();
  }

  /**
   * Whether the next segment may be read. No segment is read while a run without an end is in delivery, because the
   * next segment may contain its end. During an outage, a segment is read only if no request is in flight.
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
    // A run's age includes its time on disk. Runs from earlier processes are sent at least once, whatever their age.
    const activeAtMs = gate.activeAt(nowMs) - ageMs;
    const deliveries = [...(segment.isForeign ? mergeByRun(records) : records)]
      .filter(({ run }) => !this.droppedStarts.has(run.id))
      .map(({ op, run }) => {
        const delivery = new Delivery(run, nowMs, activeAtMs, ticket);
        // Posting a run twice would return 409, and the run's end would be lost.
        delivery.isPosted = op === 'patch' || this.deliveredStarts.has(run.id);
        delivery.stage = delivery.isPosted ? 'patch' : 'whole';
        return delivery;
      });
    ticket.starts = deliveries.filter(({ run }) => run.endTime === undefined).length;
    // The extra 1 keeps the ticket unfinished until all runs are recovered. `leave` below subtracts it.
    ticket.left = deliveries.length + 1;
    for (const delivery of deliveries) states.recovered(delivery, this.#originOf(delivery.run, ticket), isExpired);
    if (spilled === undefined) ticket.lost = lostOf(damagedRuns, records);
    else for (const run of missingOf(spilled.runs - deliveries.length, damagedRuns)) states.lost(run, 'corrupt', 'own');
    ticket.leave();
  }

  #originOf({ id }: RunName, { spilled }: SegmentTicket): Origin {
    if (spilled !== undefined) return 'own';
    return this.deliveredStarts.delete(id) ? 'unfinished' : 'earlier process';
  }

  /** Deletes one expired file per turn of the event loop. */
  #expireNext(files: Iterator<readonly RunName[], unknown>): void {
    const next = this.#isClosed ? undefined : files.next();
    if (next === undefined || next.done === true) return;
    for (const run of next.value) this.#states.lost(run, 'expired', 'earlier process');
    setSoon(() => this.#expireNext(files)).unref();
  }

  /** When all segments are settled, counts delivered runs without an end as sent. */
  #settleUnfinished(): void {
    if (this.#tickets.size > 0 || !this.#parts.spool.isDrained) return;
    this.#states.sentWithoutEnd(this.deliveredStarts.size);
    this.deliveredStarts.clear();
    this.droppedStarts.clear();
  }
}

/** A segment whose runs are in delivery. */
class SegmentTicket implements Ticket {
  readonly segment: Segment;
  /** The number of spilled runs and their flush group. Undefined if another process wrote the segment. */
  readonly spilled: Spilled | undefined;
  /** Number of unsettled runs. */
  left = 0;
  /** Number of unsettled runs without an end. */
  starts = 0;
  isKept = false;
  /** Runs from earlier processes whose records cannot be read. */
  lost: readonly RunName[] = [];
  readonly #replay: Replay;

  constructor(replay: Replay, segment: Segment, spilled: Spilled | undefined) {
    this.#replay = replay;
    this.segment = segment;
    this.spilled = spilled;
  }

  awaitsEnd({ id, endTime }: EncodedRun): boolean {
    if (!this.segment.isForeign || endTime !== undefined) return false;
    this.#replay.deliveredStarts.add(id);
    return true;
  }

  dropped({ id, endTime }: EncodedRun): void {
    if (this.segment.isForeign && endTime === undefined) this.#replay.droppedStarts.add(id);
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

/** Returns each damaged run once. Omits runs whose ended record can be read, because these runs are not lost. */
function lostOf(damaged: readonly RunName[], records: readonly SpooledRecord[]): RunName[] {
  const ids = new Set(records.filter(({ isEnded }) => isEnded).map(({ run }) => run.id));
  return damaged.filter(({ id }) => id === '' || (!ids.has(id) && ids.add(id)));
}

/**
 * Returns the `count` runs lost in a damaged segment that this process wrote. The fields of unidentified runs are
 * empty.
 */
function missingOf(count: number, damaged: readonly RunName[]): RunName[] {
  return Array.from({ length: Math.max(0, count) }, (_, at) => damaged[at] ?? { id: '', traceId: '', name: '' });
}

function mergeByRun(records: readonly SpooledRecord[]): Iterable<SpooledRecord> {
  const byId = new Map<string, SpooledRecord>();
  for (const record of records) {
    const before = byId.get(record.run.id);
    byId.set(record.run.id, before === undefined ? record : mergeTwo(before, record));
  }
  return byId.values();
}

function mergeTwo(before: SpooledRecord, after: SpooledRecord): SpooledRecord {
  if (before.isEnded && !after.isEnded) return before;
  const inputs = after.run.inputs ?? before.run.inputs;
  const attachments = after.run.attachments ?? before.run.attachments;
  const op = before.op === 'post' || after.op === 'post' ? 'post' : 'patch';
  return { op, isEnded: after.isEnded, run: { ...after.run, inputs, attachments } };
}
