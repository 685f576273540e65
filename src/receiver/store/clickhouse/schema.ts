import { RunspanError } from '../../../base/errors.ts';
import { UNSPACED } from '../../domain/query/search-words.ts';
import { USAGE_KEYS } from '../../domain/summary.ts';
import { type ClickHouse, sql } from './connection.ts';
import { TOMBSTONE } from './messages.ts';

/** SQL for a message's searchable text: its fields, inputs and outputs. */
const WORDS = 'concat(searched, payloads[1], payloads[2])';

/**
 * SQL for a message's searchable text, in lower case and without accents (see `wordsOf`). ClickHouse uses the text
 * index only for conditions that contain exactly this expression.
 */
export const SEARCHED_TEXT: string = `if(isValidASCII(${WORDS}), lower(${WORDS}),
    lowerUTF8(replaceRegexpAll(normalizeUTF8NFKD(${WORDS}), '\\p{M}+', '')))`;

/** SQL for the characters of scripts without spaces in a message, also if other text separates them. */
const UNSPACED_TEXT = `if(isValidASCII(${WORDS}), '',
    replaceRegexpAll(normalizeUTF8NFKD(${WORDS}), '([^${UNSPACED}]|[\\\\pM\\\\pP\\\\pS])+', ''))`;

/** SQL for these characters, and all pairs of neighbours among them. ClickHouse uses the text index as for `SEARCHED_TEXT`. */
export const UNSPACED_TOKENS: string = `arrayConcat(ngrams(${UNSPACED_TEXT}, 1), ngrams(${UNSPACED_TEXT}, 2))`;

/**
 * Posts, patches and tombstones, in order of arrival. The `kind` of a post or patch is its `Age`. A message that
 * arrives again is stored again, because an equal message may follow a different one. `group_id` is the name with which the
 * trace was created. A `trace_id` in the fields is that of the group. Derivations read all columns but the payloads.
 *
 * The sort key converts UUIDs to numbers, because ClickHouse sorts UUIDs by their second half and version 7 UUIDs have
 * their timestamp in the first half. Granules are small, because most queries read few traces and ClickHouse reads
 * whole granules.
 */
const MESSAGES = `CREATE TABLE IF NOT EXISTS messages {cluster} (
  tenant LowCardinality(String),
  day Date,
  group_id UUID,
  id UUID,
  kind UInt8,
  received_us Int64 CODEC(Delta, ZSTD(1)),
  fields String CODEC(ZSTD(1)),
  searched String CODEC(ZSTD(3)),
  facts String CODEC(ZSTD(3)),
  -- Inputs, outputs, events. One column compresses better, because these texts repeat each other.
  payloads Array(String) CODEC(ZSTD(3)),
  inputs String ALIAS payloads[1],
  outputs String ALIAS payloads[2],
  events String ALIAS payloads[3],
  INDEX by_time received_us TYPE minmax GRANULARITY 1,
  INDEX by_word ${SEARCHED_TEXT} TYPE text(tokenizer = splitByNonAlpha, posting_list_codec = 'bitpacking'),
  INDEX by_character ${UNSPACED_TOKENS} TYPE text(tokenizer = array, posting_list_codec = 'bitpacking')
) ENGINE = {replicated}MergeTree
PARTITION BY day ORDER BY (tenant, toUInt128(group_id), toUInt128(id), kind, received_us) SETTINGS index_granularity = 512`;

function usageColumns(prefix: string, type: string): string {
  return USAGE_KEYS.map((key) => `${prefix}${key} ${type}`).join(',\n  ');
}

/**
 * One row per visible run, derived from all messages of its group. The row with the highest version is valid. A
 * derivation inserts the rows that have changed, and the rows of roots. Deleted rows with the version 0 only tell that a
 * trace has changed, see ClickHouseChanges.
 *
 * After 6 hours without changes, ClickHouse merges a day into one part. `FINAL` costs nothing for a single part.
 */
