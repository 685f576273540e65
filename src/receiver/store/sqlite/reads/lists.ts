import { defined } from '../../../../payload/fields.ts';
import { comparable } from '../../../domain/comparable.ts';
import { firstPage, PAGE_ITEMS, positionOf } from '../../../domain/query/cursor.ts';
import type { ListPage, ListQuery, SortKey, Suggestion, SuggestionQuery } from '../../../domain/query/query.ts';
import type { RunOutline, RunSummary } from '../../../domain/run-view.ts';
import { SUGGESTED_RUNS_MAX, suggestedMetadata, suggestionsOf } from '../../../domain/statistics/suggestions.ts';
import {
  factsIn,
  outlineOfSummary,
  type PayloadFacts,
  previewsIn,
  summaryOf,
  toolsIn,
} from '../../../domain/summary.ts';
import type { Parsed } from '../../../filter/run-filter.ts';
import { all, type Sql } from '../../../filter/sql.ts';
import { idText, type Row, type SqliteConnection, type SqlValue } from '../file/database.ts';
import { parsedPayloads } from '../payloads.ts';
import { countedUsageIn, rowFields, rowUsage, runAt, type SelectedRun, SHOWN_ID } from '../run-row.ts';

export type Condition = Sql<SqlValue>;

/** Compares `session_id` only if the project is an id, because SQLite uses no index for a condition on two columns. */
export function ofProject(
  connection: SqliteConnection,
  tenant: number,
  project: string,
  runs: string = 'runs',
): Condition {
  return isSessionId(connection, tenant, project)
    ? { sql: `${runs}.project = ? OR ${runs}.session_id = ?`, params: [project, project] }
    : { sql: `${runs}.project = ?`, params: [project] };
}

export function isSessionId(connection: SqliteConnection, tenant: number, text: string): boolean {
  const sql = 'SELECT 1 FROM runs WHERE tenant = ? AND session_id = ? AND session_id <> project LIMIT 1';
  return connection.one(sql, tenant, text) !== undefined;
}

/** Selects the keys of the traces that clients mean by ids: a name of the trace, or else the id in answers. */
export function tracesWith(tenant: number, ids: readonly string[]): Condition {
  const named = (table: string, n: string): string =>
    `(SELECT ${n} FROM ${table} WHERE tenant = ${tenant} AND id = unhex(value))`;
  const shown = `(SELECT traces.n FROM runs JOIN traces ON traces.n = runs.trace
    WHERE runs.tenant = ${tenant} AND runs.id = unhex(value) AND ${SHOWN_ID} = runs.id)`;
  const found = `coalesce(${named('traces', 'n')}, ${named('trace_names', 'trace')}, ${shown})`;
  const sql = `SELECT n FROM (SELECT ${found} AS n FROM json_each(?)) WHERE n IS NOT NULL`;
  return { sql, params: [JSON.stringify(ids.map((id) => id.replaceAll('-', '')))] };
}

/** Selects the runs of these traces, see `tracesWith`. */
export function ofTraces(tenant: number, ids: readonly string[], runs: string = 'runs'): Condition {
  const { sql, params } = tracesWith(tenant, ids);
  return { sql: `${runs}.trace IN (${sql})`, params };
}

/** Leaves out the runs of traces that are being deleted, also in the first moment. Mostly, there are none. */
export function isKept(runs: string): Condition {
  return { sql: `${runs}.trace NOT IN (SELECT trace FROM hidden)`, params: [] };
}

/** SQL expression for the latency of a run, or null if the run has not ended. */
export function latencyUs(runs: string): string {
  return `max(0, ${runs}.end_us - ${runs}.start_us)`;
}

export const RUN_SORTS: Readonly<Record<SortKey, string>> = {
  start_time: 'runs.start_us',
  latency: latencyUs('runs'),
  tokens: 'runs.total_tokens',
  cost: 'runs.total_cost',
};

export function traceSorts(isLimited: boolean): Readonly<Record<SortKey, string>> {
  return { ...RUN_SORTS, tokens: figureSql('total_tokens', isLimited), cost: figureSql('total_cost', isLimited) };
}

/** SQL expression for a figure of a trace, to a key that may be limited to the project of the root. */
export function figureSql(column: string, isLimited: boolean): string {
  return isLimited ? `iif(traces.own IS NULL, traces.${column}, traces.own ->> '$.${column}')` : `traces.${column}`;
}

/** SQL expression for the outcome of the trace if a run is its root, otherwise null. */
export function outcomeSql(runs: string, isLimited: boolean): string {
  const own = `(SELECT coalesce(own ->> '$.outcome', ${runs}.outcome) FROM traces WHERE n = ${runs}.trace)`;
  return isLimited ? `iif(${runs}.outcome IS NULL, NULL, ${own})` : `${runs}.outcome`;
}

