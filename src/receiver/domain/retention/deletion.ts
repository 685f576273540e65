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

/** Time for which the names of what was deleted by request are kept, in milliseconds: 30 days. */
export const REMOVED_MS: number = 30 * 24 * 3_600_000;

/** Covers the traces of a target that are stored when it is requested. With a project, only runs of this project. */
export interface Deletion extends Omit<Scope, 'signal'> {
  readonly target: DeletionTarget;
}

/** Returns a deletion whose id has the form of those of stored traces. Throws if the kind is unknown. */
export function deletionOf({ tenant, project }: Scope, { kind, id }: DeletionTarget): Deletion {
  if (!DELETION_KINDS.includes(kind)) {
    const problem = `Expected \`kind\` to be one of ${DELETION_KINDS.join(', ')}, got ${shown(kind)}`;
    throw new RunspanError('RUNSPAN_INVALID_OPTION', problem);
  }
  const target = { kind, id: kind === 'trace' ? canonicalId(id) : comparable(id) };
  return { tenant, ...(project !== undefined && { project }), target };
}

class Tombstone implements KnownTrace {
  readonly id: string;
  readonly isNamed: boolean;

  constructor(id: string, isNamed: boolean) {
    this.id = id;
    this.isNamed = isNamed;
  }
}

/** A trace of a store that hides traces before it deletes them. */
interface StoredTrace extends KnownTrace {
  readonly isHidden?: boolean;
}

/** The names of what was deleted by request, for messages that arrive later. */
export class Tombstones {
  /** Maps the names of traces to whether they were more than the id of a trace without a `trace_id`. */
  readonly traces: Map<string, boolean> = new Map();
  /** Ids of runs in deleted traces. */
  readonly runs: Set<string> = new Set();
  /** Ids of runs that were deleted alone. Other messages of their traces are stored. */
  readonly single: Set<string> = new Set();

  /**
   * Decides the traces of runs. Omits deleted runs and the runs of deleted traces, and keeps the further names of these
   * traces.
   */
  decideTraces<Trace extends StoredTrace>(
    given: ReadonlyMap<string, Identity>,
    names: TraceNames<Trace>,
  ): ReadonlyMap<string, Trace> {
    const runs = new Map([...given].filter(([id]) => !this.single.has(id)));
    const named = (name: string): Trace | Tombstone | undefined => {
      const isNamed = this.traces.get(name);
      if (isNamed !== undefined) return new Tombstone(name, isNamed);
      const trace = names.named(name);
      return trace?.isHidden === true ? new Tombstone(trace.id, trace.isNamed) : trace;
    };
    const decided = decideTraces<Trace | Tombstone>(runs, {
      ofRun: (id) => {
        const stored = names.ofRun(id);
        const isAlone = stored?.id === id && !stored.isNamed;
        // A late message without a name may have stored the run as a trace of its own.
        const { traceId } = runs.get(id) ?? {};
        const isLate = isAlone && traceId !== undefined && named(traceId) instanceof Tombstone;
        // As if the runs of a hidden trace were deleted already.
        const isDeleted = isLate || this.runs.has(id) || stored?.isHidden === true;
        return isDeleted ? new Tombstone('', false) : stored;
      },
      named,
      create: (id, isNamed) => names.create(id, isNamed),
      setName: (trace, name, isTraceId) => {
        if (!(trace instanceof Tombstone)) names.setName(trace, name, isTraceId);
        else for (const one of isTraceId ? [trace.id, name] : [name]) this.traces.set(one, true);
      },
    });
    const kept = new Map<string, Trace>();
    for (const [id, trace] of decided) {
      if (!(trace instanceof Tombstone)) kept.set(id, trace);
      else this.runs.add(id);
    }
    return kept;
  }

  limit(max: number): void {
    forgetOldest(this.runs, max);
    forgetOldest(this.single, max);
    forgetOldest(this.traces, max);
  }
}
