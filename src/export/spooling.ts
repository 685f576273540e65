import type { Limits } from '../base/limits.ts';
import { clearTimer, setSoon, setTimer } from '../base/timers.ts';
import type { Delivery } from './delivery.ts';
import type { Outage } from './outage.ts';
import type { DeliveryQueue } from './queue.ts';
import type { Segment, Spool } from './spool.ts';
import type { SpooledRecord } from './spool-record.ts';

/** Shares of the queue's limits: above the first what waits goes to the disk, until there is less than the second. */
const HIGH_SHARE = 0.5;
const LOW_SHARE = 0.25;

/** Written in one go, from the event loop: some milliseconds. */
const SLICE_BYTES = 1_024 * 1_024;

/**
 * Between two times: what comes during an outage is gathered, so that not each run has a file of its own, and what the disk
 * did not take is not laid again with every call.
 */
const REST_MS = 1_000;

export interface SpoolingParts {
  readonly spool: Spool;
  /** Every record is on disk before the call of the application returns. */
  readonly isWriteAhead: boolean;
  readonly queue: DeliveryQueue;
  readonly limits: Pick<Limits, 'queueRuns' | 'queueBytes' | 'spillAfterMs'>;
  readonly outage: Outage;
  readonly monotonicMs: () => number;
  /** Called for deliveries that are on disk now, in this segment, and wait in memory no longer. */
  readonly spilled: (deliveries: readonly Delivery[], segment: Segment) => void;
}

/**
 * The way to the disk. In `spill` what has ended goes there when the queue is half full, when the service has been away for
 * five seconds, and when the process ends; in `write-ahead` every record goes there first. `replay.ts` is the way back.
 */
export class Spooling {
  readonly #parts: SpoolingParts;
  #isScheduled = false;
  /** Until when what comes during an outage is gathered, and until when nothing is tried after a failure. */
  #gathersUntilMs = Number.NEGATIVE_INFINITY;
  #failsUntilMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: SpoolingParts) {
    this.#parts = parts;
  }

  /** Called when a run has started, in the call of the application. */
  started(delivery: Delivery): void {
    const { isWriteAhead, spool } = this.#parts;
    if (isWriteAhead) delivery.startSegment = spool.append(recordOf(delivery));
  }

  /** Called when it has ended, likewise. */
  ended(delivery: Delivery): void {
    if (this.#parts.isWriteAhead) this.#appendEnd(delivery);
  }

  /** The service has the start of a run. */
  posted(delivery: Delivery): void {
    this.#release(delivery.startSegment);
    delivery.startSegment = undefined;
  }

  /** Nothing of a run has to be kept any more. */
  settled(delivery: Delivery): void {
    this.posted(delivery);
    this.#release(delivery.endSegment);
    delivery.endSegment = undefined;
  }

  /** Called after every change of the queue. */
  changed(): void {
    if (this.#isScheduled) return;
    const nowMs = this.#parts.monotonicMs();
    const isDue = this.#isAbove(HIGH_SHARE) || (nowMs >= this.#gathersUntilMs && this.#isAway);
    if (isDue && nowMs >= this.#failsUntilMs) this.#schedule();
  }

  /** Called when an outage begins or is over. */
  outageChanged(): void {
    clearTimer(this.#timer);
    this.#timer = undefined;
    if (this.#parts.outage.isOn) this.#watchOutage(this.#parts.limits.spillAfterMs);
  }

  /** Makes room at once, for a run that would be refused otherwise; false when nothing could be written. */
  makeRoom(): boolean {
    return this.#spill(() => true);
  }

  /**
   * Writes what will not be sent any more, the oldest first; gives back what could not be written. What the disk has no room for
   * is halved, down to single runs. After one that does not fit only those of half its size are tried: of larger ones one more would fit
   * at the most, and a full disk costs few attempts however many runs there are.
   */
  keep(deliveries: readonly Delivery[]): Delivery[] {
    const left: Delivery[] = [];
    let bytesMax = Number.POSITIVE_INFINITY;
    const keepFitting = (slice: readonly Delivery[]): void => {
      const fitting = slice.filter(({ bytes }) => bytes <= bytesMax);
      left.push(...slice.filter(({ bytes }) => bytes > bytesMax));
      if (fitting.length === 0 || this.#parts.spool.keep(fitting.map(recordOf))) return;
      const [first] = fitting as [Delivery];
      if (fitting.length === 1) {
        left.push(first);
        bytesMax = first.bytes / 2;
        return;
      }
      const half = Math.ceil(fitting.length / 2);
      keepFitting(fitting.slice(0, half));
      keepFitting(fitting.slice(half));
    };
    const unwritten = deliveries.filter((delivery) => !isWritten(delivery));
    for (const slice of slices(unwritten.sort(byAge))) keepFitting(slice);
    return left;
  }

  close(): void {
    clearTimer(this.#timer);
    this.#isScheduled = true;
    this.#parts.spool.close();
  }

  /**
   * The record of an end stands for that of the start, which is needed no more: what is left over in a file from before has
   * to make sense by itself when the next process reads it.
   */
  #appendEnd(delivery: Delivery): void {
    if (delivery.stage === 'settled') return;
    const segment = this.#parts.spool.append(recordOf(delivery));
    if (segment === undefined) return;
    this.settled(delivery);
    delivery.endSegment = segment;
  }

  #release(segment: Segment | undefined): void {
    if (segment !== undefined) this.#parts.spool.release(segment);
  }

  #isAbove(share: number): boolean {
    const { queue, limits } = this.#parts;
    const { runs, readyRuns, bytes } = queue.fresh;
    if (readyRuns === 0) return false;
    return runs > limits.queueRuns * share || bytes > limits.queueBytes * share;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setSoon(() => {
      this.#isScheduled = false;
      const isHigh = (): boolean => this.#isAbove(LOW_SHARE) || this.#isAway;
      if (this.#spill(isHigh) && isHigh()) this.#schedule();
      else this.#gathersUntilMs = this.#parts.monotonicMs() + REST_MS;
    }).unref();
  }

  get #isAway(): boolean {
    const { outage, limits, queue } = this.#parts;
    return outage.isOn && outage.lastsMs >= limits.spillAfterMs && queue.fresh.readyRuns > 0;
  }

  #watchOutage(waitMs: number): void {
    this.#timer = setTimer(() => {
      this.changed();
      this.#watchOutage(REST_MS);
    }, waitMs).unref();
  }

  #spill(isWanted: () => boolean): boolean {
    const { queue, spool, spilled, monotonicMs } = this.#parts;
    if (monotonicMs() < this.#failsUntilMs) return false;
    const taken = queue.takeFresh(SLICE_BYTES, isWanted);
    if (taken.length === 0) return false;
    const segment = spool.spill(taken.map(recordOf));
    if (segment !== undefined) {
      spilled(taken, segment);
      return true;
    }
    for (const delivery of taken) queue.addReady(delivery);
    this.#failsUntilMs = monotonicMs() + REST_MS;
    return false;
  }
}

/** All that is left to send of a run. */
function recordOf({ run, isPosted }: Delivery): SpooledRecord {
  return { op: isPosted ? 'patch' : 'post', isEnded: run.endTime !== undefined, run };
}

/** Whether all of it stands on disk already. */
function isWritten({ run, startSegment, endSegment, ticket }: Delivery): boolean {
  return ticket !== undefined || (run.endTime === undefined ? startSegment : endSegment) !== undefined;
}

function byAge(one: Delivery, other: Delivery): number {
  return one.queuedAtMs - other.queuedAtMs;
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