const RUNS = `CREATE TABLE IF NOT EXISTS runs {cluster} (
  tenant LowCardinality(String),
  day Date,
  start_us Int64 CODEC(Delta, LZ4),
  id UUID,
  -- The group that contains the trace's messages.
  group_id UUID,
  -- See versionOf.
  version UInt64,
  -- Time of the latest message of the group.
  seen_us Int64 CODEC(Delta, ZSTD(1)),
  -- Time of the insert. Receivers find changed traces by it.
  derived_us Int64 CODEC(Delta, ZSTD(1)),
  -- Fingerprint of the other columns.
  hash UInt64,
  is_deleted UInt8,
  n Int64 CODEC(Delta, ZSTD(1)),
  trace UUID,
  is_root UInt8,
  -- Whether a framework has added the run for itself.
  internal UInt8,
  -- The outcome of the trace in the row of its root. The thread and the user of a root are those of its trace.
  outcome LowCardinality(Nullable(String)),
  latency_us Nullable(Int64) CODEC(ZSTD(1)),
  -- The kind and the latency of the run, see figuresCode.
  figures_code UInt16,
  project LowCardinality(String),
  session_id Nullable(String),
  name LowCardinality(String),
  run_type LowCardinality(String),
  status LowCardinality(String),
  model LowCardinality(Nullable(String)),
  thread Nullable(String) CODEC(ZSTD(1)),
  user Nullable(String) CODEC(ZSTD(1)),
  tags Array(LowCardinality(String)),
  metadata Map(LowCardinality(String), String),
  -- Text of the error for filters: see errorText.
  error String CODEC(ZSTD(1)),
  ${usageColumns('', 'Nullable(Float64)')},
  -- What the run adds to the totals of its trace.
  ${usageColumns('counted_', 'Float64')},
  -- Totals of the trace, in the row of its root.
  ${usageColumns('trace_', 'Nullable(Float64)')},
  -- JSON of the run's summary without its ids and previews, of its previews, and of the totals of the trace and what
  -- differs from the summary, in its root.
  summary String CODEC(ZSTD(1)),
  previews String CODEC(ZSTD(1)),
  totals String CODEC(ZSTD(1)),
  -- Whether runs in other projects are in the trace. Then the next columns are the figures of the runs in the project of the
  -- root, for keys that are limited to it.
  is_shared UInt8,
  own_outcome LowCardinality(Nullable(String)),
  own_figures_code UInt16,
  ${usageColumns('own_trace_', 'Nullable(Float64)')},
  own_totals String CODEC(ZSTD(1)),
  -- The dotted_order, or an empty string if queries derive it: see storedOrders.
  dotted_order String CODEC(ZSTD(1)),
  -- JSON of the CostSource of the run.
  cost_source LowCardinality(String),
  INDEX by_id id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_seen seen_us TYPE minmax GRANULARITY 1,
  INDEX by_derived derived_us TYPE minmax GRANULARITY 1,
  INDEX by_trace trace TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_thread thread TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_user user TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_tag tags TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_metadata mapValues(metadata) TYPE bloom_filter(0.01) GRANULARITY 1
) ENGINE = {replicated}ReplacingMergeTree(version, is_deleted)
PARTITION BY day ORDER BY (tenant, start_us, id)
SETTINGS index_granularity = 1024, min_age_to_force_merge_seconds = 21600, min_age_to_force_merge_on_partition_only = 1`;

/**
 * The groups that names mean: the ids of runs, and the names of traces, which are the keys of groups, `trace_id`s, and
 * OpenTelemetry trace ids. Of several groups, a name means the one that has had it first. `is_named` tells whether
 * messages with the name contain the `trace_id` of the group. Rows with other values of `is_trace` are those of joins.ts.
 */
const RUN_IDS = `CREATE TABLE IF NOT EXISTS run_ids {cluster} (
  tenant LowCardinality(String),
  id UUID,
  is_trace UInt8,
  group_id UUID,
  day SimpleAggregateFunction(min, Date),
  added_us SimpleAggregateFunction(min, Int64),
  is_named SimpleAggregateFunction(max, UInt8)
) ENGINE = {replicated}AggregatingMergeTree PARTITION BY toYYYYMM(day)
ORDER BY (tenant, toUInt128(id), is_trace, toUInt128(group_id)) SETTINGS index_granularity = 512`;

