import type { Attachment } from '../../run/record.ts';
import { isoTimestamp } from '../../run/time.ts';
import type { Feedback, FeedbackFigures, FeedbackToken } from '../feedback/feedback.ts';
import { cursorOf, type Position } from '../query/cursor.ts';
import type { GroupKey, SortKey, Statistics, StatisticsQuery } from '../query/query.ts';
import type { RunFilter } from './run-filter.ts';
import { merged } from './run-state.ts';
import type { PayloadField, ProjectSummary, RunDetails, RunStatus, TraceSummary } from './run-view.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import type { SqlValue } from './sqlite-engine.ts';
import { copyTo, type StoreOwner } from './sqlite-file.ts';
import { all, type Condition, conditionsOf, defineFilterFunctions } from './sqlite-filter.ts';
import { idBytes, idText } from './sqlite-id.ts';
import {
  joined,
  LISTED_COLUMNS,
  type ListedRow,
  OUTLINED_COLUMNS,
  type OutlinedRow,
  outlineText,
  piecesOf,
  summaryText,
} from './sqlite-row.ts';
import { payloadKey, usageIn } from './sqlite-run.ts';
import { SqliteSearch } from './sqlite-search.ts';
import { COUNTS_USAGE } from './sqlite-trace.ts';
import { StatisticsTally } from './statistics.ts';
import type { StoreChange } from './store.ts';
import { PAYLOAD_FIELDS } from './told-run.ts';

/** A page of a list as it is asked for. */
export interface SqlitePageQuery {
  readonly filter: RunFilter;
  readonly sort: SortKey;
  readonly order: 'ascending' | 'descending';
  readonly after: Position | undefined;
  readonly limit: number;
}

/** Items as arrays of JSON, and where the next page begins. */
export interface SqlitePage {
  readonly pieces: readonly string[];
  readonly next?: string;
}

/** All that a store is asked, by a connection that only reads. */
export class SqliteReader {
  readonly #connection: SqliteConnection;
  readonly #search: SqliteSearch;
  /** Who has the store open to write, if anybody has. */
  readonly owner: () => StoreOwner | undefined;

  constructor(connection: SqliteConnection, owner: () => StoreOwner | undefined) {
    this.#connection = connection;
    this.owner = owner;
    this.#search = new SqliteSearch(connection);
    defineFilterFunctions(connection);
  }

  runs(filter: RunFilter, limit: number | undefined): string[] {
    const { sql, values } = all(this.#conditionsOf(filter));
    const rows = this.#connection.all<{ n: number }>(
      `SELECT n FROM runs WHERE ${sql} ORDER BY dotted_order, n LIMIT ?`,
      ...values,
      limit ?? -1,
    );
    return piecesOf(this.#records(rows));
  }

  attachment(runId: string, name: string): Attachment | undefined {
    const row = this.#connection.one<{ mime_type: string; bytes: Uint8Array }>(
      'SELECT mime_type, bytes FROM attachments WHERE run = (SELECT n FROM runs WHERE id = ?) AND name = ?',
      idBytes(runId),
      name,
    );
    return row && { name, mimeType: row.mime_type, bytes: row.bytes };
  }

