import type { Attachment, RunRecord } from '../../run/record.ts';
import type { Feedback, FeedbackToken } from '../feedback/feedback.ts';
import type { ListQuery, Page, RunQuery, Statistics, StatisticsQuery } from '../query/query.ts';
import type {
  PayloadField,
  ProjectSummary,
  RunDetails,
  RunOutline,
  RunSummary,
  StoredRun,
  TraceSummary,
} from './run-view.ts';

/** What one message tells of a run: any of its fields, checked, with ids and times in the one spelling of records. */
export type RunFields = Partial<Omit<RunRecord, 'id'>>;

/** A creation or an update of one run, as a request brought it. */
export interface RunOperation {
  readonly kind: 'post' | 'patch';
  /** Lower case, with hyphens, like every id that a store is given. */
  readonly id: string;
  readonly fields: RunFields;
  /**
   * The JSON text of those payloads in `fields` that came as text of their own, so that a store which keeps text need not
   * write it again.
   */
  readonly texts?: Readonly<Partial<Record<PayloadField, string>>>;
  readonly attachments: readonly Attachment[];
}

/** Says which traces have other content than before; a trace that has been forgotten is among them. */
export interface StoreChange {
  /** Counts changes: that of a later one is higher. It goes on where it was when a store on disk is opened again. */
  readonly seq: number;
  readonly traceIds: readonly string[];
  /**
   * How much this change has made the store forget to stay within its limits; absent when that is nothing. A trace of
   * which more comes afterwards, and is forgotten again, counts again.
   */
  readonly forgotten?: { readonly runs: number; readonly traces: number };
}

/**
 * Where a receiver keeps runs. Everything answers with a promise, so that a store may live in a worker thread. What is
 * given back are copies. Runs come sorted by `dotted_order` as text: parents before children, siblings by start.
 *
 * Posts and patches of a run may come in any order and more than once. Fields add up, and one that a message leaves out
 * stays; where both tell a field, the patch is right. Within `extra` and `extra.metadata` single keys add up as well. A
 * run can be seen as soon as its name, type and start are known. One that came without a `dotted_order` stands below its
 * parent, and until that has come at the root.
 */
export interface Store {
  /**
   * Takes the operations of one request together: nobody sees a part of them, and if it rejects, nothing of them is
   * there. When it resolves they are kept, as far as the store keeps anything.
   */
  apply(operations: readonly RunOperation[]): Promise<void>;
  /** Whole runs, payloads and all. */
  runs(query: RunQuery): Promise<StoredRun[]>;
  trace(traceId: string): Promise<StoredRun[]>;
  attachment(runId: string, name: string): Promise<Attachment | undefined>;
  /** The listener is called after each change until the function given back has been called. */
  subscribe(listener: (change: StoreChange) => void): () => void;

  /** By name. */
  projects(): Promise<ProjectSummary[]>;
  /**
   * Returns traces whose root matches the query; `text` may occur in any run of the trace. Each store defines its own cursor
   * format, and rejects an invalid cursor with the code `RUNSPAN_INVALID_OPTION`.
   */
  traces(query: ListQuery): Promise<Page<TraceSummary>>;
  /** Returns the runs that match the query, at any position in their traces. */
  list(query: ListQuery): Promise<Page<RunSummary>>;
  /** Returns all runs of a trace without their contents, or an empty list if the trace is unknown. */
  outline(traceId: string): Promise<RunOutline[]>;
  details(runId: string): Promise<RunDetails | undefined>;
  /** Returns a payload as JSON text, or undefined if the run does not have it. */
  payload(runId: string, field: PayloadField): Promise<string | undefined>;
  statistics(query: StatisticsQuery): Promise<Statistics>;
  /** Traces that have changed after this count of changes, those longest ago first, and the count that this goes up to. */
  changes(afterSeq: number, limit: number): Promise<StoreChange>;

  /** Keeps feedback, in the place of the one that had its id. False when its run is not known; then it is not kept. */
  addFeedback(feedback: Feedback): Promise<boolean>;
  /** What is said of the runs of a trace, in the order in which it was first said. */
  feedback(traceId: string): Promise<Feedback[]>;
  /** Keeps tokens, together. The run of a token may come later. */
  addTokens(tokens: readonly FeedbackToken[]): Promise<void>;
  token(id: string): Promise<FeedbackToken | undefined>;
  /** The tokens of a run, in the order in which they were made. */
  tokens(runId: string): Promise<FeedbackToken[]>;
}
