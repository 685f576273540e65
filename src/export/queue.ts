import type { Batch, Delivery } from './delivery.ts';

export interface BatchSize {
  readonly runs: number;
  readonly bytes: number;
}

/**
 * The open runs, and the records that wait to be sent:
 *
 *     open      o1 o2 o3 │ s4 s5 s6 …    in order of start; starts after the cursor are not sent yet
 *     ready     e1 e2 e3 …               ended runs, in order of their ends
 *     retries   b1 b2 …                  batches that are sent again at their `notBeforeMs`
 *
 * Open runs form a linked list, because runs are removed from any position.
 */
export class DeliveryQueue {
  oldestOpen: Delivery | undefined;
  #newestOpen: Delivery | undefined;
  /** The oldest open run whose start was not sent. */
  firstStart: Delivery | undefined;
  #ready: (Delivery | undefined)[] = [];
  #head = 0;
  readonly retries: Batch[] = [];
  /** Number of open runs, and number of open runs whose start was not sent. */
  openRuns = 0;
  starts = 0;
  /** Number of runs in `ready`. */
  readyRuns = 0;
  /** Total bytes of waiting runs. Batches in `retries` are not included. */
  bytes = 0;
  /** Number and total bytes of ready runs that cannot be written to disk. */
  #fixedRuns = 0;
  #fixedBytes = 0;
  retriedRuns = 0;

  get runs(): number {
    return this.readyRuns + this.starts;
  }

  get freshRuns(): number {
    return this.runs - this.#fixedRuns;
  }

  get freshReadyRuns(): number {
    return this.readyRuns - this.#fixedRuns;
  }

  get freshBytes(): number {
    return this.bytes - this.#fixedBytes;
  }

  get firstReady(): Delivery | undefined {
    return this.#ready[this.#head];
  }

  addStart(delivery: Delivery): void {
    delivery.older = this.#newestOpen;
    if (this.#newestOpen === undefined) this.oldestOpen = delivery;
    else this.#newestOpen.newer = delivery;
    this.#newestOpen = delivery;
    this.firstStart ??= delivery;
    this.openRuns++;
    this.starts++;
    this.bytes += delivery.bytes;
  }

  /** Removes the first start, which is now in a batch. */
  shiftStart(): void {
    const delivery = this.firstStart as Delivery;
    this.firstStart = delivery.newer;
    this.starts--;
    this.bytes -= delivery.bytes;
  }

  /** Removes a run that is no longer open. `isStart` is true if the start of the run was not sent. */
  removeOpen(delivery: Delivery, isStart: boolean): void {
    if (delivery.older === undefined && this.oldestOpen !== delivery) return;
    if (this.firstStart === delivery) this.firstStart = delivery.newer;
    if (delivery.older === undefined) this.oldestOpen = delivery.newer;
    else delivery.older.newer = delivery.newer;
    if (delivery.newer === undefined) this.#newestOpen = delivery.older;
    else delivery.newer.older = delivery.older;
    delivery.older = undefined;
    delivery.newer = undefined;
    this.openRuns--;
    if (!isStart) return;
    this.starts--;
    this.bytes -= delivery.bytes;
  }

  addReady(delivery: Delivery): void {
    this.#ready.push(delivery);
    this.readyRuns++;
    this.bytes += delivery.bytes;
    if (isSpillable(delivery)) return;
    this.#fixedRuns++;
    this.#fixedBytes += delivery.bytes;
  }

  /** Called when a waiting `incomplete` run ends. The run can then be written to disk. */
  release(delivery: Delivery): void {
    this.#fixedRuns--;
    this.#fixedBytes -= delivery.bytes;
  }

  shiftReady(): void {
    const delivery = this.#ready[this.#head] as Delivery;
    this.bytes -= delivery.bytes;
    if (!isSpillable(delivery)) this.release(delivery);
    this.readyRuns--;
    this.#ready[this.#head++] = undefined;
    // The array is sliced only when half of its slots are empty, so removing an item costs O(1) on average.
    if (this.#head * 2 >= this.#ready.length) {
      this.#ready = this.#ready.slice(this.#head);
      this.#head = 0;
    }
  }

  /**
   * Removes and returns the oldest ready runs that can be written to disk, while `isWanted` returns true. Returns at
   * most `bytesMax` bytes, or a single larger run. Runs that cannot be written move to the end of the queue.
   */
  takeFresh(bytesMax: number, isWanted: () => boolean): Delivery[] {
    const taken: Delivery[] = [];
    const passed: Delivery[] = [];
    let bytes = 0;
    for (let next = this.firstReady; next !== undefined && isWanted(); next = this.firstReady) {
      const isFresh = isSpillable(next);
      if (isFresh) bytes += next.bytes;
      if (taken.length > 0 && bytes > bytesMax) break;
      this.shiftReady();
      (isFresh ? taken : passed).push(next);
    }
    for (const delivery of passed) this.addReady(delivery);
    return taken;
  }

  addRetry(batch: Batch): void {
    this.retries.push(batch);
    this.retriedRuns += batch.items.length;
  }

  /**
   * Removes and returns the due batch with the fewest attempts. If several batches have the same number of attempts,
   * the batch with the fewest runs comes first, so that a bad run is isolated before another batch is split.
   */
  takeRetry(nowMs: number): Batch | undefined {
    let first: Batch | undefined;
    for (const batch of this.retries) {
      if (batch.notBeforeMs <= nowMs && (first === undefined || precedes(batch, first))) first = batch;
    }
    if (first === undefined) return undefined;
    this.retries.splice(this.retries.indexOf(first), 1);
    this.retriedRuns -= first.items.length;
    return first;
  }

  get nextRetryMs(): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const { notBeforeMs } of this.retries) nextMs = Math.min(nextMs, notBeforeMs);
    return nextMs;
  }

  endBackOffs(nowMs: number): void {
    for (const batch of this.retries) batch.notBeforeMs = Math.min(batch.notBeforeMs, nowMs);
  }

  all(): Delivery[] {
    const all: Delivery[] = [];
    for (let next = this.firstStart; next !== undefined; next = next.newer) all.push(next);
    for (let at = this.#head; at < this.#ready.length; at++) all.push(this.#ready[at] as Delivery);
    for (const { items } of this.retries) for (const { delivery } of items) all.push(delivery);
    return all;
  }

  /** Removes all waiting records. Open runs whose start was sent stay in the list. */
  clear(): void {
    while (this.firstStart !== undefined) this.removeOpen(this.firstStart, true);
    this.#ready = [];
    this.#head = 0;
    this.readyRuns = 0;
    this.retries.length = 0;
    this.retriedRuns = 0;
    this.bytes = 0;
    this.#fixedRuns = 0;
    this.#fixedBytes = 0;
  }
}

/** Whether a ready run can be written to disk. A run that was read from disk already has a record on disk. */
function isSpillable({ ticket, stage }: Delivery): boolean {
  return ticket === undefined && stage !== 'incomplete';
}

function precedes(one: Batch, other: Batch): boolean {
  return one.attempts < other.attempts || (one.attempts === other.attempts && one.items.length < other.items.length);
}
