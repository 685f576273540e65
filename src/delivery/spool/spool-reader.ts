import { clearTimer, setSoon, setTimer } from '../../platform/timers.ts';
import type { EncodedRun } from '../../run/encoded-run.ts';
import type { Attempts } from '../attempts.ts';
import { Delivery, type Ticket } from '../delivery.ts';
import type { SpoolingParts } from '../exporter-parts.ts';
import type { FlushGroup } from '../ledger.ts';
import type { DeliveryStates, Origin } from '../states.ts';
import type { ReadSegment, RunName, Segment, SpooledRecord } from './spool.ts';

/** Runs are read from disk only while the queue is less full than this share of its limits. */
const ROOM_SHARE = 0.125;

/** While the endpoint is closed, files are read after this many failed probes with runs from memory. */
const PROBES_FROM_MEMORY = 3;

const SEARCH_EVERY_MS = 60_000;

/** Delay of the second search. A killed process counts as dead after 10 s, so the first search may skip its runs. */
const SECOND_SEARCH_MS = 11_000;

interface Spilled {
  readonly runs: number;
  readonly group: FlushGroup;
}

/**
 * Decides when runs are read from disk. Runs on disk were written by this process or an earlier one. Segment files are
 * read only while the queue is nearly empty and the service is available.
 */
