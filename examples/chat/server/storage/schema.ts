export interface NewEvent {
  /** Channel of the event, by which clients subscribe, for example `messages`, `tools` or `custom:progress`. */
  readonly channel: string;
  readonly namespace: readonly string[];
  /** JSON of an object with `method` and `params`. The event stream adds the event's number and id. */
  readonly body: string;
}

export interface StoredEvent extends NewEvent {
  /** Number of the event. Numbers increase with each event of the thread, across runs, and are never reused. */
  readonly seq: number;
}

export interface EventPage {
  readonly events: readonly StoredEvent[];
  /** Number up to which events were deleted. 0 if no events were deleted. */
  readonly droppedThrough: number;
}

export interface ThreadSummary {
  readonly id: string;
  readonly title: string;
  /** ISO 8601 timestamp. */
  readonly updatedAt: string;
}

/** A run that is in progress or waits for earlier runs. */
export interface RunRow {
  readonly id: string;
  readonly state: 'running' | 'waiting';
  /** Place in the queue. The waiting runs of a thread start in the order of their places. */
  readonly place: number;
  readonly isCancelled: boolean;
}

export interface StartRequest {
  readonly threadId: string;
  readonly runId: string;
  /** Title for the thread, if it has none yet. */
  readonly title: string;
  /** Behaviour if another run of the thread is in progress. */
  readonly strategy: 'reject' | 'interrupt' | 'enqueue';
}

/** Limits of a store. Tests set other values. */
export interface StoreLimits {
  /** Time without a heartbeat after which a run's process counts as dead. @default 15,000 */
  readonly leaseMs: number;
  /** Interval of heartbeats. @default 4,000 */
  readonly heartbeatMs: number;
  /**
   * Maximum number of events per thread. If a thread has more, the older half of its events is deleted. @default 20,000
   */
  readonly eventsMax: number;
  /**
   * Maximum number of characters in a thread's events. If a thread has more, the older half of its events is deleted.
   * @default 64 Mi
   */
  readonly charsMax: number;
  /**
   * Time without a new event after which a thread's events are deleted. The thread's states are kept. @default 7 days
   */
  readonly idleMs: number;
}

export const LIMITS: StoreLimits = {
  leaseMs: 15_000,
  heartbeatMs: 4_000,
  eventsMax: 20_000,
  charsMax: 64 * 1024 * 1024,
  idleMs: 7 * 24 * 3_600_000,
};

/** SQL that creates the store's tables, valid for both SQLite and PostgreSQL. */
export const STORE_TABLES = `
  CREATE TABLE threads (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    updated_ms BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    dropped_seq BIGINT NOT NULL DEFAULT 0,
    kept BIGINT NOT NULL DEFAULT 0,
    chars BIGINT NOT NULL DEFAULT 0
  );
  CREATE TABLE events (
    thread_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    channel TEXT NOT NULL,
    namespace TEXT NOT NULL,
    body TEXT NOT NULL,
    chars BIGINT NOT NULL,
    PRIMARY KEY (thread_id, seq)
  );
  CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL,
    state TEXT NOT NULL,
    place BIGINT NOT NULL,
    instance TEXT NOT NULL,
    lease_ms BIGINT NOT NULL,
    is_cancelled INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX threads_updated ON threads (updated_ms);
  CREATE INDEX runs_thread ON runs (thread_id);
`;
