import { USAGE_KEYS } from '../../../domain/summary.ts';
import { WORDS_TABLE } from './database.ts';

/** Application id in the header of a store file. The bytes of the id spell `RSPN`. */
export const APPLICATION_ID = 0x5253504e;

/** Version of the file format, stored as `user_version`. Builds before the first release wrote versions 1 to 4. */
export const FORMAT_VERSION = 6;

const USAGE_COLUMNS = USAGE_KEYS.map((key) => `${key} REAL`).join(', ');

/** SQL condition for runs whose parent has not arrived. */
export const IS_WAITING = 'waits_for IS NOT NULL AND (parent IS NULL OR parent = waits_for)';

/**
 * SQL statements that create the tables. Rows in `runs` are small, because lists scan `runs`. The table `details`
 * contains the other fields, and `payloads` contains large values. A run has the same key `n` in `runs`, `details`,
 * `unindexed` and `words`.
 */
export const SCHEMA: string = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
  INSERT INTO meta VALUES ('seq', 0);

  CREATE TABLE tenants (n INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);

  CREATE TABLE traces (
    n INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    id BLOB NOT NULL,
    -- Whether a message names the trace by a trace_id.
    is_named INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL,
    root INTEGER,
    runs INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    model_calls INTEGER NOT NULL,
    end_us INTEGER,
    ${USAGE_COLUMNS},
    -- JSON: the sources of the calls.
    sources TEXT NOT NULL DEFAULT '[]',
    -- JSON: the keys of the runs that decide the summary, see DecidingRuns.
    deciding TEXT NOT NULL DEFAULT '{}',
    -- JSON: OwnFigures, if runs in several projects are in the trace.
    own TEXT,
    UNIQUE (tenant, id)
  );
  CREATE INDEX traces_by_seq ON traces (seq);

  -- The names of traces that are not their ids, see TraceNames.
  CREATE TABLE trace_names (
    tenant INTEGER NOT NULL, id BLOB NOT NULL, trace INTEGER NOT NULL, PRIMARY KEY (tenant, id)
  ) WITHOUT ROWID;
  CREATE INDEX names_by_trace ON trace_names (trace);

  -- The columns from start_us on are empty until the run is visible.
  CREATE TABLE runs (
    n INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    id BLOB NOT NULL,
    trace INTEGER NOT NULL,
    is_root INTEGER NOT NULL DEFAULT 0,
    -- The outcome of the trace in the row of its root. The thread and the user of a root are those of its trace.
    outcome TEXT,
    parent BLOB,
    -- The span of the parent, or the id of a parent that has not arrived.
    waits_for BLOB,
    span BLOB,
    -- Whether a message of the run contains a trace_id.
    is_named INTEGER NOT NULL,
    -- Whether a run below this one has usage.
    below INTEGER NOT NULL DEFAULT 0,
    -- JSON: the source, the response id, the request's fingerprint and the named run of a call.
    call TEXT,
    -- The head of the runs that record the same call, and whether the usage of this run does not count.
    same_call BLOB,
    is_repeated INTEGER NOT NULL DEFAULT 0,
    start_us INTEGER,
    end_us INTEGER,
    -- See Latencies in latencies.ts.
    latency TEXT,
    project TEXT,
    session_id TEXT,
    name TEXT,
    run_type TEXT,
    status TEXT,
    model TEXT,
    -- A sum of RunFlag.
    flags INTEGER,
    thread TEXT,
    user TEXT,
    ${USAGE_COLUMNS},
    UNIQUE (tenant, id)
  );
  CREATE INDEX runs_by_trace ON runs (trace, start_us);
  CREATE INDEX runs_without_parent ON runs (trace, start_us) WHERE parent IS NULL AND waits_for IS NULL;
  CREATE INDEX runs_by_wait ON runs (tenant, waits_for) WHERE ${IS_WAITING};
  CREATE INDEX runs_by_span ON runs (tenant, span) WHERE span IS NOT NULL;
  CREATE INDEX runs_by_start ON runs (tenant, start_us);
  CREATE INDEX runs_by_project ON runs (tenant, project, start_us);
  CREATE INDEX runs_by_session ON runs (tenant, session_id) WHERE session_id IS NOT NULL;
  CREATE INDEX runs_by_name ON runs (tenant, name, start_us);
  CREATE INDEX runs_by_model ON runs (tenant, model, start_us) WHERE model IS NOT NULL;
  CREATE INDEX runs_by_thread ON runs (tenant, thread, start_us) WHERE thread IS NOT NULL;
  CREATE INDEX runs_by_user ON runs (tenant, user, start_us) WHERE user IS NOT NULL;
  CREATE INDEX runs_by_failure ON runs (tenant, start_us) WHERE status <> 'success';
  CREATE INDEX roots_by_failure ON runs (tenant, start_us) WHERE outcome NOT IN ('success', 'pending');
  CREATE INDEX roots_by_start ON runs (tenant, start_us) WHERE is_root = 1;
  CREATE INDEX roots_by_project ON runs (tenant, project, start_us) WHERE is_root = 1;
  CREATE INDEX roots_by_name ON runs (tenant, name, start_us) WHERE is_root = 1;
  CREATE INDEX roots_by_thread ON runs (tenant, thread, start_us) WHERE is_root = 1 AND thread IS NOT NULL;
  CREATE INDEX threads_by_start ON runs (tenant, start_us, thread) WHERE is_root = 1 AND thread IS NOT NULL;

  CREATE TABLE tags (
    tenant INTEGER NOT NULL, tag TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (tenant, tag, n)
  ) WITHOUT ROWID;

  -- JSON: fields without a column, facts about the payloads, and the ages of the fields.
  CREATE TABLE details (n INTEGER PRIMARY KEY, fields TEXT NOT NULL, facts TEXT, ages TEXT NOT NULL);

  -- Four keys for each run: 4n inputs, 4n + 1 outputs, 4n + 2 events. Codec 0 is JSON text, 1 raw deflate.
  CREATE TABLE payloads (n INTEGER PRIMARY KEY, codec INTEGER NOT NULL, size INTEGER NOT NULL, data NOT NULL);

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
    trace INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    key TEXT NOT NULL,
    score REAL,
    json TEXT NOT NULL,
    UNIQUE (run, id)
  );
  CREATE INDEX feedback_by_trace ON feedback (trace);
  CREATE INDEX feedback_by_id ON feedback (id);

  -- The traces whose runs are being deleted, see HiddenKind. No query returns them.
  CREATE TABLE hidden (trace INTEGER PRIMARY KEY, kind INTEGER NOT NULL);

  -- The names of what was deleted by request. Messages for it are ignored. See NameKind.
  CREATE TABLE removed (
    n INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    id BLOB NOT NULL,
    kind INTEGER NOT NULL,
    removed_s INTEGER NOT NULL DEFAULT (unixepoch()),
    UNIQUE (tenant, id, kind)
  );

  CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    tenant TEXT NOT NULL,
    project TEXT,
    permission TEXT NOT NULL,
    name TEXT,
    created_ms INTEGER NOT NULL,
    used_ms INTEGER,
    revoked_ms INTEGER
  ) WITHOUT ROWID;

  -- Secrets of feedback tokens. The revoked ids are those of tokens, and of runs whose tokens are revoked.
  CREATE TABLE token_secrets (secret TEXT PRIMARY KEY, created_ms INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE revoked_tokens (
    tenant INTEGER NOT NULL, id BLOB NOT NULL, revoked_ms INTEGER NOT NULL, PRIMARY KEY (tenant, id)
  ) WITHOUT ROWID;

  -- Words in the form in which they are compared. Runs that have changed since they were indexed are in unindexed.
  ${WORDS_TABLE};
  CREATE TABLE unindexed (n INTEGER PRIMARY KEY);
`;
