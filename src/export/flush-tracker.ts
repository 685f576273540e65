/**
 * Ends a flush when every record that was recorded before it is settled, in any order. Each flush closes the current group
 * of records. The flush is done when this group and all older groups are empty.
 */
export class FlushTracker {
  /** Oldest first. Records enter the last one. */
  readonly #groups: FlushGroup[] = [{ number: 0, flushes: [], pending: 0 }];
  /** The flushes that wait. */
  readonly waiting: Set<Flush> = new Set();

  /** Adds a record to the current group. The caller passes the group to `leave` when the record is settled. */
  enter(): FlushGroup {
    const group = this.#groups[this.#groups.length - 1] as FlushGroup;
    group.pending++;
    return group;
  }

  /** Adds one record to the oldest group of the deliveries. */
  enterOldest(deliveries: readonly FlushGroups[]): FlushGroup {
    const groups = deliveries.flatMap(({ postGroup, patchGroup }) => postGroup ?? patchGroup ?? []);
    const oldest = groups.reduce((one, other) => (other.number < one.number ? other : one));
    oldest.pending++;
    return oldest;
  }

  leave(group: FlushGroup): void {
    if (--group.pending === 0) this.#advance();
  }

  /** Whether a flush needs another probe one second after the last. */
  get wantProbe(): boolean {
    return [...this.waiting].some(({ reasons }) => reasons.length === 1);
  }

  /** Begins a flush that waits for every record that has entered so far. */
  begin(endMs: number): Flush {
    const flush = new Flush(endMs);
    this.waiting.add(flush);
    const group = this.#groups.at(-1) as FlushGroup;
    const previous = this.#groups.at(-2);
    if (group.pending === 0 && previous !== undefined) {
      // Nothing was recorded since the previous flush, so both wait for the same records.
      previous.flushes.push(flush);
      return flush;
    }
    group.flushes.push(flush);
    this.#groups.push({ number: group.number + 1, flushes: [], pending: 0 });
    this.#advance();
    return flush;
  }

  /** Gives up the flushes that a pause outlasts. */
  paused(untilMs: number): void {
    for (const flush of this.waiting) if (untilMs > flush.endMs) flush.resolve(false);
  }

  /** Gives up the flushes during which the service has refused a request for the same reason before. */
  refused(reason: string): void {
    for (const flush of this.waiting) {
      if (flush.reasons.includes(reason)) {
        flush.resolve(false);
        this.waiting.delete(flush);
      } else {
        flush.reasons.push(reason);
      }
    }
  }

  #advance(): void {
    while (this.#groups.length > 1 && this.#groups[0]?.pending === 0) {
      for (const flush of this.#groups.shift()?.flushes ?? []) flush.resolve(true);
    }
  }
}

/** Groups of the post and of the patch of a run. */
interface FlushGroups {
  readonly postGroup: FlushGroup | undefined;
  readonly patchGroup: FlushGroup | undefined;
}

/** Records that were recorded between two flushes. */
export interface FlushGroup {
  /** Increases from group to group. */
  readonly number: number;
  /** Flushes that wait for this group. */
  readonly flushes: Flush[];
  pending: number;
}

class Flush {
  readonly endMs: number;
  /** Whether all records were settled before the flush was given up. */
  readonly done: Promise<boolean>;
  resolve: (isDone: boolean) => void = () => {};
  /** Reasons for which the service has refused requests during this flush. */
  readonly reasons: string[] = [];

  constructor(endMs: number) {
    this.endMs = endMs;
    this.done = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }
}
