/** A thread as a sidebar shows it. */
export interface ThreadSummary {
  readonly id: string;
  readonly title: string;
  /** ISO 8601. */
  readonly updatedAt: string;
}

/** The threads that there are. It is kept where the checkpoints are. */
export interface ThreadIndex {
  /** Says that something happened in a thread. Its first title that is not empty stays, until it is renamed to another such. */
  touch(thread: ThreadSummary, how?: 'renamed'): Promise<void>;

  /** The last changed first, those after `offset`. */
  list(limit: number, offset: number): Promise<ThreadSummary[]>;

  delete(id: string): Promise<void>;
}
