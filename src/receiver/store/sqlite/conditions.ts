import { hasMetadata, type Range, type RunFilter } from '../run-filter.ts';
import type { SmallFields } from '../run-summary.ts';
import { idBytes, type SqliteConnection, type SqlValue } from './database.ts';

/** A condition on `runs`, with the values of its parameters. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** Returns the conditions of a filter, `search` aside. `tokens` is the column of the token count. */
export function conditionsOf(
  connection: SqliteConnection,
  tenant: number,
  filter: RunFilter,
  tokens: 'runs.total_tokens' | 'traces.total_tokens',
): Condition[] {
  const { traceId, statuses, range, latencyUs } = filter;
  return [
    // The plus sign excludes the indexes that begin with the tenant, so that the index of the trace is used.
    { sql: traceId === undefined ? 'runs.tenant = ?' : '+runs.tenant = ?', values: [tenant] },
    { sql: 'runs.start_us IS NOT NULL', values: [] },
    ...filter.projects.map((project) => ofProject(connection, tenant, project)),
    ...(traceId === undefined ? [] : [{ sql: OF_TRACE, values: [tenant, idBytes(traceId)] }]),
    ...equal('runs.name', filter.name),
    ...equal('runs.run_type', filter.runType),
    ...equal('runs.model', filter.model),
    ...(statuses === undefined ? [] : [oneOf(statuses)]),
    ...filter.tags.map((tag) => ({ sql: HAS_TAG, values: [tenant, tag] })),
    ...filter.metadata.flatMap(([key, value]) => ofMetadata(key, value)),
    ...within('runs.start_us', { min: range.fromUs, max: Number.POSITIVE_INFINITY }),
    ...(Number.isFinite(range.beforeUs) ? [{ sql: 'runs.start_us < ?', values: [range.beforeUs] }] : []),
    ...within(LATENCY_US, latencyUs),
    ...within(tokens, filter.tokens),
  ];
}

/** The latency of a run. Null if it has not ended. */
export const LATENCY_US = 'max(0, runs.end_us - runs.start_us)';

/** Joins conditions with AND. */
export function all(conditions: readonly Condition[]): Condition {
  return {
    sql: conditions.map(({ sql }) => `(${sql})`).join(' AND '),
    values: conditions.flatMap(({ values }) => values),
  };
}

/** Defines the SQL functions that conditions call. */
export function defineFilterFunctions(connection: SqliteConnection): void {
  connection.define('has_metadata', (json, key, value) => {
    const { extra } = JSON.parse(json as string) as SmallFields;
    return +hasMetadata(extra?.metadata, key as string, value as string | null);
  });
}

const OF_TRACE = 'runs.trace = (SELECT n FROM traces WHERE tenant = ? AND id = ?)';
const HAS_TAG = 'runs.n IN (SELECT n FROM tags WHERE tenant = ? AND tag = ?)';

/** Metadata with a column of its own, which has an index. */
const COLUMNS: Readonly<Record<string, string>> = { thread_id: 'runs.thread', user_id: 'runs.user' };

function ofMetadata(key: string, value: string | null): Condition[] {
  const column = COLUMNS[key];
  // Numbers and other JSON are not in the column.
  const isText = column !== undefined && value !== null && !/^(?:[-\d[{"]|null$|true$|false$)/.test(value);
  const needles = [JSON.stringify(key), ...(value === null ? [] : [value, JSON.stringify(value)])];
  // Searches the JSON text before it is parsed. A value that is not text is its own JSON.
  const texts = ['instr(fields, ?)', ...(value === null ? [] : ['(instr(fields, ?) OR instr(fields, ?))'])];
  const sql = `EXISTS (SELECT 1 FROM details WHERE details.n = runs.n AND ${texts.join(' AND ')} AND has_metadata(fields, ?, ?))`;
  return [...(isText ? [{ sql: `${column} = ?`, values: [value] }] : []), { sql, values: [...needles, key, value] }];
}

/** Conditions on two columns prevent the use of an index, so `session_id` is included only if the project is an id. */
function ofProject(connection: SqliteConnection, tenant: number, project: string): Condition {
  return isSessionId(connection, tenant, project)
    ? { sql: 'runs.project = ? OR runs.session_id = ?', values: [project, project] }
    : { sql: 'runs.project = ?', values: [project] };
}

/** Whether a run has the text as its project id. */
export function isSessionId(connection: SqliteConnection, tenant: number, text: string): boolean {
  const sql = 'SELECT 1 FROM runs WHERE tenant = ? AND session_id = ? AND session_id <> project LIMIT 1';
  return connection.one(sql, tenant, text) !== undefined;
}

/** Repeats the condition of the partial index, which is otherwise not used. */
function oneOf(statuses: readonly string[]): Condition {
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
