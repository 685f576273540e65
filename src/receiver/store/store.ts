import type { Attachment, RunRecord } from '../../run/record.ts';
import type { Feedback, FeedbackToken } from '../feedback/feedback.ts';
import type { ListQuery, Page, Ranged, RunQuery, Statistics, StatisticsQuery, TimeRange } from '../query/query.ts';
import type { PayloadField, ProjectSummary, RunDetails, RunOutline, RunSummary, TraceSummary } from './run-view.ts';

/**
 * Limits a call to one tenant and optionally one project. Tenants are separate: the same id in two tenants identifies
 * two runs.
 */
export interface Scope {
  readonly tenant: string;
  /** The name or id of the only project whose runs are read. It does not affect writes. */
  readonly project?: string;
}

/** The scope of a receiver without tenants. */
export const DEFAULT_SCOPE: Scope = { tenant: 'default' };

/** Validated fields of a run. Ids are in lower case with hyphens. Times are ISO 8601 in UTC with microseconds. */
export type RunFields = Partial<Omit<RunRecord, 'id'>>;

/**
 * A message that creates or updates a run. If it has a `dotted_order`, it also has the `trace_id` and the
 * `parent_run_id` from that order.
 */
export interface RunOperation {
  readonly kind: 'post' | 'patch';
  readonly id: string;
  readonly fields: RunFields;
  /** JSON text of the payloads in `fields`. A store can use the text instead of serializing a payload. */
  readonly texts?: Readonly<Partial<Record<PayloadField, string>>>;
  readonly attachments: readonly Attachment[];
}

/** A change to traces, including deleted traces. */
export interface StoreChange {
  /** Opaque cursor. `ChangeFeed.changes` returns the changes after it. */
  readonly cursor: string;
  readonly traceIds: readonly string[];
  /** Number of runs and traces that the store deleted to stay within its limits. */
  readonly forgotten?: { readonly runs: number; readonly traces: number };
}

/** Changes after a cursor. */
export interface Changes {
  readonly cursor: string;
  /**
   * Ids of the changed traces. Undefined if the store cannot list them, for example because the cursor is from another
   * store.
   */
  readonly traceIds: readonly string[] | undefined;
}

/**
 * Maximum number of attachments of a run. If a run has more, the store rejects the request with a `StoreError`, reason
 * `too_large`.
 */
export const ATTACHMENTS_MAX = 100;
/** Maximum number of feedback tokens in a store. If there are more, the oldest are deleted. */
export const TOKENS_MAX = 10_000;

/**
 * Rejects a request for a reason that the client must know. The receiver responds with 429 for `busy`, 503 for
 * `unavailable` and 413 for `too_large`. Clients retry 429 and 503 after `retryAfterS` seconds.
 */
export class StoreError extends Error {
  override readonly name: string = 'StoreError';
  readonly reason: 'busy' | 'unavailable' | 'too_large';
  readonly retryAfterS: number | undefined;

  constructor(reason: StoreError['reason'], message: string, retryAfterS?: number) {
    super(message);
    this.reason = reason;
    this.retryAfterS = retryAfterS;
  }
}

/**
 * Stores the runs of requests.
 *
 * Messages of a run can arrive in any order and more than once. They are merged field by field, and within `extra` and
 * `extra.metadata` key by key. A patch takes precedence over a post, and a later message over an earlier one of its
 * kind. A run is visible once its name, type and start time are known.
 *
 * The trace of a run is its `trace_id`. A run without one belongs to the trace of its parent, or to a separate trace
 * until the parent arrives. The parent is the run `parent_run_id`. If a run has neither `parent_run_id` nor
 * `dotted_order`, its parent is the run with the span `parent_span_id` in `extra.metadata.otel`.
 */
export interface IngestStore {
  /**
   * Applies the operations of a request. When the promise resolves, the operations are durable. They may become visible
   * later. After a rejection, the client sends the whole request again, so operations must be idempotent.
   */
  apply(scope: Scope, operations: readonly RunOperation[]): Promise<void>;
}

/** Answers queries. All results are copies. */
export interface QueryStore {
  /** Yields runs with their payloads as JSON text of `StoredRun`: trace by trace, parents before their children. */
  runs(scope: Scope, query: Ranged<RunQuery>): AsyncIterable<string>;
  attachment(scope: Scope, runId: string, name: string): Promise<Attachment | undefined>;
  /** Returns projects with a trace that starts in the range, sorted by name. */
  projects(scope: Scope, range: TimeRange): Promise<ProjectSummary[]>;
  /**
   * Returns traces whose root matches the query. `text` may occur in any run of the trace. Each store defines its
   * cursor format, and rejects an invalid cursor with the code `RUNSPAN_INVALID_OPTION`.
   */
  traces(scope: Scope, query: Ranged<ListQuery>): Promise<Page<TraceSummary>>;
  /** Returns the runs that match the query, at any position in their traces. */
  list(scope: Scope, query: Ranged<ListQuery>): Promise<Page<RunSummary>>;
  /** Returns all runs of a trace without their payloads, parents before children. Empty if the trace is unknown. */
  outline(scope: Scope, traceId: string): Promise<RunOutline[]>;
  details(scope: Scope, runId: string): Promise<RunDetails | undefined>;
  /** Returns a payload as JSON text, or undefined if the run does not have it. */
  payload(scope: Scope, runId: string, field: PayloadField): Promise<string | undefined>;
  statistics(scope: Scope, query: Ranged<StatisticsQuery>): Promise<Statistics>;
}

/** Reports changes. */
export interface ChangeFeed {
  /** Calls the listener after each change, until the returned function is called. */
  subscribe(scope: Scope, listener: (change: StoreChange) => void): () => void;
  /**
   * Returns about `limit` traces that changed after the cursor, earliest change first. Without a cursor, returns only
   * the current cursor.
   */
  changes(scope: Scope, after: string | undefined, limit: number): Promise<Changes>;
}

/** Stores feedback on runs. */
export interface FeedbackStore {
  /** Replaces feedback with the same id. Returns false, and stores nothing, if the run is unknown. */
  addFeedback(scope: Scope, feedback: Feedback): Promise<boolean>;
  /** Returns the feedback on all runs of a trace, sorted by creation time. */
  feedback(scope: Scope, traceId: string): Promise<Feedback[]>;
}

/** Stores feedback tokens. */
export interface TokenStore {
  /** Adds tokens. The run of a token may arrive later. */
  addTokens(scope: Scope, tokens: readonly FeedbackToken[]): Promise<void>;
  token(scope: Scope, id: string): Promise<FeedbackToken | undefined>;
  /** Returns the tokens of a run in order of creation. */
  tokens(scope: Scope, runId: string): Promise<FeedbackToken[]>;
}

/** A store for a receiver. */
export interface Store extends IngestStore, QueryStore, ChangeFeed, FeedbackStore, TokenStore {}

/** Names of all methods of `Store`. The compiler checks that the list is complete. */
export const STORE_METHODS: readonly (keyof Store)[] = Object.keys({
  apply: 0,
  runs: 0,
  attachment: 0,
  projects: 0,
  traces: 0,
  list: 0,
  outline: 0,
  details: 0,
  payload: 0,
  statistics: 0,
  subscribe: 0,
  changes: 0,
  addFeedback: 0,
  feedback: 0,
  addTokens: 0,
  token: 0,
  tokens: 0,
} satisfies Record<keyof Store, 0>) as (keyof Store)[];
