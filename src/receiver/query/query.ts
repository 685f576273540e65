import type { RunStatus, Usage } from '../store/run-view.ts';

/** Selects the runs that match all fields. */
export interface RunQuery {
  /** The name or the id of the project. */
  project?: string;
  traceId?: string;
  /** The complete name. */
  name?: string;
  runType?: string;
  model?: string;
  /** Any of these. */
  status?: RunStatus | readonly RunStatus[];
  /** All of these. */
  tag?: string | readonly string[];
  /** Keys of `extra.metadata` and the text of their values: JSON if the value is not a string. `null` matches any value. */
  metadata?: Readonly<Record<string, string | null>>;
  /** ISO 8601, inclusive. */
  startedFrom?: string;
  /** ISO 8601, exclusive. */
  startedBefore?: string;
  /** Milliseconds from start to end, inclusive. A pending run has no latency. */
  latencyMsMin?: number;
  latencyMsMax?: number;
  /** Total tokens of the run, or in a list of traces of the whole trace, inclusive. */
  tokensMin?: number;
  tokensMax?: number;
  /**
   * Words in the name, the error, the inputs, the outputs, the tags or the metadata values of the run. Each matches the
   * beginning of a word, regardless of case and accents. Words in double quotes must be adjacent.
   */
  text?: string;
  /** Maximum number of runs. */
  limit?: number;
}

/** Start times in microseconds since 1970. `fromUs` is included, `beforeUs` is not. Both may be infinite. */
export interface TimeRange {
  readonly fromUs: number;
  readonly beforeUs: number;
}

/** A query as a store receives it: with an explicit time range. `ranged` makes one. */
export type Ranged<Query extends RunQuery | ListQuery | StatisticsQuery> = Omit<
  Query,
  'startedFrom' | 'startedBefore'
> & { readonly range: TimeRange };

/** Runs without the value come last in both orders. In a list of traces, tokens and costs are those of the whole trace. */
export type SortKey = 'start_time' | 'latency' | 'tokens' | 'cost';

/** A page of a list. */
export interface ListQuery extends Omit<RunQuery, 'limit'> {
  /** @default 'start_time' */
  sort?: SortKey;
  /** @default 'descending' */
  order?: 'ascending' | 'descending';
  /** `next` of the previous page. The other fields must be the same as for that page. */
  cursor?: string;
  /** Maximum number of items, 1 to 1000. @default 50 */
  limit?: number;
}

export interface Page<Item> {
  items: Item[];
  /** Absent on the last page. */
  next?: string;
}

export type GroupKey = 'name' | 'model' | 'run_type' | 'project' | 'status';

export interface StatisticsQuery extends Omit<RunQuery, 'limit'> {
  /** @default 'name' */
  groupBy?: GroupKey;
  /** Maximum number of groups, 1 to 200. Groups with most runs come first. @default 50 */
  groups?: number;
  /**
   * Maximum number of time buckets, 1 to 500. There may be fewer, because buckets begin at multiples of their length, for
   * example at whole minutes, hours or days in UTC. @default 60
   */
  buckets?: number;
}

/** The figures of a number of runs. */
export interface Figures {
  runs: number;
  pending: number;
  /** Runs whose status is `error`. */
  errors: number;
  /** Percentiles of the runs that have ended, accurate to 1 %. Absent if none has ended. */
  latency_ms?: { p50: number; p90: number; p95: number; p99: number; max: number };
  /** The sums that are not 0. Absent if there is none. */
  usage?: Usage;
}

export interface Statistics {
  /** The time range of the query, or of the starts of its runs. Absent if there are no runs. */
  from?: string;
  to?: string;
  total: Figures;
  groups: (Figures & { group: string })[];
  /** In order of time, including buckets without runs. */
  buckets: (Figures & { start_time: string })[];
}
