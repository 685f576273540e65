/** Records that came between two flushes. */
export interface FlushGroup {
  pending: number;
  closed: boolean;
  readonly passed: Promise<void>;
  readonly pass: () => void;
}

/**
 * Tells a flush when everything recorded before it has settled, in whatever order it settles and however much comes
 * after. Each flush closes the group of records at hand; it has passed once that group and all before it are empty.
 */
export class Barrier {
  /** Oldest first; the last one is open. */
  readonly #groups: FlushGroup[] = [newGroup()];

  /** Counts a record in; the answer goes to `leave` when the record has settled. */
  enter(): FlushGroup {
    const group = this.#groups.at(-1) as FlushGroup;
    group.pending++;
    return group;
  }

  leave(group: FlushGroup, records = 1): void {
    group.pending -= records;
    this.#advance();
  }

  /** Resolves when all that has entered up to now has left. */
  passed(): Promise<void> {
    const group = this.#groups.at(-1) as FlushGroup;
    // Nothing has entered since the last flush: both wait for the same.
    const previous = this.#groups.at(-2);
    if (group.pending === 0 && previous !== undefined) return previous.passed;
    group.closed = true;
    this.#groups.push(newGroup());
    this.#advance();
    return group.passed;
  }

  #advance(): void {
    let passed = 0;
    for (const group of this.#groups) {
      if (!group.closed || group.pending > 0) break;
      group.pass();
      passed++;
    }
    if (passed > 0) this.#groups.splice(0, passed);
  }
}

function newGroup(): FlushGroup {
  let pass = (): void => {};
  const passed = new Promise<void>((resolve) => {
    pass = resolve;
  });
  return { pending: 0, closed: false, passed, pass };
}
