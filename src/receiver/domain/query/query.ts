import type { FeedbackFigures } from '../feedback.ts';
import type { ThreadSummary, TraceSummary, Usage } from '../run-view.ts';

/**
 * Limits a call to one tenant, and optionally to one project. The same id in two tenants identifies two different runs.
 * `ChangeFeed` and `TokenStore` ignore the project.
 */
export interface Scope {
  readonly tenant: string;
  /** Name or id of a project. Queries return only runs in this project. `apply` and `addFeedback` ignore it. */
  readonly project?: string;
  /** A store can end a query when the signal aborts, as `SqliteStore` does. Writes ignore it. */
  readonly signal?: AbortSignal;
}

/** Selects the runs that match all given fields. */
export interface RunQuery {
  /** Name or id of the project. */
  project?: string;
  traceId?: string;
  /**
   * A filter in the filter language, for example `status:error latency>2s since:1h refund`. In a list of traces, the
   * conditions apply to the root run, and the search words to any run.
   */
  filter?: string;
  /** Maximum number of runs to return. */
  limit?: number;
}

/** A field whose values are compared as text. `meta` is a metadata key, and `error` ignores case. */
export type TextField =
  | 'name'
  | 'type'
  | 'model'
  | 'status'
  | 'project'
  | 'trace'
  | 'run'
  | 'thread'
  | 'user'
  | 'tag'
  | 'error'
  | 'meta';

/**
 * A field whose values can be suggested: a key of the filter language, `meta` for metadata keys, `meta.KEY` for the
 * values of a metadata key, or `feedback` for feedback keys.
 */
export type SuggestionField = Exclude<TextField, 'trace' | 'run' | 'error'> | 'feedback' | `meta.${string}`;

/** Selects values to suggest. */
export interface SuggestionQuery {
  field: SuggestionField;
  /** Text that the values must contain. Case is ignored. */
  text?: string;
  /** Name or id of the project. */
  project?: string;
}

/** A value of a field, with the number of runs that have the value. */
export interface Suggestion {
  value: string;
  runs: number;
}

/**
 * A range of start times, in microseconds since 1970. `fromUs` is inclusive, `beforeUs` is exclusive, and both may be
 * infinite.
 */
export interface TimeRange {
  readonly fromUs: number;
  readonly beforeUs: number;
  /** The terms of a filter from which the range comes, such as `since:24h`. @internal */
  readonly text?: string;
}

/**
 * The value by which a list is sorted. Runs without the sort value come last in either order. In a list of traces,
 * `tokens` and `cost` are totals for the trace. If the scope has a project, they count only runs in it.
 */
export type SortKey = 'start_time' | 'latency' | 'tokens' | 'cost';

/** Selects one page of a list. */
export interface ListQuery extends Omit<RunQuery, 'limit'> {
  /** @default 'start_time' */
  sort?: SortKey;
  /** @default 'descending' */
  order?: 'ascending' | 'descending';
  /** `next` from the previous page. All other fields of the query must be the same as for the previous page. */
  cursor?: string;
  /** Maximum number of items on the page, from 1 to 1000. @default 50 */
  limit?: number;
}

/** Selects what `GET /query/export` returns. */
export interface ExportQuery extends RunQuery {
  /** `runs`: all runs that match the query. `traces`: the traces whose root run matches the query. @default 'runs' */
  list?: 'runs' | 'traces';
  /** @default 'jsonl' */
  format?: 'jsonl' | 'csv' | 'otlp';
}

/** Selects one page of a list of threads. The thread with the latest matching turn comes first. */
export type ThreadQuery = Omit<ListQuery, 'traceId' | 'sort' | 'order'>;

/** One page of a list. */
export interface ListPage<Item> {
  items: Item[];
  /** Cursor for the next page. Absent on the last page. */
  next?: string;
}

/** A page of the turns of a thread. Each turn is a trace. */
export interface ThreadTurns extends ListPage<TraceSummary> {
  summary: ThreadSummary;
}

/**
 * The run field by which statistics are grouped. `meta.KEY` groups by the metadata value with this key. A run with
 * several tags counts in the group of each tag. A run without a value counts in no group, nor does the name of an internal
 * step that is no root.
 */