/** Reads a page of rows. First selects and sorts only the keys, then reads the other columns. */
export function rowsOfPage(
  connection: SqliteConnection,
  { sort = 'start_time', order = 'descending', cursor, limit = PAGE_ITEMS }: Parsed<ListQuery>,
  from: string,
  conditions: readonly Condition[],
  sorts: Readonly<Record<SortKey, string>>,
): ListPage<SelectedRun> {
  const value = sorts[sort];
  const direction = order === 'descending' ? 'DESC' : 'ASC';
  const { sql, params } = all(cursor === undefined ? conditions : [...conditions, following(cursor, value, order)]);
  // The start time of a visible run is never null. Without `IS NULL`, the index returns the rows in order.
  const orderBy = `${sort === 'start_time' ? '' : `${value} IS NULL, `}${value} ${direction}, runs.n ${direction}`;
  const keys = connection.all<{ n: number; value: number | null }>(
    `SELECT runs.n AS n, ${value} AS value FROM ${from} WHERE ${sql} ORDER BY ${orderBy} LIMIT ?`,
    ...params,
    limit + 1,
  );
  const { items: shown, ...next } = firstPage(keys, limit, (key) => key);
  return { items: shown.flatMap(({ n }) => runAt(connection, n) ?? []), ...next };
}

function following(cursor: string, column: string, order: ListQuery['order']): Condition {
  const { value, n } = positionOf(cursor);
  const sign = order === 'descending' ? '<' : '>';
  if (value === null) return { sql: `${column} IS NULL AND runs.n ${sign} ?`, params: [n] };
  const sql = `(${column}, runs.n) ${sign} (?, ?)`;
  return { sql: column === RUN_SORTS.start_time ? sql : `${sql} OR ${column} IS NULL`, params: [value, n] };
}

/** Returns a run as lists show it. Only previews of large payloads are stored. */
export function summaryIn(connection: SqliteConnection, row: SelectedRun): RunSummary {
  const facts = storedFactsIn(row);
  const fields = (['inputs', 'outputs'] as const).filter((field) => facts[`${field}_preview`] === undefined);
  const payloads = parsedPayloads(connection, row.n, fields);
  return summaryWith(row, { ...facts, ...previewsIn({ ...payloads, run_type: row.run_type ?? '' }) });
}

export function outlineIn(row: SelectedRun): RunOutline {
  const facts = storedFactsIn(row);
  const summary = summaryWith(row, facts);
  return outlineOfSummary(summary, toolsIn(summary, facts));
}

function storedFactsIn({ facts }: SelectedRun): PayloadFacts {
  return facts === null ? {} : factsIn(JSON.parse(facts));
}

function summaryWith(row: SelectedRun, { outputs_usage: __, ...facts }: PayloadFacts): RunSummary {
  // Listed runs are visible.
  const unpriced = summaryOf(idText(row.id), idText(row.trace_id), rowFields(row), facts) as RunSummary;
  const { usage: _, ...summary } = unpriced;
  const usage = rowUsage(row);
  const sameCall = row.same_call && { same_call_as: idText(row.same_call) };
  const shown = defined({ thread: row.thread ?? undefined, user: row.user ?? undefined });
  const isUncounted = usage !== undefined && countedUsageIn(row) === undefined;
  return { ...summary, ...shown, ...(usage && { usage }), ...sameCall, ...(isUncounted && { usage_counts: false }) };
}

/** Returns the values of a field in the latest runs that match a condition. */
export function suggestionsIn(
  connection: SqliteConnection,
  { field, text = '' }: SuggestionQuery,
  { sql, params }: Condition,
): Suggestion[] {
  const column = field === 'type' ? 'run_type' : field;
  const valuesOf = (row: SelectedRun & Row): readonly (string | undefined)[] => {
    if (column in row) return [(row[column] ?? undefined) as string | undefined];
    if (field === 'feedback') return connection.all<{ key: string }>(FEEDBACK_KEYS, row.n).map(({ key }) => key);
    const { tags = [], extra } = rowFields(row);
    return field === 'tag' ? tags.map(comparable) : suggestedMetadata(field, extra?.metadata);
  };
  const latest = `SELECT n FROM runs WHERE ${sql} ORDER BY start_us DESC, n DESC LIMIT ${SUGGESTED_RUNS_MAX}`;
  const rows = connection.each<SelectedRun & Row>(`${WITH_FIELDS} WHERE n IN (${latest})`, ...params);
  return suggestionsOf(Array.from(rows, valuesOf), text);
}

const WITH_FIELDS = 'SELECT runs.*, fields FROM runs JOIN details USING (n)';
const FEEDBACK_KEYS = 'SELECT key FROM feedback WHERE run = ?';
