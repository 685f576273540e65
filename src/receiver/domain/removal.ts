/**
 * Selects the traces to remove. `id` is the id of a trace, thread or user, or the name or id of a project.
 *
 * - `trace`: the trace.
 * - `thread`, `user`: each trace in which a run has this thread or user.
 * - `project`: each trace whose root run is in the project.
 *
 * If the scope has a project, only traces whose root run is in this project are removed.
 */
export interface RemovalTarget {
  readonly kind: 'trace' | 'thread' | 'user' | 'project';
  readonly id: string;
}

export const REMOVAL_KINDS: readonly RemovalTarget['kind'][] = ['trace', 'thread', 'user', 'project'];

/** Number of removed runs, including runs that are not visible yet, and number of traces that contained these runs. */
export interface Removal {
  readonly runs: number;
  readonly traces: number;
}
