import type { Delivery } from './delivery.ts';

export interface BatchSize {
  readonly runs: number;
  readonly bytes: number;
}

/**
 * Two lists of runs:
 *
 *     open      o1 o2 o3 │ s4 s5 s6 …    open runs, oldest first; starts from `firstStart` on are waiting to be sent
 *     ready     e1 e2 e3 …               runs whose end is waiting to be sent, earliest end first
 *
 * `open` is a linked list, because runs may end in any order.
 */
export class DeliveryQueue {
  oldestOpen: Delivery | undefined;
  #newestOpen: Delivery | undefined;
  firstStart: Delivery | undefined;
  #ready: (Delivery | undefined)[] = [];
  #head = 0;
  openRuns = 0;
  /** Number of open runs whose start is queued. */
  starts = 0;
  bytes = 0;
  /** Number and total size of the runs in `ready` that were read from disk. */
  #recoveredRuns = 0;
  #recoveredBytes = 0;

  get readyRuns(): number {
    return this.#ready.length - this.#head;
  }

  get runs(): number {
    return this.readyRuns + this.starts;
  }

  get freshRuns(): number {
    return this.runs - this.#recoveredRuns;
  }

  get freshReadyRuns(): number {
    return this.readyRuns - this.#recoveredRuns;
  }

  get freshBytes(): number {
    return this.bytes - this.#recoveredBytes;
  }

  get firstReady(): Delivery | undefined {
    return this.#ready[this.#head];
  }

  /** Monotonic time at which the first run was queued, in milliseconds. Infinity if there is none. */
  get oldestAtMs(): number {
    const never = Number.POSITIVE_INFINITY;
    return Math.min(this.firstStart?.queuedAtMs ?? never, this.firstReady?.queuedAtMs ?? never);
  }

  /** Adds a run that has started. Its start is queued unless it has nothing to send yet. */
  addOpen(delivery: Delivery): void {
    delivery.older = this.#newestOpen;
    if (this.#newestOpen === undefined) this.oldestOpen = delivery;
    else this.#newestOpen.newer = delivery;
    this.#newestOpen = delivery;
    this.openRuns++;
    if (delivery.stage !== 'started') return;
    this.firstStart ??= delivery;
    this.starts++;
    this.bytes += delivery.bytes;
  }

  /** Removes the oldest start from the queue. The run stays in the list of open runs. */
  shiftStart(): void {
    const delivery = this.firstStart as Delivery;
    this.firstStart = delivery.newer;
    this.starts--;
    this.bytes -= delivery.bytes;
  }

  /** Removes a run from the list of open runs. Set `isStart` if the run's start is still queued. */
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
    this.bytes += delivery.bytes;
    this.#countRecovered(delivery, 1);
  }

  /** Exchanges the first ready run with the one at this index. */
  exchangeFirst(index: number): void {
    const at = this.#head + index;
    const first = this.#ready[this.#head];
    this.#ready[this.#head] = this.#ready[at];
    this.#ready[at] = first;
  }

  shiftReady(): void {
    const delivery = this.#ready[this.#head] as Delivery;
    this.bytes -= delivery.bytes;
    this.#countRecovered(delivery, -1);
    this.#ready[this.#head++] = undefined;
    // Copies the array only when half of it is empty, so that removal takes O(1) time on average.
    if (this.#head * 2 >= this.#ready.length) {
      this.#ready = this.#ready.slice(this.#head);
      this.#head = 0;
    }
  }

  /**
   * Removes and returns runs that can be written to disk, oldest first. Stops when `isWanted` returns false, or when
   * the runs would exceed `bytesMax`. The first run may exceed `bytesMax`. Runs that cannot be written move to the end
   * of the queue.
   */
  takeFresh(bytesMax: number, isWanted: () => boolean): Delivery[] {
    const taken: Delivery[] = [];
    const skipped: Delivery[] = [];
    let bytes = 0;
    for (let next = this.firstReady; next !== undefined && isWanted(); next = this.firstReady) {
      // A run with a `ticket` is already on disk.
      const isFresh = next.ticket === undefined && next.stage !== 'incomplete';
      if (isFresh) bytes += next.bytes;
      if (taken.length > 0 && bytes > bytesMax) break;
      this.shiftReady();
      (isFresh ? taken : skipped).push(next);
    }
    for (const delivery of skipped) this.addReady(delivery);
    return taken;
  }

  #countRecovered({ ticket, bytes }: Delivery, sign: 1 | -1): void {
    if (ticket === undefined) return;
    this.#recoveredRuns += sign;
    this.#recoveredBytes += sign * bytes;
  }

  all(): Delivery[] {
    const all: Delivery[] = [];
    for (let next = this.firstStart; next !== undefined; next = next.newer) all.push(next);
    for (let at = this.#head; at < this.#ready.length; at++) all.push(this.#ready[at] as Delivery);
    return all;
  }

  *open(): Generator<Delivery> {
    for (let next = this.oldestOpen; next !== undefined; next = next.newer) yield next;
  }

  /** Removes all runs waiting to be sent. An open run stays in `open` if its start was sent. */
  clear(): void {
    while (this.firstStart !== undefined) this.removeOpen(this.firstStart, true);
    while (this.firstReady !== undefined) this.shiftReady();
  }
}