  projects(): ProjectSummary[] {
    const rows = this.#connection.all<{ project: string; traces: number; last_us: number }>(
      'SELECT project, count(*) AS traces, max(start_us) AS last_us FROM runs WHERE is_root = 1 GROUP BY project',
    );
    return rows
      .map(({ project, traces, last_us }) => ({ name: project, traces, last_start_time: isoTimestamp(last_us) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  traces(query: SqlitePageQuery): SqlitePage {
    const { search, ...filter } = query.filter;
    const conditions = conditionsOf(this.#connection, { ...filter, search }, 'traces.total_tokens');
    if (search !== undefined) {
      const { sql, values } = this.#search.condition(search);
      const roots = `SELECT root FROM traces WHERE id IN (SELECT trace_id FROM runs WHERE ${sql})`;
      conditions.push({ sql: `runs.n IN (${roots})`, values });
    }
    const from = 'runs JOIN traces ON traces.id = runs.trace_id';
    return this.#page(query, from, [{ sql: 'runs.is_root = 1', values: [] }, ...conditions], TRACE_SORTS, (n) => {
      const row = this.#connection.one<ListedRow>(LISTED, n) as ListedRow;
      return joined(summaryText(row), JSON.stringify({ trace: this.#wholeOf(row.trace_id) }));
    });
  }

  list(query: SqlitePageQuery): SqlitePage {
    return this.#page(query, 'runs', this.#conditionsOf(query.filter), RUN_SORTS, (n) =>
      summaryText(this.#connection.one<ListedRow>(LISTED, n) as ListedRow),
    );
  }

  outline(traceId: string): string[] {
    const rows = this.#connection.each<OutlinedRow>(OUTLINED, idBytes(traceId));
    return piecesOf(mapped(rows, outlineText));
  }

  details(runId: string): RunDetails | undefined {
    const row = this.#connection.one<ListedRow & { dotted_order: string } & Layers>(DETAILED, idBytes(runId));
    if (row === undefined) return undefined;
    const { error, extra } = merged(JSON.parse(row.posted ?? '{}'), JSON.parse(row.patched ?? '{}'));
    const sizes = PAYLOAD_FIELDS.map((field) => [field, this.#payloadSizeBytes(row.n, field)] as const);
    const attachments = this.#attachments(row.n);
    const feedback = this.#connection.all<{ json: string }>(
      'SELECT json FROM feedback WHERE run = ? ORDER BY n',
      row.n,
    );
    return {
      ...JSON.parse(summaryText(row)),
      dotted_order: row.dotted_order,
      payload_sizes: Object.fromEntries(sizes.filter(([, sizeBytes]) => sizeBytes !== undefined)),
      ...(error === undefined || error === '' ? {} : { error }),
      ...(extra === undefined ? {} : { extra }),
      ...(attachments.length === 0 ? {} : { attachments }),
      ...(feedback.length === 0 ? {} : { feedback: feedback.map(({ json }) => JSON.parse(json)) }),
    };
  }

  payload(runId: string, field: PayloadField): string | undefined {
    const n = this.#connection.one<{ n: number }>('SELECT n FROM runs WHERE id = ?', idBytes(runId))?.n;
    return n === undefined ? undefined : this.#payload(n, field);
  }

  statistics(filter: RunFilter, query: StatisticsQuery): Statistics {
    const { sql, values } = all(this.#conditionsOf(filter));
    const range = this.#connection.one<{ first: number | null; last: number | null }>(
      `SELECT min(start_us) AS first, max(start_us) AS last FROM runs WHERE ${sql}`,
      ...values,
    );
    const { first: firstUs = null, last: lastUs = null } = range ?? {};
    const tally = new StatisticsTally(query, firstUs === null || lastUs === null ? undefined : { firstUs, lastUs });
    const rows = this.#connection.each<CountedRow>(
      `SELECT start_us, latency_us, status, ${GROUPS[query.groupBy ?? 'name']} AS grp,
        ${COUNTS_USAGE} AS counts, input_tokens, output_tokens, total_tokens, total_cost FROM runs WHERE ${sql}`,
      ...values,
    );
    for (const row of rows) {
      tally.add({
        startUs: row.start_us,
        latencyUs: row.latency_us ?? undefined,
        status: row.status,
        group: row.grp ?? undefined,
        usage: row.counts === 1 ? usageIn(row) : undefined,
      });
    }
    return tally.statistics();
  }

  changes(afterSeq: number, limit: number): StoreChange {
    // One more than asked for says whether there are others.
    const later = this.#connection.all<{ id: Uint8Array; seq: number }>(CHANGED, afterSeq, -1, limit + 1);
    const last = later[limit - 1]?.seq;
    if (later.length <= limit || last === undefined) {
      return { seq: this.#seq(), traceIds: later.map(({ id }) => idText(id)) };
    }
    // Traces of one change go together, or those that did not fit would be passed over.
    const whole = this.#connection.all<{ id: Uint8Array }>(CHANGED, afterSeq, last, -1);
    return { seq: last, traceIds: whole.map(({ id }) => idText(id)) };
  }

  feedback(traceId: string): Feedback[] {
    const sql = 'SELECT json FROM feedback WHERE trace_id = ? ORDER BY created_at, n';
    return this.#connection.all<{ json: string }>(sql, idBytes(traceId)).map(({ json }) => JSON.parse(json));
  }

  token(id: string): FeedbackToken | undefined {
    const row = this.#connection.one<{ json: string }>('SELECT json FROM tokens WHERE id = ?', id);
    return row && JSON.parse(row.json);
  }

  tokens(runId: string): FeedbackToken[] {
    const sql = 'SELECT json FROM tokens WHERE run_id = ? ORDER BY n';
    return this.#connection.all<{ json: string }>(sql, idBytes(runId)).map(({ json }) => JSON.parse(json));
  }

  backup(path: string): void {
    copyTo(this.#connection, path);
  }

  #conditionsOf(filter: RunFilter): Condition[] {
    const conditions = conditionsOf(this.#connection, filter, 'runs.total_tokens');
    return filter.search === undefined ? conditions : [...conditions, this.#search.condition(filter.search)];
  }

  /** The keys come first, so that only of what is shown the rest is read. */
  #page(
    { sort, order, after, limit }: SqlitePageQuery,
    from: string,
    conditions: readonly Condition[],
    sorts: Readonly<Record<SortKey, string>>,
    textOf: (n: number) => string,
  ): SqlitePage {
    const value = sorts[sort];
    const way = order === 'descending' ? 'DESC' : 'ASC';
    const { sql, values } = all(after === undefined ? conditions : [...conditions, behind(after, value, order)]);
    // A start is never absent, so that the index can give them in order.
    const orderBy = `${sort === 'start_time' ? '' : `${value} IS NULL, `}${value} ${way}, runs.id ${way}`;
    const rows = this.#connection.all<{ n: number; id: Uint8Array; value: number | null }>(
      `SELECT runs.n AS n, runs.id AS id, ${value} AS value FROM ${from} WHERE ${sql} ORDER BY ${orderBy} LIMIT ?`,
      ...values,
      limit + 1,
    );
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    const pieces = piecesOf(mapped(shown, ({ n }) => textOf(n)));
    return rows.length > limit && last !== undefined
      ? { pieces, next: cursorOf({ value: last.value, id: idText(last.id) }) }
      : { pieces };
  }

  *#records(rows: readonly { n: number }[]): Iterable<string> {
    for (const { n } of rows) {
      const row = this.#connection.one<Placed & Layers>(RECORDED, n) as Placed & Layers;
      const fields = merged(JSON.parse(row.posted ?? '{}'), JSON.parse(row.patched ?? '{}'));
      const attachments = this.#attachments(n);
      const own = {
        ...fields,
        id: idText(row.id),
        trace_id: idText(row.trace_id),
        dotted_order: row.dotted_order,
        ...(attachments.length === 0 ? {} : { attachments }),
      };
      const payloads = PAYLOAD_FIELDS.map((field) => {
        const text = this.#payload(n, field) ?? (field === 'inputs' ? '{}' : undefined);
        return text === undefined ? '' : `{"${field}":${text}}`;
      });
      yield joined(JSON.stringify(own), ...payloads);
    }
  }

  #wholeOf(traceId: Uint8Array): TraceSummary['trace'] {
    const row = this.#connection.one<Record<string, SqlValue>>('SELECT * FROM traces WHERE id = ?', traceId) ?? {};
    const usage = usageIn(row);
    const feedback = this.#connection
      .all<{ key: string; count: number; score: number | null }>(FEEDBACK_FIGURES, traceId)
      .map(
        ({ key, count, score }): FeedbackFigures => ({
          key,
          count,
          ...(score === null ? {} : { average_score: score }),
        }),
      );
    return {
      runs: row.runs as number,
      pending: row.pending as number,
      errors: row.errors as number,
      ...(row.end_us === null ? {} : { end_time: isoTimestamp(row.end_us as number) }),
      ...(usage === undefined ? {} : { usage }),
      ...(feedback.length === 0 ? {} : { feedback }),
    };
  }

  #attachments(n: number): { name: string; mime_type: string; size: number }[] {
    const sql = 'SELECT name, mime_type, size FROM attachments WHERE run = ? ORDER BY n';
    return this.#connection.all<{ name: string; mime_type: string; size: number }>(sql, n).map((row) => ({ ...row }));
  }

  #payload(n: number, field: PayloadField): string | undefined {
    return this.#connection.one<{ text: string }>('SELECT text FROM payloads WHERE n = ?', payloadKey(n, field))?.text;
  }

  #payloadSizeBytes(n: number, field: PayloadField): number | undefined {
    const sql = 'SELECT octet_length(text) AS size FROM payloads WHERE n = ?';
    return this.#connection.one<{ size: number }>(sql, payloadKey(n, field))?.size;
  }

  #seq(): number {
    return this.#connection.number("SELECT value FROM meta WHERE key = 'seq'");
  }
}

