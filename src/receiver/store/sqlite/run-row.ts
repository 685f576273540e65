import { exactJson, parseExact } from '../../../payload/fields.ts';
import { MODEL_TYPES } from '../../../run/calls/same-call.ts';
import { isoTimestamp, parseIsoTimestamp } from '../../../run/time.ts';
import { COMPARED_LENGTH_MAX } from '../../domain/comparable.ts';
import { projectOf, timesOf } from '../../domain/run-values.ts';
import type { RunStatus, RunSummary, TraceOutcome, Usage } from '../../domain/run-view.ts';
import { type Latencies, latenciesOf } from '../../domain/statistics/latencies.ts';
import { countsUsage, type PayloadFacts, type SmallFields, USAGE_KEYS } from '../../domain/summary.ts';
import type { CallEvidence } from '../../domain/trace/repeated-calls.ts';
import { DECIDES, flagsOf, has, RunFlag, type SummarizedRun } from '../../domain/trace/trace-summary.ts';
import { idText, type SqliteConnection } from './file/database.ts';

/** A row of the table `runs`. `start_us` and the columns after it are null until the run is visible. */
export type RunRow = {
  readonly n: number;
  readonly tenant: number;
  readonly id: Uint8Array;
  readonly trace: number;
  readonly parent: Uint8Array | null;
  readonly waits_for: Uint8Array | null;
  readonly span: Uint8Array | null;
  /** 1 if a message of the run contains a `trace_id`, otherwise 0. */
  readonly is_named: number;
  /** 1 if a descendant of the run has usage, otherwise 0. */
  readonly below: number;
  /** `CallEvidence` as JSON, or null if the run has no evidence. */
  readonly call: string | null;
  /** `headId` of `RepeatedCall`. */
  readonly same_call: Uint8Array | null;
  /** 1 if the usage does not count, because a run that this one names has the usage of the same call, otherwise 0. */
  readonly is_repeated: number;
} & RootColumns &
  Omit<ShownColumns, keyof RootColumns>;

/** Columns that depend on whether the run is the root of its trace. */
export type RootColumns = {
  /** 1 if the run is the root of its trace, otherwise 0. */
  is_root: number;
  /** Null if the run is not the root. */
  outcome: TraceOutcome | null;
  /** Those of the trace if the run is its root. */
  thread: string | null;
  user: string | null;
};

export function plainColumns(row: RunRow): RootColumns {
  const own = (field: 'thread' | 'user'): string | null =>
    DECIDES[field].counts(new SummarizedRow(row)) ? row[field] : null;
  return { is_root: 0, outcome: null, thread: own('thread'), user: own('user') };
}

/** Reads columns only when they are needed, because most runs decide nothing. */
export class SummarizedRow<Of extends RunRow = RunRow> implements SummarizedRun {
  readonly row: Of;
  #id: string | undefined;

  constructor(row: Of) {
    this.row = row;
  }

  get id(): string {
    this.#id ??= idText(this.row.id);
    return this.#id;
  }

  get startUs(): number {
    return this.row.start_us ?? 0;
  }

  get endUs(): number | undefined {
    return this.row.end_us ?? undefined;
  }

  get type(): string {
    return this.row.run_type ?? '';
  }

  get status(): RunStatus {
    return this.row.status ?? 'pending';
  }

  get project(): string {
    return this.row.project ?? '';
  }

  get isTop(): boolean {
    return (this.row.parent ?? this.row.waits_for) === null || has(this, RunFlag.ENTERS);
  }

  get isRepeat(): boolean {
    return this.row.same_call !== null;
  }

  get flags(): number {
    return this.row.flags ?? 0;
  }
}

/** Columns that are derived from the fields of a visible run. */
export type ShownColumns = {
  readonly start_us: number | null;
  readonly end_us: number | null;
  readonly latency: Latencies | null;
  readonly project: string | null;
  readonly session_id: string | null;
  readonly name: string | null;
  readonly run_type: string | null;
  readonly status: RunStatus | null;
  readonly model: string | null;
  readonly flags: number | null;
  readonly thread: string | null;
  readonly user: string | null;
} & UsageColumns;

export type ProjectColumns = Pick<ShownColumns, 'project' | 'session_id'>;

/** See `projectNames`. Returns no names if the run is not visible. */
export function projectNamesIn({ project, session_id }: ProjectColumns): string[] {
  return [project, session_id].filter((name) => name !== null);
}

export type UsageColumns = { readonly [Key in keyof Usage]-?: number | null };

type SummaryColumn = Exclude<keyof ShownColumns, 'flags' | keyof Usage>;

const SHOWN: { readonly [Column in SummaryColumn]: (run: RunSummary) => ShownColumns[Column] | undefined } = {
  start_us: ({ start_time }) => parseIsoTimestamp(start_time),
  end_us: ({ end_time }) => parseIsoTimestamp(end_time ?? ''),
  latency: (run) => latenciesOf(timesOf(run).latencyUs) || undefined,
  project: projectOf,
  session_id: ({ session_id }) => session_id,
  name: ({ name }) => name,
  run_type: ({ run_type }) => run_type,
  status: ({ status }) => status,
  model: ({ model }) => model,
  thread: ({ thread }) => thread,
  user: ({ user }) => user,
};

const SUMMARY_COLUMNS = Object.keys(SHOWN) as SummaryColumn[];
const SHOWN_COLUMNS: readonly (keyof ShownColumns)[] = [...SUMMARY_COLUMNS, ...USAGE_KEYS, 'flags'];