/** SQL for the UUID in a text, or the id of the group if there is none. */
function uuidIn(text: string): string {
  return `ifNull(toUUIDOrNull(${text}), group_id)`;
}

const OTEL_TRACE_ID = "JSONExtractString(searched, 'extra', 'metadata', 'otel', 'trace_id')";

const RUN_IDS_VIEW = `CREATE MATERIALIZED VIEW IF NOT EXISTS run_ids_view {cluster} TO run_ids AS
SELECT tenant, name.2 AS id, name.1 AS is_trace, group_id, min(day) AS day, min(received_us) AS added_us, max(named) AS is_named
FROM (SELECT tenant, group_id, day, received_us, JSONHas(fields, 'trace_id') AS named, arrayJoin(arrayDistinct([
    (0, id), (1, group_id), (1, ${uuidIn("JSONExtractString(fields, 'trace_id')")}),
    (1, ${uuidIn(`extract(${OTEL_TRACE_ID}, '^[0-9a-fA-F]{32}$')`)})])) AS name
  FROM messages WHERE kind < ${TOMBSTONE}) GROUP BY tenant, id, is_trace, group_id`;

/**
 * Times that receivers share. The latest is valid. `swept`: until when all messages have been derived. `retention`: when a
 * receiver last began to delete old traces. `age`: the retention time. `written`: when a receiver last tested a write.
 */
const TIMES = `CREATE TABLE IF NOT EXISTS times {cluster} (
  name String,
  us Int64
) ENGINE = {replicated}ReplacingMergeTree(us) ORDER BY name`;

const ATTACHMENTS = `CREATE TABLE IF NOT EXISTS attachments {cluster} (
  tenant LowCardinality(String),
  day Date,
  run UUID,
  name String,
  mime_type String,
  size UInt64,
  -- Position of this chunk in the attachment, and its bytes in base64.
  chunk UInt32,
  data String CODEC(ZSTD(1)),
  received_us Int64
) ENGINE = {replicated}ReplacingMergeTree(received_us) PARTITION BY day
ORDER BY (tenant, run, name, chunk)`;

const FEEDBACK = `CREATE TABLE IF NOT EXISTS feedback {cluster} (
  tenant LowCardinality(String),
  group_id UUID,
  run UUID,
  id String,
  key LowCardinality(String),
  score Nullable(Float64),
  -- Texts for filters: see feedbackTexts.
  texts Array(String),
  json String CODEC(ZSTD(1)),
  created_at String,
  n Int64,
  changed_us Int64
) ENGINE = {replicated}ReplacingMergeTree(changed_us) PARTITION BY toYYYYMM(toDateTime(intDiv(n, 1000000)))
ORDER BY (tenant, group_id, run, id)`;

const KEYS = `CREATE TABLE IF NOT EXISTS keys {cluster} (
  id String,
  json String,
  is_revoked UInt8
) ENGINE = {replicated}ReplacingMergeTree(is_revoked) ORDER BY id`;

const KEY_USES = `CREATE TABLE IF NOT EXISTS key_uses {cluster} (
  id String,
  used_ms Int64
) ENGINE = {replicated}ReplacingMergeTree(used_ms) ORDER BY id`;

const TOKEN_SECRETS = `CREATE TABLE IF NOT EXISTS token_secrets {cluster} (
  secret String,
  created_ms Int64
) ENGINE = {replicated}ReplacingMergeTree ORDER BY secret`;

const REVOKED_TOKENS = `CREATE TABLE IF NOT EXISTS revoked_tokens {cluster} (
  tenant LowCardinality(String),
  id UUID,
  revoked_ms Int64
) ENGINE = {replicated}ReplacingMergeTree(revoked_ms) ORDER BY (tenant, id)`;

/** Deletions by request. The row that is not open is valid. */
const DELETIONS = `CREATE TABLE IF NOT EXISTS deletions {cluster} (
  id UUID,
  at_ms Int64,
  is_open UInt8,
  json String,
  version UInt8 MATERIALIZED 1 - is_open
) ENGINE = {replicated}ReplacingMergeTree(version) ORDER BY id
TTL toDateTime(intDiv(at_ms, 1000)) + INTERVAL 31 DAY`;

