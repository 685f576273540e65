export interface NewEvent {
  /** The name that subscriptions use: `messages`, `tools`, `custom:progress`. */
  readonly channel: string;
  readonly namespace: readonly string[];
  /** JSON of an object with `method` and `params`. The event stream adds the number and the id. */
  readonly body: string;
}

export interface StoredEvent extends NewEvent {
  /** Grows with each event of the thread, across runs, and is never used twice. */
  readonly seq: number;
}

export interface EventPage {
  readonly events: readonly StoredEvent[];
  /** Events up to this number were deleted. 0 if all events are kept. */
  readonly droppedThrough: number;
}

export interface ThreadSummary {
  readonly id: string;
  readonly title: string;
  /** ISO 8601 */
  readonly updatedAt: string;
}

/** A run that is in progress, or waits for the runs before it. */
export interface RunRow {
  readonly id: string;
  readonly state: 'running' | 'waiting';
  /** Runs of a thread that wait begin in the order of their places. */
  readonly place: number;
  readonly isCancelled: boolean;
}

export interface StartRequest {
  readonly threadId: string;
  readonly runId: string;
  /** The title, if the thread has none. */
  readonly title: string;
  /** What happens if another run of the thread is in progress. */
  readonly strategy: 'reject' | 'interrupt' | 'enqueue';
}

/** Limits of a store, which tests change. */
export interface StoreLimits {
  /** After this time without a heartbeat, the process of a run counts as dead. @default 15 000 */
  readonly leaseMs: number;
  /** @default 4 000 */
  readonly heartbeatMs: number;
  /** Events kept per thread. Beyond this, the older half is deleted. @default 20 000 */
  readonly eventsMax: number;
  /** Characters of events kept per thread. Beyond this, the older half of the events is deleted. @default 64 Mi */
  readonly charsMax: number;
  /** Events of a thread without a new event are deleted after this time. The states are kept. @default 7 days */
  readonly idleMs: number;
}

export const LIMITS: StoreLimits = {
  leaseMs: 15_000,
  heartbeatMs: 4_000,
  eventsMax: 20_000,
  charsMax: 64 * 1024 * 1024,
  idleMs: 7 * 24 * 3_600_000,
};

/** The tables of the store, in the SQL that SQLite and PostgreSQL share. */
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
