import { type Delivery, type Item, takeItem } from './delivery.ts';

/** How much one batch may take. */
export interface BatchSize {
  readonly runs: number;
  readonly bytes: number;
}

/**
 * The deliveries that wait to be sent. Ended ones stand in one line; runs that have only started stand in another, since
 * their end may still come and travel in the same record:
 *
 *     starts   s1 s2 s3 …          an end moves its run from here, wherever it stands,
 *     ready    e1 e2 e3 e4 …  ◄─── to the end of this line
 *
 * It is a data structure: no timer, no promise, no limit of its own.
 */
export class DeliveryQueue {
  /** A Set keeps its order and lets go of any member at once. */
  readonly #starts = new Set<Delivery>();
  #ready: (Delivery | undefined)[] = [];
  #head = 0;
  #bytes = 0;
  /** Of those, what has come from the disk, and stands there until it has settled. */
  #fromDisk = { runs: 0, bytes: 0 };

  /** Deliveries whose end is recorded. */
  get readyRuns(): number {
    return this.#ready.length - this.#head;
  }

  get runs(): number {
    return this.readyRuns + this.#starts.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** What waits and has not come from the disk. */
  get fresh(): BatchSize & { readonly readyRuns: number } {
    const { runs, bytes } = this.#fromDisk;
    return { runs: this.runs - runs, readyRuns: this.readyRuns - runs, bytes: this.#bytes - bytes };
  }

  /** What stands first in either line. */
  get heads(): readonly Delivery[] {
    return [this.#first(true), this.#first(false)].filter((delivery) => delivery !== undefined);
  }

  addStart(delivery: Delivery): void {
    this.#starts.add(delivery);
    this.#bytes += delivery.bytes;
  }

  /** Adds a delivery whose end is recorded. */
  addReady(delivery: Delivery): void {
    this.#ready.push(delivery);
    this.#bytes += delivery.bytes;
    if (delivery.ticket === undefined) return;
    this.#fromDisk.runs++;
    this.#fromDisk.bytes += delivery.bytes;
  }

  /** Moves a run that has ended before its start was sent; `bytesBefore` is what it was added with. */
  moveToReady(delivery: Delivery, bytesBefore: number): void {
    this.#starts.delete(delivery);
    this.#bytes -= bytesBefore;
    this.addReady(delivery);
  }

  /** The next records, up to `startsMax` starts before ended ones; a record larger than the size comes alone. */
  take(size: BatchSize, startsMax: number): Item[] {
    const items: Item[] = [];
    let bytes = 0;
    while (items.length < size.runs) {
      const delivery = this.#first(items.length < startsMax);
      if (delivery === undefined || (items.length > 0 && bytes + delivery.bytes > size.bytes)) break;
      this.#remove(delivery);
      bytes += delivery.bytes;
      items.push(takeItem(delivery));
    }
    return items;
  }

  /**
   * The oldest fresh ones that have ended, up to so many bytes or one that has more, as long as `isWanted`; taken out. Those
   * from the disk that stand before them go to the end of the line.
   */
  takeFresh(bytesMax: number, isWanted: () => boolean): Delivery[] {
    const taken: Delivery[] = [];
    const passed: Delivery[] = [];
    let bytes = 0;
    for (let next = this.#ready[this.#head]; next !== undefined && isWanted(); next = this.#ready[this.#head]) {
      const isFresh = next.ticket === undefined;
      if (isFresh) bytes += next.bytes;
      if (taken.length > 0 && bytes > bytesMax) break;
      this.#remove(next);
      (isFresh ? taken : passed).push(next);
    }
    for (const delivery of passed) this.addReady(delivery);
    return taken;
  }

  /** Everything that waits. */
  all(): Delivery[] {
    return [...this.#starts, ...(this.#ready.slice(this.#head) as Delivery[])];
  }

  /** The same, taken out. */
  drain(): Delivery[] {
    const all = this.all();
    this.#starts.clear();
    this.#ready = [];
    this.#head = 0;
    this.#bytes = 0;
    this.#fromDisk = { runs: 0, bytes: 0 };
    return all;
  }

  #first(mayStart: boolean): Delivery | undefined {
    const start = mayStart ? this.#starts.values().next().value : undefined;
    return start ?? this.#ready[this.#head];
  }

  #remove(delivery: Delivery): void {
    this.#bytes -= delivery.bytes;
    if (this.#starts.delete(delivery)) return;
    if (delivery.ticket !== undefined) {
      this.#fromDisk.runs--;
      this.#fromDisk.bytes -= delivery.bytes;
    }
    this.#ready[this.#head++] = undefined;
    // The consumed front is cut off when it is half of the array, so that taking stays O(1) on average.
    if (this.#head * 2 >= this.#ready.length) {
      this.#ready = this.#ready.slice(this.#head);
      this.#head = 0;
    }
  }
}
