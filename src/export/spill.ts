import { type Delivery, halves } from './delivery.ts';
import type { SpoolingParts } from './exporter-parts.ts';
import type { Replay } from './replay.ts';
import type { SpooledRecord } from './spool/spool.ts';
import type { DeliveryStates } from './states.ts';

/** Shares of the queue's limits: above the first, waiting runs go to disk until the queue is below the second. */
const HIGH_SHARE = 0.5;
const LOW_SHARE = 0.25;

/** Bytes written in one call, which blocks the event loop for a few milliseconds. */
const SLICE_BYTES = 1_024 * 1_024;

/** Interval between two writes during an outage, which avoids a file per run, and between two attempts after a disk error. */
const REST_MS = 1_000;

/**
 * Decides what goes to disk. With `spill`: ended runs, when the queue is half full, when the service has been unavailable
 * for five seconds, and when the exporter closes. With `write-ahead`: also every record at its call.
 */
export class Spill {
  readonly #parts: SpoolingParts;
  readonly #states: DeliveryStates;
  readonly #replay: Replay;
  /** Whether the queue was above the high share and is not below the low share yet. */
  #isDraining = false;
  #restsUntilMs = Number.NEGATIVE_INFINITY;
  #failsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(parts: SpoolingParts, states: DeliveryStates, replay: Replay) {
    this.#parts = parts;
    this.#states = states;
    this.#replay = replay;
  }

  /** Writes the start of a run in write-ahead. */
  started(delivery: Delivery): void {
    const { isWriteAhead, spool } = this.#parts;
    if (isWriteAhead) delivery.startSegment = spool.append(recordOf(delivery));
  }

  /** Writes the end of a run in write-ahead. Replaces the record of the start, which the end repeats. */
  ended(delivery: Delivery): void {
    const { isWriteAhead, spool } = this.#parts;
    const segment = isWriteAhead ? spool.append(recordOf(delivery)) : undefined;
    if (segment === undefined) return;
    if (delivery.startSegment !== undefined) spool.release(delivery.startSegment);
    delivery.startSegment = undefined;
    delivery.endSegment = segment;
  }

  /** When runs should go to disk; infinite while there is no reason to. */
  get dueMs(): number {
    const { gate, limits } = this.#parts;
    if (this.#isAbove(this.#isDraining ? LOW_SHARE : HIGH_SHARE)) return this.#failsUntilMs;
    if (!gate.isOutage || this.#states.queue.freshReadyRuns === 0) return Number.POSITIVE_INFINITY;
    return Math.max(gate.outageSinceMs + limits.spillAfterMs, this.#restsUntilMs, this.#failsUntilMs);
  }

  /** Writes a slice if runs should go to disk. */
  run(nowMs: number): void {
    const { gate, limits } = this.#parts;
    if (this.dueMs > nowMs) return;
    this.#isDraining = true;
    const isUnavailable = gate.outageSinceMs + limits.spillAfterMs <= nowMs;
    this.#spill(nowMs, () => this.#isAbove(LOW_SHARE) || isUnavailable);
    if (this.dueMs <= nowMs) return;
    this.#isDraining = false;
    this.#restsUntilMs = nowMs + REST_MS;
  }

  /** Writes a slice for a run that would be refused otherwise. Returns false if nothing could be written. */
  makeRoom(): boolean {
    return this.#spill(this.#parts.monotonicMs(), () => true);
  }

  /**
   * Writes the runs that are left when the exporter closes, the oldest first, and returns those that the disk did not
   * take. A refused slice is halved, down to single runs. After a run that does not fit, only runs of at most half its
   * size are tried, so that a full disk costs few attempts.
   */
  keep(deliveries: readonly Delivery[]): Delivery[] {
    const left: Delivery[] = [];
    let bytesMax = Number.POSITIVE_INFINITY;
    const keepFitting = (slice: readonly Delivery[]): void => {
      const fitting = slice.filter(({ bytes }) => bytes <= bytesMax);
      left.push(...slice.filter(({ bytes }) => bytes > bytesMax));
      const [first] = fitting;
      if (first === undefined || this.#parts.spool.keep(fitting.map(recordOf))) return;
      if (fitting.length === 1) {
        left.push(first);
        bytesMax = first.bytes / 2;
        return;
      }
      for (const half of halves(fitting)) keepFitting(half);
    };
    const unwritten = deliveries.filter((delivery) => !this.#isOnDisk(delivery));
    for (const slice of slices(unwritten.sort((one, other) => one.queuedAtMs - other.queuedAtMs))) keepFitting(slice);
    return left;
  }

  #spill(nowMs: number, isWanted: () => boolean): boolean {
    const { spool } = this.#parts;
    const states = this.#states;
    if (nowMs < this.#failsUntilMs) return false;
    const taken = states.queue.takeFresh(SLICE_BYTES, isWanted);
    if (taken.length === 0) return false;
    const segment = spool.spill(taken.map(recordOf));
    if (segment === undefined) {
      for (const delivery of taken) states.queue.addReady(delivery);
      this.#failsUntilMs = nowMs + REST_MS;
      return false;
    }
    this.#replay.spilled.set(segment, { runs: taken.length, group: states.spilled(taken) });
    return true;
  }

  #isOnDisk({ run, startSegment, endSegment, ticket }: Delivery): boolean {
    const segment = ticket?.segment ?? (run.endTime === undefined ? startSegment : endSegment);
    return segment !== undefined && this.#parts.spool.holds(segment);
  }

  #isAbove(share: number): boolean {
    const { limits } = this.#parts;
    const { freshReadyRuns, freshRuns, freshBytes } = this.#states.queue;
    if (freshReadyRuns === 0) return false;
    return freshRuns > limits.queueRuns * share || freshBytes > limits.queueBytes * share;
  }
}

function recordOf({ run, isPosted }: Delivery): SpooledRecord {
  return { op: isPosted ? 'patch' : 'post', isEnded: run.endTime !== undefined, run };
}

function* slices(deliveries: readonly Delivery[]): Iterable<Delivery[]> {
  let slice: Delivery[] = [];
  let bytes = 0;
  for (const delivery of deliveries) {
    slice.push(delivery);
    bytes += delivery.bytes;
    if (bytes < SLICE_BYTES) continue;
    yield slice;
    slice = [];
    bytes = 0;
  }
  if (slice.length > 0) yield slice;
}