export class SpoolReader {
  readonly #parts: SpoolingParts;
  readonly #states: DeliveryStates;
  readonly #attempts: Attempts;
  /** Called when a segment file may be ready to be read. */
  readonly #changed: () => void;
  readonly #tickets = new Set<SegmentTicket>();
  /** Segment files that this process has written but not yet read. */
  readonly spilled: Map<Segment, Spilled> = new Map();
  /** Ids of runs of earlier processes of which only the start is delivered. A later file may contain the end. */
  readonly deliveredStarts: Set<string> = new Set();
  /** Ids of runs of earlier processes whose start was dropped. An end that is found later is skipped. */
  readonly droppedStarts: Set<string> = new Set();
  /** Runs of earlier processes that are in delivery without an end. */
  readonly starts: Map<string, Delivery> = new Map();
  #hasSearched = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(parts: SpoolingParts, states: DeliveryStates, attempts: Attempts, changed: () => void) {
    this.#parts = parts;
    this.#states = states;
    this.#attempts = attempts;
    this.#changed = changed;
  }

  get isBusy(): boolean {
    return this.#tickets.size > 0 || (this.#parts.spool.hasNext && this.#mayRead);
  }

  /**
   * Takes over the runs that earlier processes left for this service and tenant. Searches immediately, and then every
   * minute. If `includesOthers` is true, also deletes expired runs for other services, and logs a command that delivers
   * the others.
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
    this.#changed();
  }

  run(): void {
    while (this.#parts.spool.hasNext && this.#mayRead) {
      const read = this.#parts.spool.next();
      if (read === undefined) break;
      this.#take(read);
    }
    // `finish` is not called for an unreadable segment file.
    this.#settleUnfinished();
  }

  /** Stops reading. The next process takes over all segment files. */
  close(): void {
    this.#isClosed = true;
    clearTimer(this.#timer);
    for (const { group } of this.spilled.values()) this.#states.flushes.leave(group);
    this.spilled.clear();
  }

  /** Called when all runs in a segment file are delivered or dropped. */
  finish(ticket: SegmentTicket): void {
    const { spool } = this.#parts;
    this.#tickets.delete(ticket);
    if (ticket.spilled !== undefined) this.#states.flushes.leave(ticket.spilled.group);
    if (!ticket.staysOnDisk) {
      spool.done(ticket.segment);
      // Counts lost runs only after moving the file, so that no other process counts the same runs.
      for (const run of ticket.lost) {
        // If a run's start was dropped, the run has already been counted.
        if (!this.droppedStarts.has(run.id)) this.#states.lost(run, 'corrupt', this.#originOf(run, ticket));
      }
    }
    this.#settleUnfinished();
  }

  /**
   * Whether the next segment file may be read. Reading stops while the start of a run is being sent, because the next
   * file may contain the end. While the endpoint is closed, runs in memory are the first probes.
   */
  get #mayRead(): boolean {
    const { limits, endpoint, monotonicMs } = this.#parts;
    const { queue } = this.#states;
    if (this.#isClosed || this.#states.opensAtMs > monotonicMs() || queue.readyRuns >= limits.batchRuns) return false;
    if (queue.runs > limits.queueRuns * ROOM_SHARE || queue.bytes > limits.queueBytes * ROOM_SHARE) return false;
    for (const start of this.starts.values()) if (!this.#attempts.isWaiting(start)) return false;
    if (!endpoint.isClosed) return true;
    if (this.#attempts.isSending) return false;
    return this.#attempts.retries.length === 0 || endpoint.probes >= PROBES_FROM_MEMORY;
  }

  #take({ segment, records, damagedRuns, ageMs, isExpired }: ReadSegment): void {
    const { endpoint, monotonicMs } = this.#parts;
    const states = this.#states;
    const spilled = this.spilled.get(segment);
    this.spilled.delete(segment);
    const ticket = new SegmentTicket(this, segment, spilled);
    this.#tickets.add(ticket);
    const nowMs = monotonicMs();
    // A run's age includes its time on disk. Runs from earlier processes are sent at least once, even if they are too
    // old.
    const activeAtMs = endpoint.activeAt(nowMs) - ageMs;
    const deliveries = [...(segment.isForeign ? mergeByRun(records) : records)]
      .filter(({ run }) => !this.droppedStarts.has(run.id))
      .map(({ op, run }) => {
        const delivery = new Delivery(run, nowMs, activeAtMs, ticket);
        // If a run is posted twice, the service responds with 409, and the run's end is lost.
        delivery.isPosted = op === 'patch' || this.deliveredStarts.has(run.id);
        return delivery;
      });
    // The extra 1 keeps the ticket open until all runs are queued and `leave` is called below.
    ticket.left = deliveries.length + 1;
    for (const delivery of deliveries) {
      const start = this.starts.get(delivery.run.id);
      if (start !== undefined) this.#attempts.replaced(start);
      const origin = start === undefined ? this.#originOf(delivery.run, ticket) : 'unfinished';
      if (delivery.run.endTime === undefined) this.starts.set(delivery.run.id, delivery);
      states.recovered(delivery, origin, isExpired);
    }
    if (spilled === undefined) ticket.lost = lostOf(damagedRuns, records);
    else for (const run of missingOf(spilled.runs - deliveries.length, damagedRuns)) states.lost(run, 'corrupt', 'own');
    ticket.leave();
  }

  #originOf({ id }: RunName, { spilled }: SegmentTicket): Origin {
    if (spilled !== undefined) return 'own';
    return this.deliveredStarts.delete(id) ? 'unfinished' : 'earlier process';
  }

  /** Deletes expired files, one per turn of the event loop. */
  #expireNext(files: Iterator<readonly RunName[], unknown>): void {
    const next = this.#isClosed ? undefined : files.next();
    if (next === undefined || next.done === true) return;
    for (const run of next.value) this.#states.lost(run, 'expired', 'earlier process');
    setSoon(() => this.#expireNext(files)).unref();
  }

  /** After the last segment file, counts delivered runs without an end as sent. */
  #settleUnfinished(): void {
    if (this.#tickets.size > 0 || !this.#parts.spool.isDrained) return;
    this.#states.sentWithoutEnd(this.deliveredStarts.size);
    this.deliveredStarts.clear();
    this.droppedStarts.clear();
  }
}

class SegmentTicket implements Ticket {
  readonly segment: Segment;
  /** The number of runs and their flush group. Undefined if another process wrote the file. */
  readonly spilled: Spilled | undefined;
  /** Number of runs that are neither delivered nor dropped. */
  left = 0;
  staysOnDisk = false;
  /** Unreadable runs from earlier processes. */
  lost: readonly RunName[] = [];
  readonly #replay: SpoolReader;

  constructor(replay: SpoolReader, segment: Segment, spilled: Spilled | undefined) {
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

  settled({ id }: EncodedRun): void {
    this.#replay.starts.delete(id);
    this.leave();
  }

  leave(): void {
    this.left--;
    if (this.left === 0) this.#replay.finish(this);
  }
}

/** Returns each damaged run once. A run is not lost if its end can be read. */
function lostOf(damaged: readonly RunName[], records: readonly SpooledRecord[]): RunName[] {
  const ids = new Set(records.filter(({ isEnded }) => isEnded).map(({ run }) => run.id));
  return damaged.filter(({ id }) => id === '' || (!ids.has(id) && ids.add(id)));
}

/** Returns the `count` runs that were lost in a damaged file of this process. Unidentified runs have empty fields. */
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
