/** Ids of removed runs and traces. */
export class RemovedIds {
  readonly traces: Set<string> = new Set();
  /** Maps the id of a removed run to whether later descendants of the run are removed as well. */
  readonly runs: Map<string, boolean> = new Map();

  /**
   * Returns whether the message belongs to a removed run or trace. `isStored` is true if the run is stored. A stored run
   * may be below a removed run if the two runs are in different projects.
   */
  refuses(id: string, traceId: string | undefined, parentId: string | undefined, isStored: boolean): boolean {
    if (this.runs.has(id)) return true;
    const isBelow = !isStored && this.runs.get(parentId ?? '') === true;
    const isRefused = isBelow || this.traces.has(traceId ?? '');
    // Later messages may contain neither the trace id nor the parent.
    if (isRefused && !isStored) this.runs.set(id, true);
    return isRefused;
  }

  /** Deletes the oldest ids above `max`. */
  limit(max: number): void {
    for (const ids of [this.runs, this.traces]) {
      for (const id of ids.keys()) {
        if (ids.size <= max) break;
        ids.delete(id);
      }
    }
  }
}
