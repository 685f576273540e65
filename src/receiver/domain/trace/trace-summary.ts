import { defined, fieldsOf, filled } from '../../../payload/fields.ts';
import { isCallType } from '../../../run/calls/same-call.ts';
import { isoTimestamp } from '../../../run/time.ts';
import type { FeedbackFigures } from '../feedback.ts';
import type { RunStatus, RunSummary, ThreadSummary, TraceOutcome, TraceSummary, Usage } from '../run-view.ts';
import { isErrorResponse, type PayloadFacts, type SmallFields, sumOfUsage } from '../summary.ts';

/** Facts about a run that the summary of its trace needs. The `flags` of a run are the sum of those that apply. */
export const RunFlag = {
  /** The run has inputs, which are not only those of a protocol. */
  ASKS: 1,
  /** The run has outputs, which are not only those of a protocol, and not a response with which a service refuses a call. */
  ANSWERS: 2,
  HAS_THREAD: 4,
  HAS_USER: 8,
  /** A framework has added the run for itself. */
  INTERNAL: 16,
  /** The run is a request whose response has status 4xx or 5xx. */
  HTTP_ERROR: 32,
  /** The parent is in another program. It may never arrive, and the trace is complete without it. */
  ENTERS: 64,
  /** Only keys that are limited to a project have posted the run. */
  LIMITED: 128,
} as const;

export function flagsOf(fields: SmallFields, facts: PayloadFacts, summary: RunSummary): number {
  const { otel, 'http.response.status_code': recorded } = fields.extra?.metadata ?? {};
  const { protocol, parent_is_remote } = fieldsOf(otel);
  const isContent = protocol === undefined;
  const status = isContent ? recorded : facts.http_status;
  const flagIf = (condition: unknown, flag: number): number => (condition ? flag : 0);
  return (
    flagIf(isContent && facts.asks, RunFlag.ASKS) |
    flagIf(isContent && facts.answers && !isErrorResponse(fields, facts), RunFlag.ANSWERS) |
    flagIf(summary.thread, RunFlag.HAS_THREAD) |
    flagIf(summary.user, RunFlag.HAS_USER) |
    flagIf(summary.internal, RunFlag.INTERNAL) |
    flagIf(typeof status === 'number' && status >= 400, RunFlag.HTTP_ERROR) |
    flagIf(parent_is_remote === true, RunFlag.ENTERS) |
    flagIf(fields.limited_key, RunFlag.LIMITED)
  );
}

/** What the summary of a trace reads of a run. */
export interface SummarizedRun {
  readonly id: string;
  readonly startUs: number;
  readonly endUs: number | undefined;
  readonly type: string;
  readonly status: RunStatus;
  readonly project: string;
  /** Whether the run names no parent, or one in another program. */
  readonly isTop: boolean;
  /** Whether the run is a further record of a call. */
  readonly isRepeat: boolean;
  /** A sum of `RunFlag`. */
  readonly flags: number;
}

/** The runs that decide the summary of a trace: of the runs that count for a field, the first or the last. */
export type DecidingRuns<Run> = { [Field in DecidingField]?: Run | undefined };
export type DecidingField = 'asked' | 'thread' | 'user' | 'answered' | 'called' | 'failed';

/** Which runs count for a field, and whether the first of them decides it. */
export const DECIDES: Readonly<Record<DecidingField, { isFirst: boolean; counts: (run: SummarizedRun) => boolean }>> = {
  asked: { isFirst: true, counts: (run) => has(run, RunFlag.ASKS) },
  thread: { isFirst: true, counts: (run) => has(run, RunFlag.HAS_THREAD) },
  user: { isFirst: true, counts: (run) => has(run, RunFlag.HAS_USER) },
  answered: { isFirst: false, counts: (run) => has(run, RunFlag.ANSWERS) },
  called: { isFirst: false, counts: ({ type, isRepeat }) => isCallType(type) && !isRepeat },
  failed: { isFirst: false, counts: ({ status, isRepeat }) => status === 'error' && !isRepeat },
};

export const DECIDING_FIELDS: readonly DecidingField[] = Object.keys(DECIDES) as DecidingField[];

export function has({ flags }: Pick<SummarizedRun, 'flags'>, flag: number): boolean {
  return (flags & flag) !== 0;
}

/** Returns the run that decides a field: the known one, or one of the runs. */
export function decidingRun<Run extends SummarizedRun>(
  field: DecidingField,
  runs: Iterable<Run>,
  known?: Run,
): Run | undefined {
  const { isFirst, counts } = DECIDES[field];
  let deciding = known;
  for (const run of runs) {
    if (!counts(run)) continue;
    if (deciding === undefined || isEarlier(run, deciding) === isFirst) deciding = run;
  }
  return deciding;
}

/**
 * OpenTelemetry's SDK for JavaScript starts spans at a whole millisecond. Of runs with the same start, the top one is before
 * the others, functions before the calls in them, and tools before the model call that gets their results.
 */
function isEarlier(a: SummarizedRun, b: SummarizedRun): boolean {
  if (a.startUs !== b.startUs) return a.startUs < b.startUs;
  const [rankA, rankB] = [rankOf(a), rankOf(b)];
  return rankA === rankB ? a.id < b.id : rankA < rankB;
}

function rankOf({ isTop, type }: SummarizedRun): number {
  return isTop ? 0 : 1 + Number(isCallType(type)) + Number(type === 'llm');
}