export const RUN_COLUMNS: readonly Exclude<keyof RunRow, 'n'>[] = [
  ...(['tenant', 'id', 'trace', 'is_root', 'outcome', 'parent', 'waits_for', 'span', 'is_named', 'below'] as const),
  ...(['call', 'same_call', 'is_repeated'] as const),
  ...SHOWN_COLUMNS,
];

/** Derives columns from a run. All columns are null if the run is not visible. */
export function derivedColumns(
  summary: RunSummary | undefined,
  fields: SmallFields,
  facts: PayloadFacts,
): ShownColumns {
  const columns: Record<string, unknown> = {};
  for (const column of SUMMARY_COLUMNS) columns[column] = (summary && SHOWN[column](summary)) ?? null;
  for (const key of USAGE_KEYS) columns[key] = summary?.usage?.[key] ?? null;
  columns.flags = summary === undefined ? null : flagsOf(fields, facts, summary);
  return columns as ShownColumns;
}

/** Copies the columns that are derived from the run's fields. `SqliteRun.write` sets the others. */
export function copyShownColumns(row: RunRow): ShownColumns {
  const columns: Record<string, unknown> = {};
  for (const column of SHOWN_COLUMNS) columns[column] = row[column];
  return columns as ShownColumns;
}

/** Serializes the fields of a run to JSON. Omits fields that have their own column. */
export function storedFields({ trace_id, parent_run_id, ...fields }: SmallFields, isVisible: boolean): string {
  if (!isVisible) return exactJson(fields);
  const { name = '', run_type = '', session_id = '', session_name = null, start_time, end_time, ...rest } = fields;
  return exactJson({
    ...rest,
    ...(!isExact(name) && { name }),
    ...(!isExact(run_type) && { run_type }),
    ...(!isExact(session_id) && { session_id }),
    // If `session_name` is null, the column contains the project id or `default`.
    ...((session_name === null || !isExact(session_name)) && { session_name }),
  });
}

function isExact(text: string): boolean {
  return text.length <= COMPARED_LENGTH_MAX && text.isWellFormed() && !text.includes('\0');
}

/** A run as selected by `SELECT_RUNS`. `fields`, `facts` and `ages` are JSON texts. */
export type SelectedRun = RunRow & {
  readonly trace_id: Uint8Array;
  /** See `HiddenKind`. Null unless the trace is being deleted. */
  readonly hidden: number | null;
  readonly fields: string;
  readonly facts: string | null;
  readonly ages: string;
};

/** SQL for `SummarizedRun.isTop`. */
export const IS_TOP: string = `(parent IS NULL AND waits_for IS NULL OR flags & ${RunFlag.ENTERS})`;

/** SQL for the id with which answers show a trace, see `AssembledTrace.shownId`. */
export const SHOWN_ID: string = `coalesce((SELECT roots.id FROM runs AS roots
    WHERE traces.is_named = 0 AND roots.n = traces.root AND ${IS_TOP}), traces.id)`;

export const SELECT_RUNS: string = `SELECT runs.*, fields, facts, ages, ${SHOWN_ID} AS trace_id, hidden.kind AS hidden
  FROM runs JOIN details ON details.n = runs.n JOIN traces ON traces.n = runs.trace
    LEFT JOIN hidden ON hidden.trace = runs.trace`;

export function runAt(connection: SqliteConnection, n: number): SelectedRun | undefined {
  return connection.one<SelectedRun>(`${SELECT_RUNS} WHERE runs.n = ?`, n);
}

/** Restores the fields of a run, except `trace_id`. */
export function rowFields(row: Pick<SelectedRun, keyof RunRow | 'fields'>): SmallFields {
  const { parent, start_us, end_us, name, run_type, project, session_id } = row;
  const { session_name = project, ...stored } = parseExact<SmallFields>(row.fields);
  // On Node 20, assignments are faster than an object literal with several spread expressions.
  const fields: SmallFields = {};
  if (name !== null) fields.name = name;
  if (run_type !== null) fields.run_type = run_type;
  if (session_name !== null) fields.session_name = session_name;
  if (session_id !== null) fields.session_id = session_id;
  if (start_us !== null) fields.start_time = isoTimestamp(start_us);
  if (end_us !== null) fields.end_time = isoTimestamp(end_us);
  if (parent !== null) fields.parent_run_id = idText(parent);
  return Object.assign(fields, stored);
}

export function evidenceIn({ call }: Pick<RunRow, 'call'>): CallEvidence {
  return JSON.parse(call ?? '{}');
}

export const IS_MODEL: string = `run_type IN (${MODEL_TYPES.map((type) => `'${type}'`).join(', ')})`;

/** SQL condition for runs whose usage counts if no other run records the same call. */
export const COUNTS_ALONE: string = `(${IS_MODEL} OR below = 0)`;

export const COUNTS_USAGE: string = `(is_repeated = 0 AND ${COUNTS_ALONE})`;

export function countedUsageIn(row: RunRow): Usage | undefined {
  if (row.is_repeated === 1) return undefined;
  return countsUsage(row.run_type ?? '', row.below === 1) ? rowUsage(row) : undefined;
}

export function rowUsage(row: Readonly<Record<string, unknown>>): Usage | undefined {
  const usage: Usage = {};
  for (const key of USAGE_KEYS) {
    const value = row[key] ?? null;
    if (value !== null) usage[key] = value as number;
  }
  return Object.keys(usage).length === 0 ? undefined : usage;
}
