/** What makes each version of the file of the one before it; the first of none. Those that have been released stay as they are. */
export const SQLITE_MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE checkpoints (
    n INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT,
    checkpoint_type TEXT NOT NULL,
    checkpoint BLOB NOT NULL,
    metadata_type TEXT NOT NULL,
    metadata BLOB NOT NULL,
    UNIQUE (thread_id, checkpoint_ns, checkpoint_id)
  ) STRICT;

  CREATE TABLE channel_values (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL,
    channel TEXT NOT NULL,
    version TEXT NOT NULL,
    type TEXT NOT NULL,
    value BLOB NOT NULL,
    UNIQUE (thread_id, checkpoint_ns, channel, version)
  ) STRICT;

  CREATE TABLE writes (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    idx INTEGER NOT NULL,
    channel TEXT NOT NULL,
    type TEXT NOT NULL,
    value BLOB NOT NULL,
    UNIQUE (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
  ) STRICT;

  -- Titles, channels and namespaces are JSON: whatever stands in them comes back as it was.
  CREATE TABLE threads (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    place INTEGER NOT NULL UNIQUE
  ) STRICT;

  CREATE TABLE sessions (
    n INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL UNIQUE,
    last_seq INTEGER NOT NULL,
    dropped_through INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    used_ms INTEGER NOT NULL,
    run_id TEXT,
    is_cancelled INTEGER NOT NULL DEFAULT 0,
    -- Its process has ended. It is being told of until then.
    is_cut INTEGER NOT NULL DEFAULT 0,
    told_until_ms INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX sessions_used ON sessions (used_ms);
  CREATE INDEX sessions_cut ON sessions (is_cut) WHERE is_cut = 1;

  -- One row: the highest number of the threads that were deleted.
  CREATE TABLE numbering (forgotten_seq INTEGER NOT NULL) STRICT;
  INSERT INTO numbering VALUES (0);

  CREATE TABLE events (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    head TEXT NOT NULL,
    body TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (session, seq)
  ) STRICT, WITHOUT ROWID
  `,
  `
  -- Runs that wait for the one that has the thread, in the order of their places.
  CREATE TABLE waiting (
    session INTEGER NOT NULL,
    place INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    is_cancelled INTEGER NOT NULL DEFAULT 0,
    is_cut INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, place)
  ) STRICT, WITHOUT ROWID
  `,
];
