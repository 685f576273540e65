import type { RunStatus, Usage } from '../store/run-view.ts';

/** Which runs are asked for: those that match every field given. */
export interface RunQuery {
  /** Name of the project, or its id. */
  project?: string;
  traceId?: string;
  /** The whole name. */
  name?: string;
  runType?: string;
  model?: string;
  /** One of these. */
  status?: RunStatus | readonly RunStatus[];
  /** Each of these. */
  tag?: string | readonly string[];
  /** Keys of `extra.metadata` with the text that their value has, JSON for what is no text; `null` stands for any value. */
  metadata?: Readonly<Record<string, string | null>>;
  /** ISO 8601. This moment included. */
  startedFrom?: string;
  /** This moment not included. */
  startedBefore?: string;
  /** From start to end, milliseconds, both included. A pending run has no latency. */
  latencyMsMin?: number;
  latencyMsMax?: number;
  /** Total tokens of the run itself, for traces those of the whole trace. Both included. */
  tokensMin?: number;
  tokensMax?: number;
  /**
   * Words that the run has to have, each as the beginning of a word, in its name, error, inputs, outputs, tags or values of
   * metadata, upper or lower case, with or without accents. Words in double quotes have to stand next to each other.
   */
  text?: string;
  /** At most so many, the first in order. */
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

/** What a list is sorted by. Runs without the value come last, whichever way. For traces, tokens and costs are those of the whole trace. */
export type SortKey = 'start_time' | 'latency' | 'tokens' | 'cost';

/** A page of a list. */
export interface ListQuery extends Omit<RunQuery, 'limit'> {
  /** @default 'start_time' */
  sort?: SortKey;
  /** @default 'descending' */
  order?: 'ascending' | 'descending';
  /** What the page before gave as `next`. All else has to be asked as for that page. */
  cursor?: string;
  /** Items of a page, 1 to 1000. @default 50 */
  limit?: number;
}

export interface Page<Item> {
  items: Item[];
  /** Absent on the last page. */
  next?: string;
}

/** What figures are grouped by. */
export type GroupKey = 'name' | 'model' | 'run_type' | 'project' | 'status';

export interface StatisticsQuery extends Omit<RunQuery, 'limit'> {
  /** @default 'name' */
  groupBy?: GroupKey;
  /** Groups, those with most runs first; 1 to 200. @default 50 */
  groups?: number;
  /**
   * Maximum number of time buckets, 1 to 500. There may be fewer, because buckets begin at multiples of their length, for
   * example at whole minutes, hours or days in UTC. @default 60
   */
  buckets?: number;
}

/** What runs come to. */
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
  /** The time that the buckets cover: as asked, else from the first to the last start. Absent when there is no run. */
  from?: string;
  to?: string;
  total: Figures;
  groups: (Figures & { group: string })[];
  /** In order of time, those without runs too. */
  buckets: (Figures & { start_time: string })[];
}
