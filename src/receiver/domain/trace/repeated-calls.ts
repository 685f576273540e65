import { fieldsOf, firstText, listOf } from '../../../payload/fields.ts';
import {
  CallRecord,
  CallTable,
  callKey,
  isCallType,
  responseIdIn,
  SAME_CALL,
  SOURCES,
} from '../../../run/calls/same-call.ts';
import { grouped } from '../grouped.ts';
import type { RunFields } from '../run-message.ts';
import type { RunStatus } from '../run-view.ts';
import { idsAbove } from './tree.ts';

/** Maximum number of levels between two records of a call. */
const LEVELS_MAX = 16;

/** OpenTelemetry starts spans at a whole millisecond and measures their end from there, so both may be too early by one. */
const CLOCK_PRECISION_US = 1_000;

/** The evidence about a call that is in the run's own messages. */
export interface CallEvidence {
  /** Undefined if the application itself has recorded the run. */
  readonly source: string | undefined;
  readonly responseId: string | undefined;
  /** Fingerprint of the request or the arguments. */
  readonly request: string | undefined;
  /** Id of the run that records the same call, if the program has found it. */
  readonly sameCall: string | undefined;
}

/** A visible run of a trace. */
export interface ComparedRun extends CallEvidence {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly type: string;
  readonly name: string;
  readonly model: string | undefined;
  readonly status: RunStatus;
  readonly startUs: number;
  readonly endUs: number | undefined;
}

/** Fingerprints of the inputs. A message without a run type has both. */
export interface RequestFacts {
  request?: string;
  arguments?: string;
}

export function recordSource({ extra }: RunFields): string | undefined {
  const { [SOURCES]: sources, otel } = extra?.metadata ?? {};
  return firstText(listOf(sources)[0], fieldsOf(fieldsOf(otel).scope).name);
}

export function callEvidenceOf(run: RunFields, facts: RequestFacts): CallEvidence {
  const { run_type: type = '', extra: { metadata = {} } = {} } = run;
  const request = type === 'tool' ? facts.arguments : facts.request;
  const sameCall = firstText(metadata[SAME_CALL]);
  return { source: recordSource(run), responseId: responseIdIn(type, metadata), request, sameCall };
}

/** Returns the fingerprints of a message's inputs. The run type may be in another message. */
export function requestFactsOf({ run_type: type, inputs }: RunFields): RequestFacts {
  if (inputs === undefined || (type !== undefined && !isCallType(type))) return {};
  const request = type === 'tool' ? undefined : callKey('llm', inputs);
  const ofTool = type === undefined || type === 'tool' ? callKey('tool', inputs) : undefined;
  return { ...(request !== undefined && { request }), ...(ofTool !== undefined && { arguments: ofTool }) };
}

/** What a run is among the records of its call. */
export interface RepeatedCall {
  /** Id of the outermost record, or of the first one if none is outermost. Undefined if it is this run. */
  readonly headId: string | undefined;
  /** Whether the run's usage does not count, because a record that ended before has the usage of the call. */
  readonly isUsageRepeated: boolean;
}

export const ALONE: RepeatedCall = { headId: undefined, isUsageRepeated: false };

/**
 * Returns the runs that record a call together with other runs, by id. The runs must be all visible runs of one trace.
 * `countsAlone` returns whether a run has usage that counts if no other run records the same call.
 */
export function repeatedCallsIn<Run extends ComparedRun>(
  runs: readonly Run[],
  countsAlone: (run: Run) => boolean,
): ReadonlyMap<string, RepeatedCall> {
  const above = runsAboveIn(runs);
  const repeated = new Map<string, RepeatedCall>();
  for (const records of grouped(comparedCalls(runs, above), ({ first }) => first).values()) {
    if (records.length === 1) continue;
    const counting = records.find(({ run }) => countsAlone(run));
    const head = headOf(records.toSorted(byStart), above);
    for (const call of records) {
      const isUsageRepeated = call !== counting && countsAlone(call.run);
      repeated.set(call.id, { headId: call === head ? undefined : head?.id, isUsageRepeated });
    }
  }
  return repeated;
}

