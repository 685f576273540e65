import { describeOpenRun } from '../../run/encoded-run.ts';
import type { Delivery } from '../delivery.ts';
import type { SpoolingParts } from '../exporter-parts.ts';
import type { DeliveryStates } from '../states.ts';
import type { Segment, SpooledRecord } from './spool.ts';
import type { SpoolReader } from './spool-reader.ts';

/** If the queue exceeds `HIGH_SHARE` of its limits, runs are written to disk until the queue is down to `LOW_SHARE`. */
const HIGH_SHARE = 0.5;
const LOW_SHARE = 0.25;

/** Maximum size of a segment file, in bytes. Writing a file blocks the event loop for a few milliseconds. */
const SLICE_BYTES = 1_024 * 1_024;

/** Minimum time between two writes in an outage or after an error, in milliseconds. Prevents one file per run. */
const REST_MS = 1_000;
/** How long the service must be unavailable before queued runs are written to disk, in milliseconds. */
const SPILL_AFTER_MS = 5_000;

/**
 * Decides which runs are written to disk. Ended runs are written when the queue is half full, when the service has been
 * unavailable for `SPILL_AFTER_MS`, and when the exporter closes. If `durability` is `write-ahead`, every run is
 * written at its start and at its end.
 */
export class Spill {
  readonly #parts: SpoolingParts;
  readonly #states: DeliveryStates;
  readonly #replay: SpoolReader;
  #isDraining = false;
  #restsUntilMs = Number.NEGATIVE_INFINITY;
  #failsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(parts: SpoolingParts, states: DeliveryStates, replay: SpoolReader) {
    this.#parts = parts;
    this.#states = states;
    this.#replay = replay;
  }

  started(delivery: Delivery): void {
    const { isWriteAhead, spool } = this.#parts;
    if (!isWriteAhead) return;
    delivery.startSegment = spool.append(recordOf(delivery));
    delivery.startedIn = delivery.startSegment;
  }

  /** If `durability` is `write-ahead`, writes an ended run to disk, which replaces the run's start. */
  ended(delivery: Delivery): void {
    const { isWriteAhead, spool } = this.#parts;
    const segment = isWriteAhead ? spool.append(recordOf(delivery), delivery.startedIn) : undefined;
    if (segment === undefined) return;
    if (delivery.startSegment !== undefined) spool.release(delivery.startSegment);
    delivery.startSegment = undefined;
    delivery.endSegment = segment;
  }

  /** Writes runs again whose files are gone. Returns their number. */
  again(unsettled: readonly Delivery[]): number {
    const { spool } = this.#parts;
    let runs = 0;
    for (const delivery of new Set([...this.#states.queue.open(), ...unsettled])) {
      const gone = segmentOf(delivery);
      const segment = gone === undefined || spool.holds(gone) ? undefined : spool.append(recordOf(delivery));
      if (gone === undefined || segment === undefined) continue;
      spool.release(gone);
      delivery[delivery.run.endTime === undefined ? 'startSegment' : 'endSegment'] = segment;
      delivery.startedIn = segment;
      runs++;
    }
    return runs;
  }

  /** Time of the next write to disk. Infinity if no write is due. */
  get dueMs(): number {
    const { endpoint } = this.#parts;
    if (this.#isAbove(this.#isDraining ? LOW_SHARE : HIGH_SHARE)) return this.#failsUntilMs;
    if (!endpoint.isClosed || this.#states.queue.freshReadyRuns === 0) return Number.POSITIVE_INFINITY;
    return Math.max(endpoint.outageSinceMs + SPILL_AFTER_MS, this.#restsUntilMs, this.#failsUntilMs);
  }

  run(nowMs: number): void {
    // Reading comes first. Otherwise, runs would be read right after they were written.
    this.#replay.run();
    if (this.dueMs > nowMs) return;
    this.#isDraining = true;
    const isUnavailable = this.#parts.endpoint.outageSinceMs + SPILL_AFTER_MS <= nowMs;
    this.#spill(nowMs, () => this.#isAbove(LOW_SHARE) || isUnavailable);
    if (this.dueMs <= nowMs) return;
    this.#isDraining = false;
    this.#restsUntilMs = nowMs + REST_MS;
  }

  /** Frees space in the queue by writing runs to disk. Returns false if no run was written. */
  makeRoom(): boolean {
    return this.#spill(this.#parts.monotonicMs(), () => true);
  }

  /**
   * Writes runs to disk when the exporter closes, and returns the runs that could not be written. If a single run
   * cannot be written, all remaining runs larger than half its size are skipped.
   */
  keep(deliveries: readonly Delivery[]): Delivery[] {
    const left: Delivery[] = [];
    let bytesMax = Number.POSITIVE_INFINITY;
    const keepFitting = (slice: readonly Delivery[]): void => {
      const fitting = slice.filter(({ bytes }) => bytes <= bytesMax);
      left.push(...slice.filter(({ bytes }) => bytes > bytesMax));
      const [first] = fitting;
      if (first === undefined) return;
      const isSlice = fitting.length === 1 || fitting.reduce((sum, { bytes }) => sum + bytes, 0) <= SLICE_BYTES;
      if (isSlice && this.#parts.spool.keep(fitting.map(lastRecordOf))) return;
      if (fitting.length === 1) {
        left.push(first);
        bytesMax = first.bytes / 2;
        return;
      }
      const middle = Math.ceil(fitting.length / 2);
      keepFitting(fitting.slice(0, middle));
      keepFitting(fitting.slice(middle));
    };
    const unwritten = deliveries.filter((delivery) => isIncomplete(delivery) || !this.#isOnDisk(delivery));
    keepFitting(unwritten.sort((one, other) => one.queuedAtMs - other.queuedAtMs));
    // The start of an open run stays on disk even if the run cannot be written with its end.
    return left.filter((delivery) => !this.#isOnDisk(delivery));
  }

  #spill(nowMs: number, isWanted: () => boolean): boolean {
    const { spool } = this.#parts;
    const states = this.#states;
    if (nowMs < this.#failsUntilMs) return false;
    const taken = states.queue.takeFresh(SLICE_BYTES, isWanted);
    // If `taken` is empty, `spill` returns undefined, and the next attempt waits like after an error.
    const segment = spool.spill(taken.map(recordOf));
    if (segment === undefined) {
      for (const delivery of taken) states.queue.addReady(delivery);
      this.#failsUntilMs = nowMs + REST_MS;
      return false;
    }
    this.#replay.spilled.set(segment, { runs: taken.length, group: states.spilled(taken) });
    return true;
  }

  #isOnDisk(delivery: Delivery): boolean {
    const segment = segmentOf(delivery);
    return segment !== undefined && this.#parts.spool.holds(segment);
  }

  #isAbove(share: number): boolean {
    const { limits } = this.#parts;
    const { freshReadyRuns, freshRuns, freshBytes } = this.#states.queue;
    if (freshReadyRuns === 0) return false;
    return freshRuns > limits.queueRuns * share || freshBytes > limits.queueBytes * share;
  }
}

/** Returns the file from which the next process would read the run. */
function segmentOf({ run, startSegment, endSegment, ticket }: Delivery): Segment | undefined {
  return (run.endTime === undefined ? startSegment : endSegment) ?? ticket?.segment;
}

/** Whether the run is sent with an end although it is open. */
function isIncomplete({ run, endOverride }: Delivery): boolean {
  return run.endTime === undefined && endOverride !== undefined;
}

/** Returns the record for the next process. An incomplete run keeps the end with which it was sent. */
function lastRecordOf(delivery: Delivery): SpooledRecord {
  const record = recordOf(delivery);
  if (!isIncomplete(delivery)) return record;
  return { ...record, isEnded: true, run: { ...record.run, ...delivery.endOverride } };
}

function recordOf({ run, isPosted }: Delivery): SpooledRecord {
  describeOpenRun(run);
  return { op: isPosted ? 'patch' : 'post', isEnded: run.endTime !== undefined, run };
}
