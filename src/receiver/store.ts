import type { Attachment, RunRecord } from '../run/record.ts';

/** What one message tells of a run: any of its fields, checked, with ids and times in the one spelling of records. */
export type RunFields = Partial<Omit<RunRecord, 'id'>>;

/** A creation or an update of one run, as a request brought it. */
export interface RunOperation {
  readonly kind: 'post' | 'patch';
  /** Lower case, with hyphens, like every id that a store is given. */
  readonly id: string;
  readonly fields: RunFields;
  readonly attachments: readonly Attachment[];
}

/** What is told of an attachment without its bytes. */
export interface AttachmentInfo {
  name: string;
  mime_type: string;
  /** Bytes. */
  size: number;
}

/** A run as a store gives it back. */
export interface StoredRun extends RunRecord {
  /** Absent when the run has none. `Store.attachment` gives the bytes. */
  attachments?: AttachmentInfo[];
}

/** Which runs to give back: those that match every field given. */
export interface RunQuery {
  /** Name of the project, or its id. */
  project?: string;
  traceId?: string;
  name?: string;
  runType?: string;
  /** At most so many, the first in order. */
  limit?: number;
}

/** Says which traces have other content than before; a trace that has been forgotten is among them. */
export interface StoreChange {
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
   * there.
   */
  apply(operations: readonly RunOperation[]): Promise<void>;
  runs(query: RunQuery): Promise<StoredRun[]>;
  trace(traceId: string): Promise<StoredRun[]>;
  attachment(runId: string, name: string): Promise<Attachment | undefined>;
  /** The listener is called after each `apply` until the function given back has been called. */
  subscribe(listener: (change: StoreChange) => void): () => void;
}
