import { grouped } from './grouped.ts';
import type { Identity } from './identity.ts';
import type { Scope } from './query.ts';

/**
 * Selects the runs to remove. `id` is the id of a run, trace, thread or user, or the name or id of a project.
 *
 * - `run`: the run and its descendants in the same trace, except those below a run that has not arrived.
 * - `trace`: all runs in the trace.
 * - `thread`, `user`: all runs in each trace in which a run has this thread or user.
 * - `project`: all runs in each trace whose root run is in the project.
 *
 * If the scope has a project, only traces whose root run is in this project lose runs. A target of the kind `run` must be
 * in this project too.
 */
export interface RemovalTarget {
  readonly kind: 'run' | 'trace' | 'thread' | 'user' | 'project';
  readonly id: string;
}

/** Number of removed runs, including runs that are not visible yet, and number of traces that contained these runs. */
export interface Removal {
  readonly runs: number;
  readonly traces: number;
}

/** A deletion in a scope that continues after the response to its request. Counts the runs that are deleted so far. */
export interface RemovalJob extends Removal, Omit<Scope, 'signal'> {
  readonly id: string;
  readonly target: RemovalTarget;
  readonly state: 'running' | 'done' | 'cancelled' | 'failed';
  /** Why the deletion failed. */
  readonly error?: string;
  readonly start_time: string;
  /** Time at which a receiver last stored the counts. */
  readonly update_time: string;
  /** Set from the end of its receiver until a receiver continues the job. */
  readonly released?: true;
  readonly end_time?: string;
}

/** The runs of a trace that a call of `remove` deletes. */
export interface Selection<Run> {
  readonly runs: readonly Run[];
  /** Whether the trace is removed, so that its later runs are ignored as well. */
  readonly isTrace: boolean;
}

export const NOTHING: Selection<never> = { runs: [], isTrace: false };

/**
 * Selects a run and its descendants among the runs of a trace. If these are all runs that have arrived, the trace is
 * removed, unless the run names a parent, because the runs above it may arrive later.
 */
export function subtreeIn<Run extends { readonly id: string; readonly namesParent: boolean }>(
  runs: readonly Run[],
  parentIdOf: (run: Run) => string | undefined,
  id: string,
): Selection<Run> {
  const children = grouped(runs, parentIdOf);
  // The set ends the loop if the parents of runs form a cycle.
  const found = new Set(runs.filter((run) => run.id === id));
  for (const run of found) for (const child of children.get(run.id) ?? []) found.add(child);
  const [top] = found;
  return { runs: [...found], isTrace: found.size === runs.length && top?.namesParent === false };
}

/** Ids of removed runs, and names of removed traces. */
export class RemovedIds {
  readonly traces: Set<string> = new Set();
  readonly runs: Set<string> = new Set();

  /**
   * Returns whether the message is of a removed run, or of a new run in a removed trace or below a removed run. A stored run
   * stays in its trace, whatever its messages name.
   */
  refuses(id: string, { traceId, otelTraceId, parentId }: Identity, isStored: boolean): boolean {
    if (isStored || this.runs.has(id)) return this.runs.has(id);
    const isRefused = this.runs.has(parentId ?? '') || this.traces.has(traceId ?? otelTraceId ?? '');
    // Later messages may contain neither the trace id nor the parent.
    if (isRefused) this.runs.add(id);
    return isRefused;
  }

  /** Deletes the oldest ids above `max`. */
  limit(max: number): void {
    for (const ids of [this.runs, this.traces]) {
      for (const id of ids) {
        if (ids.size <= max) break;
        ids.delete(id);
      }
    }
  }
}
