import { isObject } from '../../config/checker.ts';
import { canonicalId } from '../../run/time.ts';
import { comparable } from './comparable.ts';
import type { Scope } from './query.ts';
import type { RunFields } from './run-message.ts';

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

/** Number of removed runs, including runs that are not visible yet, and number of traces that contained these runs. */
export interface Removal {
  readonly runs: number;
  readonly traces: number;
}

export function countsOf({ runs, traces }: Removal): string {
  return `${runs} run${runs === 1 ? '' : 's'} of ${traces} trace${traces === 1 ? '' : 's'}`;
}

/** Time for which deletions, and the names of deleted traces, are kept, in milliseconds: 30 days. */
export const DELETIONS_MS: number = 30 * 24 * 3_600_000;
/** Maximum number of deletions whose stored traces are still being deleted. */
export const OPEN_DELETIONS_MAX = 100;
/** Maximum number of deletions that are kept. The oldest are forgotten first. */
const DELETIONS_MAX = 100_000;

/** Covers the traces of a target whose first run started before `atMs`. A trace that is named by its id may start later. */
export interface Deletion extends Omit<Scope, 'signal'> {
  readonly target: RemovalTarget;
  readonly atMs: number;
}

/** Returns a deletion whose id has the form of those of stored traces. */
export function deletionAt(atMs: number, { tenant, project }: Scope, { kind, id }: RemovalTarget): Deletion {
  const target = { kind, id: kind === 'trace' ? canonicalId(id) : comparable(id) };
  return { tenant, ...(project !== undefined && { project }), target, atMs };
}

/** What decides whether a deletion covers a trace. */
export interface CoveredTrace {
  readonly id: string;
  /** Start of the first visible run, if there is one. */
  readonly startUs: number | undefined;
  /** The threads and users of all visible runs, and the name and the id of the root's project. */
  names(): Readonly<Record<'thread' | 'user' | 'project', readonly string[]>>;
}

/** The latest deletions. Finding those that cover a trace takes the same time however many there are. */
export class Deletions {
  /** Maps each selector to the time of its latest deletion, the earliest first. */
  readonly #atMs = new Map<string, number>();
  /** Time of the latest deletion in each tenant, except those of traces. */
  readonly #latestMs = new Map<string, number>();
  readonly #traces = new Set<string>();

  constructor(deletions: Iterable<Deletion> = []) {
    for (const deletion of deletions) this.add(deletion);
  }

  add({ tenant, project, target: { kind, id }, atMs }: Deletion): void {
    const key = keyOf(tenant, project, kind, id);
    this.#atMs.delete(key);
    this.#atMs.set(key, atMs);
    if (kind === 'trace') this.#traces.add(tenant + id);
    else this.#latestMs.set(tenant, Math.max(atMs, this.#latestMs.get(tenant) ?? 0));
    for (const [oldest, ms] of this.#atMs) {
      if (this.#atMs.size <= DELETIONS_MAX && ms >= atMs - DELETIONS_MS) break;
      this.#atMs.delete(oldest);
      const [of, , kindOf, idOf] = JSON.parse(oldest);
      if (kindOf === 'trace') this.#traces.delete(of + idOf);
    }
  }

  get isEmpty(): boolean {
    return this.#atMs.size === 0;
  }

  covers(tenant: string, trace: CoveredTrace): boolean {
    const { id, startUs = 0 } = trace;
    const latestMs = this.#latestMs.get(tenant) ?? 0;
    if (startUs >= latestMs * 1_000 && !this.#traces.has(tenant + id)) return false;
    const found = { trace: [id], ...trace.names() };
    const scopes = [undefined, ...found.project];
    return (['trace', 'thread', 'user', 'project'] as const).some((kind) =>
      found[kind].some((name) =>
        scopes.some((project) => {
          const atMs = this.#atMs.get(keyOf(tenant, project, kind, name));
          return atMs !== undefined && (kind === 'trace' || startUs < atMs * 1_000);
        }),
      ),
    );
  }
}

function keyOf(...parts: readonly (string | undefined)[]): string {
  return JSON.stringify(parts);
}

/** The ids by which a message can mean a deleted trace. */
export interface MessageNames {
  readonly id: string;
  readonly traceId: string | undefined;
  /** Id of the OpenTelemetry trace as a UUID. A `trace_id` takes precedence. */
  readonly otelTraceId: string | undefined;
  readonly parentId: string | undefined;
}

export function namesOf(id: string, fields: RunFields): MessageNames {
  const { trace_id: traceId, parent_run_id: parentId } = fields;
  return { id, traceId, otelTraceId: otelTraceIdOf(fields), parentId };
}

/** Returns the id of the OpenTelemetry trace as a UUID. */
export function otelTraceIdOf({ extra }: RunFields): string | undefined {
  const otel = extra?.metadata?.otel;
  const id = isObject(otel) ? otel.trace_id : undefined;
  return typeof id === 'string' && /^[0-9a-f]{32}$/i.test(id) ? canonicalId(id) : undefined;
}

/** The names of deleted traces, for messages that arrive later. */
export class Tombstones {
  /** Ids of traces and of OpenTelemetry traces. */
  readonly traces: Set<string> = new Set();
  /** Ids of runs without a `trace_id`. */
  readonly runs: Set<string> = new Set();

  /** Keeps the names of the runs of a deleted trace. */
  add(traceId: string, runs: readonly MessageNames[]): void {
    this.traces.add(traceId);
    for (const { id, traceId: named, otelTraceId } of runs) {
      if (named === undefined) this.runs.add(id);
      if (otelTraceId !== undefined) this.traces.add(otelTraceId);
    }
  }

  /** Returns whether a message belongs to a deleted trace. `isStored` is true if its run is stored. */
  refuses({ id, traceId, otelTraceId = '', parentId = '' }: MessageNames, isStored: boolean): boolean {
    if (this.runs.has(id)) return true;
    if (traceId !== undefined) return this.traces.has(traceId);
    const isRefused = !isStored && (this.traces.has(otelTraceId) || this.runs.has(parentId));
    // Runs below it may name only this run.
    if (isRefused) this.runs.add(id);
    return isRefused;
  }

  /** Deletes the oldest names above `max`. */
  limit(max: number): void {
    for (const ids of [this.runs, this.traces]) {
      for (const id of ids) {
        if (ids.size <= max) break;
        ids.delete(id);
      }
    }
  }
}
