/** In the header of the file: `RSPN`. By it a database of somebody else is told from one of ours. */
export const APPLICATION_ID = 0x5253504e;

/**
 * What turns a file of each version into one of the next; the first makes a new one. A file says its version in
 * `user_version`. Rows of `runs` are narrow, since figures look at all of them; what is read a run at a time stands in
 * `details`, and what may be megabytes in `payloads`.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
  INSERT INTO meta VALUES ('seq', 0);

  CREATE TABLE traces (
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    seq INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL,
    root INTEGER,
    root_id BLOB,
    runs INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    end_us INTEGER,
    input_tokens REAL,
    output_tokens REAL,
    total_tokens REAL,
    total_cost REAL
  );
  CREATE INDEX traces_by_seq ON traces (seq, id);

  -- The columns from start_us on are empty as long as the run cannot be shown.
  CREATE TABLE runs (
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    trace_id BLOB NOT NULL,
    is_root INTEGER NOT NULL DEFAULT 0,
    parent_id BLOB,
    waits_for BLOB,
    dotted_order TEXT,
    level INTEGER NOT NULL,
    start_us INTEGER,
    end_us INTEGER,
    latency_us INTEGER,
    project TEXT,
    session_id TEXT,
    name TEXT,
    run_type TEXT,
    status TEXT,
    model TEXT,
    input_tokens REAL,
    output_tokens REAL,
    total_tokens REAL,
    total_cost REAL
  );
  CREATE INDEX runs_by_trace ON runs (trace_id, dotted_order);
  CREATE INDEX runs_by_wait ON runs (waits_for) WHERE waits_for IS NOT NULL;
  CREATE INDEX runs_by_start ON runs (start_us, id);
  CREATE INDEX runs_by_project ON runs (project, start_us, id);
  CREATE INDEX runs_by_session ON runs (session_id) WHERE session_id IS NOT NULL;
  CREATE INDEX runs_by_name ON runs (name, start_us, id);
  CREATE INDEX runs_by_model ON runs (model, start_us, id) WHERE model IS NOT NULL;
  CREATE INDEX runs_by_failure ON runs (start_us, id) WHERE status <> 'success';
  CREATE INDEX roots_by_start ON runs (start_us, id) WHERE is_root = 1;
  CREATE INDEX roots_by_project ON runs (project, start_us, id) WHERE is_root = 1;
  CREATE INDEX roots_by_name ON runs (name, start_us, id) WHERE is_root = 1;

  -- All are JSON: what lists show, what the payloads say, and what the posts and the patches have told.
  CREATE TABLE details (
    n INTEGER PRIMARY KEY,
    outline TEXT,
    listing TEXT,
    facts TEXT,
    outputs_usage TEXT,
    posted TEXT,
    patched TEXT
  );

  -- Four keys for each run: 4n inputs, 4n + 1 outputs, 4n + 2 events.
  CREATE TABLE payloads (n INTEGER PRIMARY KEY, patched INTEGER NOT NULL, text TEXT NOT NULL);

  CREATE TABLE attachments (
    n INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    UNIQUE (run, name)
  );

  CREATE TABLE feedback (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    run INTEGER NOT NULL,
    trace_id BLOB NOT NULL,
    created_at TEXT NOT NULL,
    key TEXT NOT NULL,
    score REAL,
    json TEXT NOT NULL,
    UNIQUE (run, id)
  );
  CREATE INDEX feedback_by_trace ON feedback (trace_id);

  CREATE TABLE tokens (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run_id BLOB NOT NULL, json TEXT NOT NULL);
  CREATE INDEX tokens_by_run ON tokens (run_id);

  -- Words are told in the form in which they are compared. What changed since its words were taken stands in unindexed.
  CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '_'"
  );
  CREATE TABLE unindexed (n INTEGER PRIMARY KEY);
  `,
];