export type GroupKey =
  | 'name'
  | 'model'
  | 'run_type'
  | 'project'
  | 'status'
  | 'thread'
  | 'user'
  | 'tag'
  | `meta.${string}`;

/** A number by which groups are compared. */
export type RankKey = 'runs' | 'errors' | 'tokens' | 'cost';

/** Selects the runs for statistics, and sets the groups and the time buckets. */
export interface StatisticsQuery extends Omit<RunQuery, 'limit'> {
  /** @default 'name' */
  groupBy?: GroupKey;
  /** Maximum number of groups, from 1 to 200. The largest groups are returned, largest first. @default 50 */
  groups?: number;
  /**
   * The number by which groups are compared: their runs, their errors, or their total tokens or costs. Of equal groups, the one
   * with more runs comes first.
   * @default 'runs'
   */
  rankBy?: RankKey;
  /**
   * Maximum number of time buckets, from 1 to 500. The result may have fewer buckets, because buckets start at round
   * times, such as whole minutes, hours or days in the time zone.
   * @default 60
   */
  buckets?: number;
  /**
   * Time zone of the time buckets: an IANA name such as `Europe/Berlin`, or minutes east of UTC such as `120`.
   * @default '0'
   */
  timeZone?: string;
  /** Number of groups with time buckets, from 0 to 20. The largest groups get time buckets. @default 0 */
  series?: number;
}

/** Numbers and latencies of traces. */
export interface TraceFigures extends RunFigures {
  /** Number of traces with the outcome `error`. */
  errors: number;
  /** Number of traces with the outcome `failed_below`. */
  failed_below: number;
  /** Number of traces with the outcome `incomplete`. */
  incomplete: number;
}

/** Numbers and latencies of runs. */
export interface RunFigures {
  runs: number;
  /** Number of runs with the status `error`. */
  errors: number;
  /**
   * Latency percentiles and maximum latency of the runs that have ended, accurate to 1 %. Absent if no run has ended.
   */
  latency_ms?: { p50: number; p90: number; p95: number; p99: number; max: number };
}

/** Statistics about a set of runs. */
export interface Figures extends RunFigures {
  pending: number;
  /** Total tokens and costs. Totals of 0 are omitted. Absent if all totals are 0. */
  usage?: Usage;
  /**
   * Number of calls whose cost the total lacks: their tokens count, but they have no price. Calls that report no tokens are
   * not among them. Absent if there are none.
   */
  unpriced_calls?: number;
  /** The traces whose root run is among these runs. */
  roots: TraceFigures;
  /** The runs of type `llm` and `embedding` among these runs. */
  model_calls: RunFigures;
}

/** Statistics about a group of runs. */
export interface GroupFigures extends Figures {
  group: string;
  /** Feedback on the runs, sorted by key. Absent if there is no feedback. */
  feedback?: FeedbackFigures[];
  /** The time buckets of the group, in the order of `Statistics.buckets`. Only the largest groups have them. */
  buckets?: Pick<Figures, 'runs' | 'errors' | 'usage' | 'unpriced_calls'>[];
}

/** Statistics about the selected runs, in total, by group and over time. */
export interface Statistics {
  /**
   * Start of the query's time range. If the query sets no start, `from` is the start time of the first run. Absent if
   * there are no runs.
   */
  from?: string;
  to?: string;
  total: Figures & Pick<GroupFigures, 'feedback'>;
  /** The largest group comes first. */
  groups: GroupFigures[];
  /** Time buckets in chronological order, including buckets without runs. */
  buckets: (Figures & { start_time: string })[];
}

/**
 * Selects the traces to delete: the trace with the id, each trace in which a run has the thread or user, or each trace whose
 * root run is in the project with the name or id. With a project in the scope, only runs in this project count and are deleted.
 */
export interface DeletionTarget {
  readonly kind: 'trace' | 'thread' | 'user' | 'project';
  readonly id: string;
}

/** Numbers of runs and of their traces. */
export interface RunCounts {
  readonly runs: number;
  readonly traces: number;
}