/** What a trace says as a whole, and the runs whose data it shows. */
export interface DecidedTrace<Run> {
  readonly outcome: TraceOutcome;
  readonly asked: Run | undefined;
  readonly answered: Run | undefined;
  readonly failed: Run | undefined;
  /** The run whose error is shown. */
  readonly error: Run | undefined;
  readonly thread: Run | undefined;
  readonly user: Run | undefined;
}

/** Decides what is shown of a trace with this outcome. The runs are those in the project of the root. */
export function decidedTrace<Run extends SummarizedRun>(
  root: Run,
  outcome: TraceOutcome,
  runs: DecidingRuns<Run>,
): DecidedTrace<Run> {
  const own = outcome === 'incomplete' ? undefined : root;
  const isContent = has(root, RunFlag.ASKS | RunFlag.ANSWERS);
  const isRootShown = outcome !== 'failed_below' && (isContent || outcome !== 'error');
  return {
    outcome,
    asked: own && has(own, RunFlag.ASKS) ? own : runs.asked,
    answered: answeredOf(own, runs),
    failed: runs.failed,
    error: isRootShown ? root : runs.failed,
    thread: has(root, RunFlag.HAS_THREAD) ? root : runs.thread,
    user: has(root, RunFlag.HAS_USER) ? root : runs.user,
  };
}

function answeredOf<Run extends SummarizedRun>(root: Run | undefined, { asked, answered }: DecidingRuns<Run>) {
  if (root !== undefined && (has(root, RunFlag.ANSWERS) || root.status === 'error')) return root;
  if (root?.status === 'pending') return undefined;
  if (asked === undefined || !(has(asked, RunFlag.ANSWERS) || asked.status === 'error')) return answered;
  const isLater = asked.endUs !== undefined && answered !== undefined && answered.startUs > asked.endUs;
  return isLater ? answered : asked;
}

/** `isMissing` tells whether the root has not arrived, so that another run takes its place. */
export function outcomeOf<Run extends SummarizedRun>(
  root: Run,
  isMissing: boolean,
  runs: DecidingRuns<Run>,
): TraceOutcome {
  const { status } = root;
  if (isMissing) return 'incomplete';
  if ((status !== 'success' && status !== 'cancelled') || runs.failed === undefined) return status;
  const isAnswerError = answeredOf(root, runs)?.status === 'error';
  const hasFailed = isAnswerError || runs.called?.status === 'error' || has(root, RunFlag.HTTP_ERROR);
  return hasFailed ? 'failed_below' : status;
}

/** The fields of a trace that are not those of its root. */
export type TraceFields = Pick<TraceSummary, 'outcome' | 'inputs_preview' | 'outputs_preview' | 'error'>;

export function traceFieldsIn<Run>(
  { outcome, asked, answered, error }: DecidedTrace<Run>,
  summaryOf: (run: Run) => RunSummary,
): TraceFields {
  const inputs_preview = asked && summaryOf(asked).inputs_preview;
  const outputs_preview = answered && summaryOf(answered).outputs_preview;
  const text = error && summaryOf(error).error;
  return { outcome, ...defined({ inputs_preview, outputs_preview, error: text }) };
}

export function listedTrace(root: RunSummary, shown: TraceFields, trace: TraceSummary['trace']): TraceSummary {
  const { inputs_preview: _, outputs_preview: __, error: ___, ...own } = root;
  return { ...own, ...shown, trace };
}

export function idsIn(
  decided: DecidedTrace<SummarizedRun> | undefined,
): Pick<TraceSummary['trace'], 'asked_run_id' | 'answered_run_id' | 'failed_run_id'> {
  const { asked, answered, failed } = decided ?? {};
  // A run that has failed takes the place of an answer, but has none.
  const answeredId = answered && has(answered, RunFlag.ANSWERS) ? answered.id : undefined;
  return defined({ asked_run_id: asked?.id, answered_run_id: answeredId, failed_run_id: failed?.id });
}

export interface Turn {
  readonly startUs: number;
  /** Latency of the root run. Undefined if the root run has not ended. */
  readonly latencyUs: number | undefined;
  /** Undefined if the trace has just been deleted. */
  readonly outcome: TraceOutcome | undefined;
  readonly project: string;
  readonly user: string | undefined;
  readonly usage: Usage | undefined;
}

type Previews = Readonly<Record<'inputs_preview' | 'outputs_preview', string | undefined>>;

/** Adds up the turns of a thread. The turns must be sorted by start time. */
export function threadSummaryOf(
  thread: string,
  turns: readonly [Turn, ...Turn[]],
  { feedback, ...previews }: Previews & { readonly feedback: FeedbackFigures[] },
): ThreadSummary {
  const [first] = turns;
  const last = turns.at(-1) ?? first;
  const user = turns.findLast((turn) => turn.user !== undefined)?.user;
  const latencies = turns.flatMap(({ latencyUs }) => latencyUs ?? []).sort((a, b) => a - b);
  const [p50, max] = [latencies[Math.ceil(latencies.length / 2) - 1], latencies.at(-1)];
  const usage = turns.reduce<Usage | undefined>((sum, turn) => sumOfUsage(sum, turn.usage), undefined);
  return {
    thread,
    ...defined({ user }),
    project: last.project,
    turns: turns.length,
    errors: turns.filter(({ outcome }) => outcome === 'error').length,
    failed_below: turns.filter(({ outcome }) => outcome === 'failed_below').length,
    start_time: isoTimestamp(first.startUs),
    last_start_time: isoTimestamp(last.startUs),
    ...(p50 !== undefined && max !== undefined && { latency_ms: { p50: p50 / 1_000, max: max / 1_000 } }),
    ...defined({ usage, feedback: filled(feedback), ...previews }),
  };
}