interface Layers {
  posted: string | null;
  patched: string | null;
}

interface Placed {
  id: Uint8Array;
  trace_id: Uint8Array;
  dotted_order: string;
}

interface CountedRow extends Record<string, SqlValue> {
  start_us: number;
  latency_us: number | null;
  status: RunStatus;
  grp: string | null;
  counts: number;
}

const FROM_DETAILS = 'FROM runs JOIN details USING (n)';
const LISTED = `SELECT ${LISTED_COLUMNS} ${FROM_DETAILS} WHERE runs.n = ?`;
const OUTLINED = `SELECT ${OUTLINED_COLUMNS} ${FROM_DETAILS} WHERE trace_id = ? AND start_us IS NOT NULL ORDER BY dotted_order`;
const DETAILED = `SELECT ${LISTED_COLUMNS}, dotted_order, posted, patched ${FROM_DETAILS} WHERE id = ? AND start_us IS NOT NULL`;
const RECORDED = `SELECT id, trace_id, dotted_order, posted, patched ${FROM_DETAILS} WHERE runs.n = ?`;
const CHANGED = `SELECT id, seq FROM traces WHERE seq > ?1 AND (?2 < 0 OR seq <= ?2) ORDER BY seq, n LIMIT ?3`;
const FEEDBACK_FIGURES = `SELECT key, count(*) AS count, avg(score) AS score
  FROM feedback JOIN runs ON runs.n = feedback.run
  WHERE feedback.trace_id = ? AND runs.start_us IS NOT NULL GROUP BY key ORDER BY key`;