/** Number of the first migration. Databases with earlier numbers were created by builds before the first release. */
const FIRST_VERSION = 8;

/** The SQL statements of each migration, in order. Released migrations never change. */
const MIGRATIONS: readonly (readonly string[])[] = [
  [
    MESSAGES,
    RUNS,
    RUN_IDS,
    RUN_IDS_VIEW,
    TIMES,
    ATTACHMENTS,
    FEEDBACK,
    KEYS,
    KEY_USES,
    TOKEN_SECRETS,
    REVOKED_TOKENS,
    DELETIONS,
  ],
];

const VERSION: number = FIRST_VERSION - 1 + MIGRATIONS.length;

const MIGRATIONS_TABLE = `CREATE TABLE IF NOT EXISTS migrations {cluster} (
  version UInt32,
  applied_at DateTime DEFAULT now()
) ENGINE = {replicated}MergeTree ORDER BY version`;

/** Fills in a statement's placeholders, either for one server or for all servers of a cluster. */
function statementFor(statement: string, cluster: string | undefined): string {
  const name = cluster?.replaceAll(/['\\]/g, '\\$&');
  return statement
    .replace(' {cluster}', name === undefined ? '' : ` ON CLUSTER '${name}'`)
    .replace('{replicated}', name === undefined ? '' : 'Replicated');
}

export function statements(cluster: string | undefined, version: number = FIRST_VERSION - 1): string[] {
  const migrations = MIGRATIONS.slice(version - FIRST_VERSION + 1).flatMap((own, at) => [
    ...own,
    `INSERT INTO migrations (version) VALUES (${version + at + 1})`,
  ]);
  return [MIGRATIONS_TABLE, ...migrations].map((statement) => statementFor(statement, cluster));
}

/** Applies the pending migrations. Returns the number of applied migrations. */
export async function migrate(db: ClickHouse, cluster?: string): Promise<number> {
  await checkServer(db);
  await db.command(sql(statementFor(MIGRATIONS_TABLE, cluster)));
  const version = (await schemaVersion(db)) ?? FIRST_VERSION - 1;
  for (const statement of statements(cluster, version)) await db.command(sql(statement));
  return VERSION - version;
}

/** Returns undefined if no migration has been applied. */
async function schemaVersion(db: ClickHouse): Promise<number | undefined> {
  const [row] = await db.rows<{ version: number }>(sql('SELECT max(version) AS version FROM migrations'));
  const version = row?.version || undefined;
  if (version === undefined || version >= FIRST_VERSION) return version;
  throw new RunspanError(
    'RUNSPAN_STORE_INVALID',
    'The database was created by a build of runspan before its first release: use a new database',
  );
}

/** Rejects if ClickHouse is older than 26.4. Its text indexes cannot find parts of words. */
async function checkServer(db: ClickHouse): Promise<void> {
  const [row] = await db.rows<{ text: string }>(sql('SELECT version() AS text'));
  const [year = 0, month = 0] = (row?.text ?? '').split('.').map(Number);
  if (year * 100 + month >= 2604) return;
  throw new RunspanError('RUNSPAN_STORE_INVALID', `ClickHouse has version ${row?.text}, and 26.4 or later is required`);
}

/** Rejects with a RunspanError if the database's schema is older or newer than this version of runspan expects. */
export async function checkSchema(db: ClickHouse): Promise<void> {
  const tables = await db.rows(
    sql("SELECT 1 FROM system.tables WHERE database = currentDatabase() AND name = 'migrations'"),
  );
  const version = (tables.length === 0 ? undefined : await schemaVersion(db)) ?? FIRST_VERSION - 1;
  if (version === VERSION) return;
  throw new RunspanError(
    'RUNSPAN_STORE_INVALID',
    version > VERSION
      ? `The database was migrated by a later version of runspan: its schema has version ${version}, this version of runspan needs ${VERSION}`
      : `The database lacks tables that this version of runspan needs: run \`runspan store migrate\``,
  );
}
