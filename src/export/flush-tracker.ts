/**
 * Resolves a flush when every record that was recorded before it is settled, in any order. Each flush closes the current
 * group of records. The flush is done when this group and all older groups are empty.
 */
export class FlushTracker {
  /** Oldest first. The last group is open. */
  readonly #groups: FlushGroup[] = [new FlushGroup(0)];

  /** Adds records to the current group. The caller passes the group to `leave` when they are settled. */
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
    group.pending--;
    if (group.pending === 0) this.#advance();
  }

  /** Resolves when every record that has entered so far has left. */
  flushed(): Promise<void> {
    const group = this.#groups.at(-1) as FlushGroup;
    // Nothing was recorded since the previous flush, so both wait for the same records.
    const previous = this.#groups.at(-2);
    if (group.pending === 0 && previous !== undefined) return previous.flushed;
    group.isClosed = true;
    this.#groups.push(new FlushGroup(group.number + 1));
    this.#advance();
    return group.flushed;
  }

  #advance(): void {
    const count = this.#groups.findIndex(({ isClosed, pending }) => !isClosed || pending > 0);
    for (const group of this.#groups.splice(0, count)) group.resolve();
  }
}

/** Groups of the post and of the patch of a run. */
interface FlushGroups {
  readonly postGroup: FlushGroup | undefined;
  readonly patchGroup: FlushGroup | undefined;
}

/** Records that were recorded between two flushes. */
export class FlushGroup {
  /** Increases from group to group. */
  readonly number: number;
  readonly flushed: Promise<void>;
  resolve: () => void = () => {};
  pending = 0;
  isClosed = false;

  constructor(number: number) {
    this.number = number;
    this.flushed = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }
}

/** Flushes that wait. */
export class PendingFlushes {
  readonly #flushes = new Set<PendingFlush>();

  get size(): number {
    return this.#flushes.size;
  }

  /** Whether a flush needs another probe one second after the last. */
  get wantProbe(): boolean {
    return [...this.#flushes].some(({ reasons }) => reasons.length === 1);
  }

  add(endMs: number): PendingFlush {
    const flush = new PendingFlush(endMs);
    this.#flushes.add(flush);
    return flush;
  }

  delete(flush: PendingFlush): void {
    this.#flushes.delete(flush);
  }

  /** Ends the flushes that a pause outlasts. */
  paused(untilMs: number): void {
    for (const flush of this.#flushes) if (untilMs > flush.endMs) flush.resolve(false);
  }

  /** Ends the flushes during which the service has refused a request for the same reason before. */
  refused(reason: string): void {
    for (const flush of [...this.#flushes]) {
      if (flush.reasons.includes(reason)) {
        flush.resolve(false);
        this.#flushes.delete(flush);
      } else {
        flush.reasons.push(reason);
      }
    }
  }
}

export class PendingFlush {
  readonly endMs: number;
  readonly isOver: Promise<boolean>;
  resolve: (isInTime: boolean) => void = () => {};
  /** Reasons for which the service has refused requests during this flush. */
  readonly reasons: string[] = [];

  constructor(endMs: number) {
    this.endMs = endMs;
    this.isOver = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }
}