/**
 * Returns the calls of a trace in the order of their ends, compared with each other. The mark of the program counts more than
 * the evidence. The result does not depend on the order of the runs.
 */
export function comparedCalls<Run extends ComparedRun>(
  runs: readonly Run[],
  above: RunsAbove = runsAboveIn(runs),
): readonly TimedCall<Run>[] {
  const calls = runs.filter(({ type }) => isCallType(type));
  const isMarked = calls.some(({ sameCall }) => sameCall !== undefined);
  if (!isMarked && new Set(calls.map(({ source }) => source)).size < 2) return [];
  const started = calls.map((run) => new TimedCall(run, above(run.id).length)).sort(byStart);
  const byId = new Map(started.map((call) => [call.id, call]));
  for (const call of started) {
    const named = byId.get(call.run.sameCall ?? '');
    // Messages of other programs may name each other in a cycle.
    if (named?.type === call.type && named.first !== call) call.same = named;
  }
  const ended = started.toSorted((a, b) => (a.endUs === b.endUs ? b.depthAtEnd - a.depthAtEnd : a.endUs - b.endUs));
  const table = new CallTable(
    (one, other) => above(one.id).includes(other.id),
    (one, other) => overlapUs(one as TimedCall<Run>, other as TimedCall<Run>) <= CLOCK_PRECISION_US,
  );
  let [moment, next] = [0, 0];
  for (const call of ended) {
    for (let at = started[next]; at !== undefined && at.startUs <= call.endUs; at = started[++next]) {
      at.startSequence = moment++;
      table.add(at);
    }
    call.endSequence = moment++;
    table.end(call);
  }
  return ended;
}

class TimedCall<Run extends ComparedRun> extends CallRecord {
  readonly run: Run;
  readonly startUs: number;
  /** Infinite if the run has not ended. */
  readonly endUs: number;
  readonly depth: number;

  constructor(run: Run, depth: number) {
    super({ ...run, traceId: '' });
    this.run = run;
    this.key = run.request;
    this.responseId = run.responseId;
    this.hasFailed = run.status !== 'success' && run.status !== 'pending';
    this.startUs = run.startUs;
    this.endUs = Math.max(run.startUs, run.endUs ?? Number.POSITIVE_INFINITY);
    this.depth = depth;
  }

  /** Runs that end at the same time end from the innermost on. Runs that have not ended keep the order of their starts. */
  get depthAtEnd(): number {
    return this.endUs === Number.POSITIVE_INFINITY ? 0 : this.depth;
  }
}

function overlapUs(one: TimedCall<ComparedRun>, other: TimedCall<ComparedRun>): number {
  return Math.min(one.endUs, other.endUs) - Math.max(one.startUs, other.startUs);
}

type RunsAbove = (id: string) => readonly string[];

function runsAboveIn(runs: readonly ComparedRun[]): RunsAbove {
  const parents = new Map(runs.map(({ id, parentId = '' }) => [id, parentId]));
  const known = new Map<string, readonly string[]>();
  return (id) => {
    const ids = known.get(id) ?? idsAbove(parents, id, LEVELS_MAX);
    known.set(id, ids);
    return ids;
  };
}

/** Returns the first record that is below none of the others. */
function headOf<Call extends CallRecord>(records: readonly Call[], above: RunsAbove): Call | undefined {
  const ids = new Set(records.map(({ id }) => id));
  return records.find(({ id }) => !above(id).some((other) => ids.has(other))) ?? records[0];
}

function byStart(a: TimedCall<ComparedRun>, b: TimedCall<ComparedRun>): number {
  return a.startUs - b.startUs || a.depth - b.depth || (a.id < b.id ? -1 : 1);
}
