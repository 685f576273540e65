import { cursorOf, PAGE_ITEMS, positionOf } from '../../query/cursor.ts';
import type { ListQuery, Page, Ranged, SortKey } from '../../query/query.ts';
import { hasMetadata, type Range, type RunFilter } from '../run-filter.ts';
import { outlineOf, type PayloadFacts, previewsIn, type SmallFields, summaryOf } from '../run-summary.ts';
import type { RunOutline, RunSummary } from '../run-view.ts';
import type { RunFields } from '../store.ts';
import { idBytes, idText, type SqliteConnection, type SqlValue } from './database.ts';
import { factsIn, readPayload } from './payloads.ts';
import { fieldsOf, SELECT_RUNS, type SelectedRun, usageIn } from './run-row.ts';

/** An SQL condition on the table `runs`, with parameter values. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/**
 * Returns the SQL conditions for a filter, except for `search`. `tokens` names the column that is compared with the
 * filter's token limits.
 */
export function conditionsOf(
  connection: SqliteConnection,
  tenant: number,
  filter: RunFilter,
  tokens: 'runs.total_tokens' | 'traces.total_tokens',
): Condition[] {
  const { traceId, statuses, range, latencyUs } = filter;
  return [
    // The plus sign makes SQLite use the index on the trace instead of indexes that begin with the tenant.
    { sql: traceId === undefined ? 'runs.tenant = ?' : '+runs.tenant = ?', values: [tenant] },
    { sql: 'runs.start_us IS NOT NULL', values: [] },
    ...filter.projects.map((project) => ofProject(connection, tenant, project)),
    ...(traceId === undefined ? [] : [{ sql: OF_TRACE, values: [tenant, idBytes(traceId)] }]),
    ...equal('runs.name', filter.name),
    ...equal('runs.run_type', filter.runType),
    ...equal('runs.model', filter.model),
    ...equal('runs.thread', filter.thread),
    ...(statuses === undefined ? [] : [statusAmong(statuses)]),
    ...filter.tags.map((tag) => ({ sql: HAS_TAG, values: [tenant, tag] })),
    ...filter.metadata.flatMap(([key, value]) => ofMetadata(key, value)),
    ...within('runs.start_us', { min: range.fromUs, max: Number.POSITIVE_INFINITY }),
    ...(Number.isFinite(range.beforeUs) ? [{ sql: 'runs.start_us < ?', values: [range.beforeUs] }] : []),
    ...within(LATENCY_US, latencyUs),
    ...within(tokens, filter.tokens),
  ];
}

/** SQL expression for the latency of a run, or null if the run has not ended. */
const LATENCY_US = 'max(0, runs.end_us - runs.start_us)';

/** Combines conditions with AND. */
export function all(conditions: readonly Condition[]): Condition {
  return {
    sql: conditions.map(({ sql }) => `(${sql})`).join(' AND '),
    values: conditions.flatMap(({ values }) => values),
  };
}

export function defineFilterFunctions(connection: SqliteConnection): void {
  connection.define('has_metadata', (json, key, value) => {
    const { extra } = JSON.parse(json as string) as SmallFields;
    return +hasMetadata(extra?.metadata, key as string, value as string | null);
  });
}

const OF_TRACE = 'runs.trace = (SELECT n FROM traces WHERE tenant = ? AND id = ?)';
const HAS_TAG = 'runs.n IN (SELECT n FROM tags WHERE tenant = ? AND tag = ?)';

const METADATA_COLUMNS: Readonly<Record<string, string>> = { thread_id: 'runs.thread', user_id: 'runs.user' };