const RUN_SORTS: Readonly<Record<SortKey, string>> = {
  start_time: 'runs.start_us',
  latency: 'runs.latency_us',
  tokens: 'runs.total_tokens',
  cost: 'runs.total_cost',
};
const TRACE_SORTS: Readonly<Record<SortKey, string>> = {
  ...RUN_SORTS,
  tokens: 'traces.total_tokens',
  cost: 'traces.total_cost',
};
const GROUPS: Readonly<Record<GroupKey, string>> = {
  name: 'name',
  model: 'model',
  run_type: 'run_type',
  project: 'project',
  status: 'status',
};

/** What stands behind a position. */
function behind({ value, id }: Position, column: string, order: SqlitePageQuery['order']): Condition {
  const sign = order === 'descending' ? '<' : '>';
  if (value === null) return { sql: `${column} IS NULL AND runs.id ${sign} ?`, values: [idBytes(id)] };
  const sql = `(${column}, runs.id) ${sign} (?, ?)`;
  return {
    sql: column === RUN_SORTS.start_time ? sql : `${sql} OR ${column} IS NULL`,
    values: [value, idBytes(id)],
  };
}

function* mapped<From, To>(items: Iterable<From>, map: (item: From) => To): Iterable<To> {
  for (const item of items) yield map(item);
}
