import { defined, fieldsOf } from '../../payload/fields.ts';
import { isCallType } from '../../run/same-call.ts';
import type { RunStatus, RunSummary, TraceOutcome, TraceSummary } from './run-view.ts';
import type { PayloadFacts, SmallFields } from './summary.ts';

/** What a run adds to the summary of its trace, as the sum of these numbers. */
export const RunFlag = {
  /** The run has inputs, which are not only those of a protocol. */
  ASKS: 1,
  /** The run has outputs, which are not only those of a protocol. */
  ANSWERS: 2,
  HAS_THREAD: 4,
  HAS_USER: 8,
  /** A framework has added the run for itself. */
  INTERNAL: 16,
  /** The run is a request that was answered with status 4xx or 5xx. */
  REFUSES: 32,
  /** The parent is in another program. It may never arrive, and the trace is complete without it. */
  ENTERS: 64,
} as const;

export function flagsOf({ extra }: SmallFields, facts: PayloadFacts, summary: RunSummary): number {
  const { otel, 'http.response.status_code': recorded } = extra?.metadata ?? {};
  const { protocol, parent_is_remote } = fieldsOf(otel);
  const isContent = protocol === undefined;
  const status = isContent ? recorded : facts.http_status;
  const has = (condition: unknown, flag: number): number => (condition ? flag : 0);
  return (
    has(isContent && facts.asks, RunFlag.ASKS) |
    has(isContent && facts.answers, RunFlag.ANSWERS) |
    has(summary.thread, RunFlag.HAS_THREAD) |
    has(summary.user, RunFlag.HAS_USER) |
    has(summary.internal, RunFlag.INTERNAL) |
    has(typeof status === 'number' && status >= 400, RunFlag.REFUSES) |
    has(parent_is_remote === true, RunFlag.ENTERS)
  );
}

/** What the summary of a trace reads of a run. */
export interface SummarizedRun {
  readonly id: string;
  readonly startUs: number;
  readonly endUs: number | undefined;
  readonly type: string;
  readonly status: RunStatus;
  /** Whether the run is a further record of a call. */
  readonly isRepeat: boolean;
  /** A sum of `RunFlag`. */
  readonly flags: number;
}

/**
 * The runs that decide the summary of a trace: of the runs that count for a field, the first or the last by start and id.
 * `asked`, `thread` and `user` are the first, `answered`, `called` and `failed` the last.
 */
export type DecidingRuns<Run> = { [Field in DecidingField]?: Run | undefined };
export type DecidingField = 'asked' | 'thread' | 'user' | 'answered' | 'called' | 'failed';

export const DECIDING_FIELDS: readonly DecidingField[] = ['asked', 'thread', 'user', 'answered', 'called', 'failed'];

export function isFirst(field: DecidingField): boolean {
  return field === 'asked' || field === 'thread' || field === 'user';
}

export function has({ flags }: Pick<SummarizedRun, 'flags'>, flag: number): boolean {
  return (flags & flag) !== 0;
}

const COUNTS: Readonly<Record<DecidingField, (run: SummarizedRun) => boolean>> = {
  asked: (run) => has(run, RunFlag.ASKS),
  thread: (run) => has(run, RunFlag.HAS_THREAD),
  user: (run) => has(run, RunFlag.HAS_USER),
  answered: (run) => has(run, RunFlag.ANSWERS),
  called: ({ type, isRepeat }) => isCallType(type) && !isRepeat,
  failed: ({ status, isRepeat }) => status === 'error' && !isRepeat,
};

export function countsFor(field: DecidingField, run: SummarizedRun): boolean {
  return COUNTS[field](run);
}

/** Returns the run that decides a field: the known one, or one of the runs. */
export function decidingRun<Run extends SummarizedRun>(
  field: DecidingField,
  runs: Iterable<Run>,
  known?: Run,
): Run | undefined {
  let deciding = known;
  for (const run of runs) {
    if (!countsFor(field, run)) continue;
    if (deciding === undefined || isEarlier(run, deciding) === isFirst(field)) deciding = run;
  }
  return deciding;
}

function isEarlier(a: SummarizedRun, b: SummarizedRun): boolean {
  return a.startUs < b.startUs || (a.startUs === b.startUs && a.id < b.id);
}

/** What a trace says as a whole, and the runs whose data it shows. */
export interface DecidedTrace<Run> {
  readonly outcome: TraceOutcome;
  /** See `TraceSummary`. */
  readonly asked: Run | undefined;
  readonly answered: Run | undefined;
  readonly failed: Run | undefined;
  /** The run whose error is shown. */
  readonly error: Run | undefined;
  readonly thread: Run | undefined;
  readonly user: Run | undefined;
}

/** `isMissing` tells whether the root has not arrived, so that another run takes its place. */
export function decidedTrace<Run extends SummarizedRun>(
  root: Run,
  isMissing: boolean,
  runs: DecidingRuns<Run>,
): DecidedTrace<Run> {
  const answered = answeredOf(root, runs);
  const outcome = isMissing ? 'incomplete' : outcomeOf(root, answered, runs);
  const isContent = has(root, RunFlag.ASKS | RunFlag.ANSWERS);
  const isRootShown = outcome !== 'failed_below' && (isContent || outcome !== 'error');
  return {
    outcome,
    asked: has(root, RunFlag.ASKS) ? root : runs.asked,
    answered,
    failed: runs.failed,
    error: isRootShown ? root : runs.failed,
    thread: has(root, RunFlag.HAS_THREAD) ? root : runs.thread,
    user: has(root, RunFlag.HAS_USER) ? root : runs.user,
  };
}

function answeredOf<Run extends SummarizedRun>(root: Run, { asked, answered }: DecidingRuns<Run>): Run | undefined {
  if (has(root, RunFlag.ANSWERS)) return root;
  if (root.status === 'pending') return undefined;
  if (asked === undefined || !(has(asked, RunFlag.ANSWERS) || asked.status === 'error')) return answered;
  const isLater = asked.endUs !== undefined && answered !== undefined && answered.startUs > asked.endUs;
  return isLater ? answered : asked;
}

function outcomeOf<Run extends SummarizedRun>(
  root: Run,
  answered: Run | undefined,
  { called, failed }: DecidingRuns<Run>,
): TraceOutcome {
  const { status } = root;
  if ((status !== 'success' && status !== 'cancelled') || failed === undefined) return status;
  const hasFailed = answered?.status === 'error' || called?.status === 'error' || has(root, RunFlag.REFUSES);
  return hasFailed ? 'failed_below' : status;
}

/** Returns the fields in which the summary of a trace differs from that of its root. */
export function shownIn<Run>(
  { outcome, asked, answered, error }: DecidedTrace<Run>,
  summaryOf: (run: Run) => RunSummary,
): Pick<TraceSummary, 'outcome' | 'inputs_preview' | 'outputs_preview' | 'error'> {
  const inputs_preview = asked && summaryOf(asked).inputs_preview;
  const outputs_preview = answered && summaryOf(answered).outputs_preview;
  const text = error && summaryOf(error).error;
  return { outcome, ...defined({ inputs_preview, outputs_preview, error: text }) };
}

/** Returns the ids of the runs whose data the summary of a trace shows. */
export function idsIn(
  decided: DecidedTrace<SummarizedRun> | undefined,
): Pick<TraceSummary['trace'], 'asked_run_id' | 'answered_run_id' | 'failed_run_id'> {
  const { asked, answered, failed } = decided ?? {};
  return defined({ asked_run_id: asked?.id, answered_run_id: answered?.id, failed_run_id: failed?.id });
}
