import type { Attachment } from '../../run/record.ts';
import type { Feedback } from '../domain/feedback.ts';
import type { SpanIds } from '../domain/identity.ts';
import type {
  DeletionTarget,
  ListPage,
  ListQuery,
  RunCounts,
  RunQuery,
  Scope,
  Statistics,
  StatisticsQuery,
  Suggestion,
  SuggestionQuery,
  ThreadQuery,
  TimeRange,
} from '../domain/query/query.ts';
import type { RunFields, RunOperation } from '../domain/run-message.ts';
import type {
  PayloadField,
  ProjectSummary,
  RunDetails,
  RunSummary,
  ThreadSummary,
  TraceSummary,
} from '../domain/run-view.ts';
import type { Parsed } from '../filter/run-filter.ts';

/** Scope for a receiver without tenants. */
export const DEFAULT_SCOPE: Scope = { tenant: 'default' };

/** A store, and what a caller may read in it. */
export interface Reader {
  readonly store: Store;
  readonly scope: Scope;
}

/** A change to one or more traces, including their deletion. */
export interface StoreChange {
  readonly traceIds: readonly string[];
  /** Numbers of runs and traces that the store deleted to stay within its limits. */
  readonly forgotten?: RunCounts;
}

/**
 * Maximum number of attachments per run. If a run has more attachments, the store rejects the request with a
 * `StoreError` whose reason is `too_large`.
 */
export const ATTACHMENTS_MAX = 100;

/**
 * Error that a store throws to tell the client why a request failed. The receiver responds with status 429 for `busy`,
 * 503 for `unavailable` and 413 for `too_large`. After status 429 or 503, clients retry after `retryAfterS` seconds.
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

/** Throws a StoreError if a run would have too many attachments. `storedNames` returns the attachments of a stored run. */
export function refuseManyAttachments(
  operations: readonly RunOperation[],
  storedNames: (id: string) => Iterable<string> | undefined,
): void {
  const names = new Map<string, Set<string>>();
  for (const { id, attachments } of operations) {
    const all = names.get(id) ?? new Set(storedNames(id));
    names.set(id, all);
    for (const { name } of attachments) all.add(name);
    if (all.size <= ATTACHMENTS_MAX) continue;
    throw new StoreError('too_large', `Run ${id} has more than ${ATTACHMENTS_MAX} attachments`);
  }
}

/**
 * Stores the runs that clients send.
 *
 * The posts and patches of a run can arrive in any order and more than once. The store merges messages field by field,
 * and merges `extra` and `extra.metadata` key by key. Patches take precedence over posts. Of posts, one with an end takes
 * precedence over one without, and a real end over that of an incomplete or interrupted run. Otherwise, later messages take
 * precedence. A run becomes visible when its name, type and start time are known.
 *
 * When its first message arrives, a run gets the trace with the id `trace_id`, or else that of the OpenTelemetry trace in
 * `extra.metadata.otel`, that of its parent if the parent is stored, or its own. The parent is the run with the id
 * `parent_run_id`. If a run has neither `parent_run_id` nor `dotted_order`, `parent_span_id` in `extra.metadata.otel`
 * identifies a parent in the same trace. A run that names only its parent moves to the trace of the parent when the parent
 * arrives, with the runs below it.
 *
 * If no message contains the `trace_id` of a trace, answers contain the id of its root as `trace_id`, as soon as the root
 * has arrived. Queries accept this id, and every other id that has named the trace.
 */
export interface IngestStore {
  /**
   * Applies the operations in a request. When the promise resolves, the operations are durable, but queries may not
   * return them yet. After a rejection, the client sends the whole request again, so applying operations must be
   * idempotent. Without operations, the store tests whether it can write, and changes nothing that queries return.
   *
   * Resolves with the number of operations that the store discarded because `remove` has deleted their runs, or with
   * undefined if the store does not count them.
   */
  apply(scope: Scope, operations: readonly RunOperation[]): Promise<number | undefined>;
}

/** A run as its messages describe it. The fields contain the payloads. */
export interface MergedRun {
  readonly id: string;
  readonly fields: RunFields;
}

/** Answers queries about stored runs. Results are copies of the stored data. */
export interface QueryStore {
  /**
   * Yields each matching run with its payloads, as the JSON text of a `StoredRun`. Runs are grouped by trace, parents
   * before children.
   */
  runs(scope: Scope, query: Parsed<RunQuery>): AsyncIterable<string>;
  attachment(scope: Scope, runId: string, name: string): Promise<Attachment | undefined>;
  /** Returns the projects that have traces within the range, sorted by name. */
  projects(scope: Scope, range: TimeRange): Promise<ProjectSummary[]>;
  /**
   * Returns the traces whose root run matches the query. Only the search words may occur in any run of the trace. Each
   * store defines its own cursor format. Rejects with `RUNSPAN_INVALID_OPTION` if the cursor is invalid.
   */
  traces(scope: Scope, query: Parsed<ListQuery>): Promise<ListPage<TraceSummary>>;
  /**
   * Returns the threads in which at least one root run matches the query, in descending order of the latest matching
   * root run. The figures of a thread cover all its turns in the query's project, including turns that do not match.
   */
  threads(scope: Scope, query: Parsed<ThreadQuery>): Promise<ListPage<ThreadSummary>>;
  /** Returns the runs that match the query, including nested runs. */
  list(scope: Scope, query: Parsed<ListQuery>): Promise<ListPage<RunSummary>>;
  /**
   * Returns all runs in a trace without their payloads, parents before children. Each run is the JSON text of a
   * `RunOutline`. Returns an empty list if the trace is unknown.
   */
  outline(scope: Scope, traceId: string): Promise<string[]>;
  details(scope: Scope, runId: string): Promise<RunDetails | undefined>;
  /**
   * Returns the names of the projects that contain any of these runs. Runs that are not visible yet are in no project.
   * May include the projects of deleted runs.
   */
  projectsOf(scope: Scope, runIds: readonly string[]): Promise<string[]>;
  /** Returns a payload of a run as JSON text, or undefined if the run has no such payload. */
  payload(scope: Scope, runId: string, field: PayloadField): Promise<string | undefined>;
  /**
   * Returns the runs with the given ids and the runs of the given OpenTelemetry spans, also those that are not visible.
   * Unlike other queries, includes everything that `apply` has stored, and ignores the project of the scope.
   */
  mergedRuns(scope: Scope, runs: readonly (string | SpanIds)[]): Promise<MergedRun[]>;
  statistics(scope: Scope, query: Parsed<StatisticsQuery>): Promise<Statistics>;
  /**
   * Returns up to 20 values of a field with the number of runs that have the value, most frequent first. Counts only
   * the latest 2,000 runs.
   */
  suggestions(scope: Scope, query: SuggestionQuery): Promise<Suggestion[]>;
}

