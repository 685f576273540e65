import { projectNames } from '../run-values.ts';
import type { AssembledTrace, TracedRun } from '../trace/assemble.ts';
import { DECIDES } from '../trace/trace-summary.ts';
import { type Deletion, REMOVED_MS } from './deletion.ts';

/** A deletion covers what was received before `atMs`. */
export interface TimedDeletion extends Deletion {
  readonly atMs: number;
}

/** Maximum number of deletions that are kept. The oldest are forgotten first. */
const DELETIONS_MAX = 100_000;

/** The latest deletions without a project. Finding those that cover a trace takes the same time however many there are. */
export class KnownDeletions {
  /** Maps each target to the time of its latest deletion, in the order in which these were added. */
  readonly #atMs = new Map<string, number>();

  add({ tenant, project, target: { kind, id }, atMs }: TimedDeletion): void {
    if (project !== undefined) return;
    const key = keyOf(tenant, kind, id);
    const latestMs = Math.max(atMs, this.#atMs.get(key) ?? 0);
    this.#atMs.delete(key);
    this.#atMs.set(key, latestMs);
    for (const [oldest, ms] of this.#atMs) {
      if (this.#atMs.size <= DELETIONS_MAX && ms >= atMs - REMOVED_MS) break;
      this.#atMs.delete(oldest);
    }
  }

  /** Of a trace that is named by its id, also covers what is received later. */
  covers(tenant: string, { id, shownId, root, members, runs }: AssembledTrace): boolean {
    if (this.#atMs.size === 0) return false;
    const isCovered = (kind: Deletion['target']['kind'], name: string, receivedUs: number): boolean => {
      const atMs = this.#atMs.get(keyOf(tenant, kind, name));
      return atMs !== undefined && (kind === 'trace' || receivedUs < atMs * 1_000);
    };
    const nameOf = (run: TracedRun, kind: 'thread' | 'user'): string[] => {
      // The root has the thread and the user of its trace, which can be those of a later run.
      const name = DECIDES[kind].counts(run) ? run.summary[kind] : undefined;
      return name === undefined ? [] : [name];
    };
    const firstUs = members.reduce((first, { n }) => Math.min(first, n), Number.POSITIVE_INFINITY);
    const projects = root === undefined ? [] : projectNames(root.summary);
    return (
      [id, shownId].some((name) => isCovered('trace', name, firstUs)) ||
      projects.some((name) => isCovered('project', name, firstUs)) ||
      (['thread', 'user'] as const).some((kind) =>
        runs.some((run) => nameOf(run, kind).some((name) => isCovered(kind, name, run.run.n))),
      )
    );
  }
}

function keyOf(...parts: readonly string[]): string {
  return JSON.stringify(parts);
}
