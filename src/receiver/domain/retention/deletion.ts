import { RunspanError } from '../../../base/errors.ts';
import { forgetOldest } from '../../../base/forget-oldest.ts';
import { shown } from '../../../base/text.ts';
import { canonicalId } from '../../../run/time.ts';
import { comparable } from '../comparable.ts';
import { decideTraces, type Identity, type KnownTrace, type TraceNames } from '../identity.ts';
import type { DeletionTarget, RunCounts, Scope } from '../query/query.ts';

export const DELETION_KINDS: readonly DeletionTarget['kind'][] = ['trace', 'thread', 'user', 'project'];

export function countsText({ runs, traces }: RunCounts): string {
  return `${runs} run${runs === 1 ? '' : 's'} of ${traces} trace${traces === 1 ? '' : 's'}`;
}

/** Time for which deletions, and the names of deleted traces, are kept, in milliseconds: 30 days. */
export const DELETIONS_MS: number = 30 * 24 * 3_600_000;
/** Maximum number of deletions whose stored traces are still being deleted, see `SharedLimit`. */
export const OPEN_DELETIONS_MAX = 100;
/** Maximum number of deletions that are kept. The oldest are forgotten first. */
const DELETIONS_MAX = 100_000;

/** Covers the traces of a target whose first run started before `atMs`. A trace that is named by its id may start later. */
export interface Deletion extends Omit<Scope, 'signal'> {
  readonly target: DeletionTarget;
  readonly atMs: number;
}

/** Returns a deletion whose id has the form of those of stored traces. Throws if the kind is unknown. */
export function deletionAt(atMs: number, { tenant, project }: Scope, { kind, id }: DeletionTarget): Deletion {
  if (!DELETION_KINDS.includes(kind)) {
    const problem = `Expected \`kind\` to be one of ${DELETION_KINDS.join(', ')}, got ${shown(kind)}`;
    throw new RunspanError('RUNSPAN_INVALID_OPTION', problem);
  }
  const target = { kind, id: kind === 'trace' ? canonicalId(id) : comparable(id) };
  return { tenant, ...(project !== undefined && { project }), target, atMs };
}

export interface CoveredTrace {
  readonly id: string;
  /** The id with which answers show the trace. */
  readonly shownId?: string;
  /** Start of the first visible run, if there is one. */
  readonly startUs: number | undefined;
  /** The threads and users of all visible runs, and the name and the id of the root's project. */
  names(): Readonly<Record<'thread' | 'user' | 'project', readonly string[]>>;
}

/** The latest deletions. Finding those that cover a trace takes the same time however many there are. */
export class Deletions {
  /** Maps each selector to the time of its latest deletion, in the order in which these were added. */
  readonly #atMs = new Map<string, number>();
  /** Time of the latest deletion of each trace, and of the latest other one in each tenant. */
  readonly #latestMs = new Map<string, number>();

  constructor(deletions: Iterable<Deletion> = []) {
    for (const deletion of deletions) this.add(deletion);
  }

  add({ tenant, project, target: { kind, id }, atMs }: Deletion): void {
    const key = keyOf(tenant, project, kind, id);
    const latestMs = Math.max(atMs, this.#atMs.get(key) ?? 0);
    this.#atMs.delete(key);
    this.#atMs.set(key, latestMs);
    const name = kind === 'trace' ? tenant + id : tenant;
    this.#latestMs.set(name, Math.max(latestMs, this.#latestMs.get(name) ?? 0));
    for (const [oldest, ms] of this.#atMs) {
      if (this.#atMs.size <= DELETIONS_MAX && ms >= atMs - DELETIONS_MS) break;
      this.#atMs.delete(oldest);
      const [of, , kindOf, idOf] = JSON.parse(oldest);
      if (kindOf === 'trace' && this.#latestMs.get(of + idOf) === ms) this.#latestMs.delete(of + idOf);
    }
  }

  get isEmpty(): boolean {
    return this.#atMs.size === 0;
  }

  covers(tenant: string, trace: CoveredTrace): boolean {
    const { id, shownId = id, startUs = 0 } = trace;
    const latestMs = this.#latestMs.get(tenant) ?? 0;
    const ids = [id, shownId];
    if (startUs >= latestMs * 1_000 && !ids.some((one) => this.#latestMs.has(tenant + one))) return false;
    const found = { trace: ids, ...trace.names() };
    const scopes = [undefined, ...found.project];
    return DELETION_KINDS.some((kind) =>
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

class Tombstone implements KnownTrace {
  readonly id: string;
  readonly isNamed: boolean;

  constructor(id: string, isNamed: boolean) {
    this.id = id;
    this.isNamed = isNamed;
  }
}

/** The names of deleted traces, for messages that arrive later. */
export class Tombstones {
  /** Maps the names of traces to whether they were more than the id of a trace without a `trace_id`. */
  readonly traces: Map<string, boolean> = new Map();
  /** Ids of runs without a `trace_id`. */
  readonly runs: Set<string> = new Set();

  /** Decides the traces of runs. Omits the runs of deleted traces, and keeps the further names of these traces. */
  decideTraces<Trace extends KnownTrace>(
    runs: ReadonlyMap<string, Identity>,
    names: TraceNames<Trace>,
  ): ReadonlyMap<string, Trace> {
    const decided = decideTraces<Trace | Tombstone>(runs, {
      ofRun: (id) => {
        const stored = names.ofRun(id);
        const isAlone = stored?.id === id && !stored.isNamed;
        // A late message without a name may have stored the run as a trace of its own.
        const isLate = isAlone && this.traces.has(runs.get(id)?.traceId ?? '');
        return isLate || this.runs.has(id) ? new Tombstone('', false) : stored;
      },
      named: (name) => {
        const isNamed = this.traces.get(name);
        return isNamed === undefined ? names.named(name) : new Tombstone(name, isNamed);
      },
      create: (id, isNamed) => names.create(id, isNamed),
      setName: (trace, name, isTraceId) => {
        if (!(trace instanceof Tombstone)) names.setName(trace, name, isTraceId);
        else for (const one of isTraceId ? [trace.id, name] : [name]) this.traces.set(one, true);
      },
    });
    const kept = new Map<string, Trace>();
    for (const [id, trace] of decided) {
      if (!(trace instanceof Tombstone)) kept.set(id, trace);
      else if (runs.get(id)?.traceId === undefined) this.runs.add(id);
    }
    return kept;
  }

  limit(max: number): void {
    forgetOldest(this.runs, max);
    forgetOldest(this.traces, max);
  }
}