/** Reports changes to stored traces. */
export interface ChangeFeed {
  /**
   * Calls the listener after each change. If the scope is limited to a project, the change contains only traces that have
   * or had runs in this project. Call the returned function to unsubscribe.
   */
  subscribe(scope: Scope, listener: (change: StoreChange) => void): () => void;
}

/** Stores feedback on runs. */
export interface FeedbackStore {
  /**
   * Stores feedback. Replaces existing feedback with the same id. If the run is unknown, returns false and stores
   * nothing.
   */
  addFeedback(scope: Scope, feedback: Feedback): Promise<boolean>;
  /** Returns the feedback on all visible runs in these traces, sorted by creation time. */
  feedback(scope: Scope, traceIds: readonly string[]): Promise<Feedback[]>;
  /** Returns the feedback with an id, on a visible run. If several runs have such feedback, returns one of them. */
  feedbackWithId(scope: Scope, id: string): Promise<Feedback | undefined>;
  /** Deletes feedback from its run. Ignores the project of the scope. Returns whether the run had this feedback. */
  removeFeedback(scope: Scope, feedback: Pick<Feedback, 'id' | 'run_id'>): Promise<boolean>;
}

/** A secret that signs feedback tokens of all tenants. */
export interface TokenSecret {
  readonly secret: string;
  readonly createdMs: number;
}

/** A feedback token that was revoked, or a run whose tokens were all revoked. */
export interface RevokedToken {
  readonly id: string;
  readonly revokedMs: number;
}

/** Stores the secrets that sign tokens of feedback and login sessions, and which tokens are revoked, but no tokens. */
export interface TokenStore {
  /** Adds a secret. If the store has this secret, nothing changes. */
  addTokenSecret(secret: TokenSecret): Promise<void>;
  /** Returns all secrets, earliest first. */
  tokenSecrets(): Promise<TokenSecret[]>;
  /** Stores that a token, or all tokens of a run, were revoked at a time. `id` is the id of the token or the run. */
  revokeTokens(scope: Scope, id: string, revokedMs: number): Promise<void>;
  /** Returns the latest time at which one of these tokens and runs was revoked. */
  tokensRevokedMs(scope: Scope, ids: readonly string[]): Promise<number | undefined>;
}

/** Deletes traces. */
export interface DeletionStore {
  /** Counts the runs that `remove` would delete. */
  removable(scope: Scope, target: DeletionTarget): Promise<RunCounts>;
  /**
   * Deletes the stored traces of the target, with their payloads, attachments and feedback. If the scope has a project,
   * deletes only runs in this project. For 30 days, `apply` ignores later messages of what was deleted. A trace that is
   * named by its id may arrive after the call.
   *
   * Resolves with the counts of what was found, once no method returns it any more. The store may free the space in the
   * background, also after a restart. May reject with a `StoreError` with the reason `busy` while others continue.
   */
  remove(scope: Scope, target: DeletionTarget): Promise<RunCounts>;
}

/** Stores runs, attachments, feedback, and the secrets and revocations of feedback tokens. */
export interface Store extends IngestStore, QueryStore, ChangeFeed, FeedbackStore, TokenStore, DeletionStore {}

/** Figures of a store for monitoring. */
export interface StoreStatus {
  /** Size of the operations that wait to be written, in bytes. */
  readonly queuedBytes: number;
  /** Number of runs that are not in the search index yet. NaN if the file is damaged there. */
  readonly unindexedRuns: number;
  readonly fileBytes: number;
  readonly walBytes: number;
  /** Free space on the disk, in bytes. */
  readonly freeBytes: number;
  /** Whether a file of the store is damaged. Undefined if the store has no file of its own. */
  readonly isDamaged?: boolean;
}

/** Names of all methods of `Store`. The compiler checks that the list is complete. */
export const STORE_METHODS: readonly (keyof Store)[] = Object.keys({
  ...{ apply: 0, runs: 0, attachment: 0, projects: 0, traces: 0, threads: 0, list: 0, outline: 0, details: 0 },
  ...{ projectsOf: 0, payload: 0, mergedRuns: 0, statistics: 0, suggestions: 0, subscribe: 0, addFeedback: 0 },
  ...{ feedback: 0, feedbackWithId: 0, removeFeedback: 0, addTokenSecret: 0, tokenSecrets: 0, revokeTokens: 0 },
  ...{ tokensRevokedMs: 0, removable: 0, remove: 0 },
} satisfies Record<keyof Store, 0>) as (keyof Store)[];