function ofMetadata(key: string, value: string | null): Condition[] {
  const column = METADATA_COLUMNS[key];
  // The column contains only strings, without numbers or other JSON values.
  const isText = column !== undefined && value !== null && !/^(?:[-\d[{"]|null$|true$|false$)/.test(value);
  const needles = [JSON.stringify(key), ...(value === null ? [] : [value, JSON.stringify(value)])];
  // For speed, search the JSON text for the key and the value before parsing it. In JSON, strings have quotes and other
  // values do not.
  const texts = ['instr(fields, ?)', ...(value === null ? [] : ['(instr(fields, ?) OR instr(fields, ?))'])];
  const sql = `EXISTS (SELECT 1 FROM details WHERE details.n = runs.n AND ${texts.join(' AND ')} AND has_metadata(fields, ?, ?))`;
  return [...(isText ? [{ sql: `${column} = ?`, values: [value] }] : []), { sql, values: [...needles, key, value] }];
}

/** Compares `session_id` only if the project is an id, because SQLite uses no index for a condition on two columns. */
export function ofProject(connection: SqliteConnection, tenant: number, project: string): Condition {
  return isSessionId(connection, tenant, project)
    ? { sql: 'runs.project = ? OR runs.session_id = ?', values: [project, project] }
    : { sql: 'runs.project = ?', values: [project] };
}

/** Returns whether the text is the project id of any run. */
export function isSessionId(connection: SqliteConnection, tenant: number, text: string): boolean {
  const sql = 'SELECT 1 FROM runs WHERE tenant = ? AND session_id = ? AND session_id <> project LIMIT 1';
  return connection.one(sql, tenant, text) !== undefined;
}

/** Repeats the condition of the partial index, so that SQLite uses the partial index. */
function statusAmong(statuses: readonly string[]): Condition {
  const { sql, values } = among('runs.status', statuses);
  return { sql: statuses.includes('success') ? sql : `${sql} AND runs.status <> 'success'`, values };
}

export function among(column: string, values: readonly string[]): Condition {
  return { sql: `${column} IN (${values.map(() => '?').join(', ')})`, values };
}

export function equal(column: string, value: string | undefined): Condition[] {
  return value === undefined ? [] : [{ sql: `${column} = ?`, values: [value] }];
}

function within(column: string, range: Range | undefined): Condition[] {
  if (range === undefined) return [];
  return [
    ...(Number.isFinite(range.min) ? [{ sql: `${column} >= ?`, values: [range.min] }] : []),
    ...(Number.isFinite(range.max) ? [{ sql: `${column} <= ?`, values: [range.max] }] : []),
  ];
}

export const RUN_SORTS: Readonly<Record<SortKey, string>> = {
  start_time: 'runs.start_us',
  latency: LATENCY_US,
  tokens: 'runs.total_tokens',
  cost: 'runs.total_cost',
};
export const TRACE_SORTS: Readonly<Record<SortKey, string>> = {
  ...RUN_SORTS,
  tokens: 'traces.total_tokens',
  cost: 'traces.total_cost',
};

/** Reads a page of rows. First selects and sorts only the keys, then reads the other columns. */
export function rowsOfPage(
  connection: SqliteConnection,
  { sort = 'start_time', order = 'descending', cursor, limit = PAGE_ITEMS }: Ranged<ListQuery>,
  from: string,
  conditions: readonly Condition[],
  sorts: Readonly<Record<SortKey, string>>,
): Page<SelectedRun> {
  const value = sorts[sort];
  const direction = order === 'descending' ? 'DESC' : 'ASC';
  const { sql, values } = all(cursor === undefined ? conditions : [...conditions, following(cursor, value, order)]);
  // The start time of a visible run is never null. Without `IS NULL`, the index returns the rows in order.
  const orderBy = `${sort === 'start_time' ? '' : `${value} IS NULL, `}${value} ${direction}, runs.n ${direction}`;
  const keys = connection.all<{ n: number; value: number | null }>(
    `SELECT runs.n AS n, ${value} AS value FROM ${from} WHERE ${sql} ORDER BY ${orderBy} LIMIT ?`,
    ...values,
    limit + 1,
  );
  const shown = keys.slice(0, limit);
  const items = shown.flatMap(({ n }) => connection.one<SelectedRun>(`${SELECT_RUNS} WHERE runs.n = ?`, n) ?? []);
  const last = shown.at(-1);
  return keys.length > limit && last !== undefined ? { items, next: cursorOf(last) } : { items };
}

function following(cursor: string, column: string, order: ListQuery['order']): Condition {
  const { value, n } = positionOf(cursor);
  const sign = order === 'descending' ? '<' : '>';
  if (value === null) return { sql: `${column} IS NULL AND runs.n ${sign} ?`, values: [n] };
  const sql = `(${column}, runs.n) ${sign} (?, ?)`;
  return { sql: column === RUN_SORTS.start_time ? sql : `${sql} OR ${column} IS NULL`, values: [value, n] };
}

/**
 * Returns a run as it appears in a list. Previews of large payloads are stored. Other previews are created from the
 * payload.
 */
export function summaryIn(connection: SqliteConnection, row: SelectedRun): RunSummary {
  const facts = storedFactsIn(row);
  const payloads: RunFields = {};
  for (const field of ['inputs', 'outputs'] as const) {
    const text = facts[`${field}_preview`] === undefined ? readPayload(connection, row.n, field) : undefined;
    if (text !== undefined) payloads[field] = JSON.parse(text);
  }
  return summaryWith(row, { ...facts, ...previewsIn(payloads) });
}

export function outlineIn(row: SelectedRun): RunOutline {
  return outlineOf(summaryWith(row, storedFactsIn(row)));
}

function storedFactsIn({ facts }: SelectedRun): PayloadFacts {
  return facts === null ? {} : factsIn(JSON.parse(facts));
}

function summaryWith(row: SelectedRun, { outputs_usage: _, ...facts }: PayloadFacts): RunSummary {
  const { usage: _unpriced, ...summary } = summaryOf(
    idText(row.id),
    idText(row.trace_id),
    fieldsOf(row),
    facts,
  ) as RunSummary; // Listed runs are visible.
  const usage = usageIn(row);
  return { ...summary, ...(usage && { usage }) };
}
