import type { Limits } from '../base/limits.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import { Barrier, type FlushGroup } from './barrier.ts';
import { type Delivery, heldBytes } from './delivery.ts';

/** Runs and ends of accepted traces are taken up to this multiple of the queue's limits. */
const ACCEPTED_SHARE = 1.25;

/** Runs, and the bytes that they hold. */
export interface Held {
  readonly runs: number;
  readonly bytes: number;
}

/** What waits or is under way in memory, for the limits of the queue, and whom flushes wait for. */
export class Load {
  readonly #limits: Pick<Limits, 'queueRuns' | 'queueBytes'>;
  readonly #barrier = new Barrier();
  /** Runs of which something waits or is under way. */
  runs = 0;
  #bytes = 0;

  constructor(limits: Pick<Limits, 'queueRuns' | 'queueBytes'>) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Whether there is no room for a run beside what is `held`: a new trace is refused at the limits, a run of an accepted one
   * beyond them.
   */
  isFullFor({ parentRunId }: EncodedRun, held: Held = this): boolean {
    const share = parentRunId === undefined ? 1 : ACCEPTED_SHARE;
    return held.runs >= this.#limits.queueRuns * share || held.bytes >= this.#limits.queueBytes * share;
  }

  /** Whether the end of a run is to be kept without its payloads. */
  get isOverfull(): boolean {
    return this.#bytes >= this.#limits.queueBytes * ACCEPTED_SHARE;
  }

  /** Counts what a delivery holds now. */
  weigh(delivery: Delivery): void {
    this.#setBytes(delivery, heldBytes(delivery));
  }

  /** It holds nothing any more. */
  relieve(delivery: Delivery): void {
    this.#setBytes(delivery, 0);
  }

  /** From now on flushes wait for the post of a delivery, or for its patch. */
  awaitPost(delivery: Delivery): void {
    delivery.postGroup ??= this.#barrier.enter();
  }

  awaitPatch(delivery: Delivery): void {
    delivery.patchGroup ??= this.#barrier.enter();
  }

  /** And now no longer. */
  leave(delivery: Delivery, which: 'post' | 'both'): void {
    if (delivery.postGroup !== undefined) this.#barrier.leave(delivery.postGroup);
    delivery.postGroup = undefined;
    if (which === 'post') return;
    if (delivery.patchGroup !== undefined) this.#barrier.leave(delivery.patchGroup);
    delivery.patchGroup = undefined;
  }

  /** The same of so many records that were spilled. */
  leaveGroup(group: FlushGroup, records: number): void {
    this.#barrier.leave(group, records);
  }

  /** Resolves when everything that is waited for by now has settled. */
  passed(): Promise<void> {
    return this.#barrier.passed();
  }

  #setBytes(delivery: Delivery, bytes: number): void {
    this.#bytes += bytes - delivery.bytes;
    delivery.bytes = bytes;
  }
}
