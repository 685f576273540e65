import { hasMetadata, type Range, type RunFilter } from './run-filter.ts';
import { merged } from './run-state.ts';
import type { SmallFields } from './run-summary.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import type { SqlValue } from './sqlite-engine.ts';
import { idBytes } from './sqlite-id.ts';

/** A condition on `runs`, with what its question marks stand for. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** What a query says of the runs it asks for, its text aside. `tokens` is the column that tokens are looked up in. */
export function conditionsOf(
  connection: SqliteConnection,
  filter: RunFilter,
  tokens: 'runs.total_tokens' | 'traces.total_tokens',
): Condition[] {
  const { project, traceId, statuses } = filter;
  return [
    { sql: 'runs.start_us IS NOT NULL', values: [] },
    ...(project === undefined ? [] : [ofProject(connection, project)]),
    ...(traceId === undefined ? [] : [{ sql: 'runs.trace_id = ?', values: [idBytes(traceId)] }]),
    ...equal('runs.name', filter.name),
    ...equal('runs.run_type', filter.runType),
    ...equal('runs.model', filter.model),
    ...(statuses === undefined ? [] : [oneOf(statuses)]),
    ...filter.tags.map((tag) => ({ sql: HAS_TAG, values: [JSON.stringify(tag), tag] })),
    ...filter.metadata.map(([key, value]) => ofMetadata(key, value)),
    ...within('runs.start_us', { min: filter.startedFromUs, max: Number.POSITIVE_INFINITY }),
    ...(filter.startedBeforeUs === Number.POSITIVE_INFINITY
      ? []
      : [{ sql: 'runs.start_us < ?', values: [filter.startedBeforeUs] }]),
    ...within('runs.latency_us', filter.latencyUs),
    ...within(tokens, filter.tokens),
  ];
}

/** All of the conditions as one. */
export function all(conditions: readonly Condition[]): Condition {
  return {
    sql: conditions.map(({ sql }) => `(${sql})`).join(' AND '),
    values: conditions.flatMap(({ values }) => values),
  };
}

/** Makes what conditions call. */
export function defineFilterFunctions(connection: SqliteConnection): void {
  connection.define('has_metadata', (posted, patched, key, value) => {
    const fields = merged(layer(posted), layer(patched));
    return +hasMetadata(fields.extra?.metadata, key as string, value as string | null);
  });
}

// The JSON is searched for text that it must have before it is read, which for most runs need not be done then.
const HAS_TAG = `EXISTS (SELECT 1 FROM details, json_each(details.listing, '$.tags') AS tag
  WHERE details.n = runs.n AND instr(details.listing, ?) AND tag.value = ?)`;

function ofMetadata(key: string, value: string | null): Condition {
  const told = [JSON.stringify(key)];
  // What is no text is asked for by its JSON, which stands there as it is.
  const needles = value === null ? [told] : [told, [JSON.stringify(value), value]];
  const stands = needles.map((either) => either.map(() => 'instr(posted, ?) OR instr(patched, ?)').join(' OR '));
  return {
    sql: `EXISTS (SELECT 1 FROM details WHERE details.n = runs.n AND ${stands.map((sql) => `(${sql})`).join(' AND ')}
      AND has_metadata(posted, patched, ?, ?))`,
    values: [...needles.flat().flatMap((needle) => [needle, needle]), key, value],
  };
}

function layer(json: SqlValue | undefined): SmallFields {
  return JSON.parse((json as string | null | undefined) ?? '{}');
}

/** Either of two columns would keep the index from giving runs in order, so that the second is asked for only where it is used. */
function ofProject(connection: SqliteConnection, project: string): Condition {
  const isId = connection.one('SELECT 1 FROM runs WHERE session_id = ? LIMIT 1', project) !== undefined;
  return isId
    ? { sql: 'runs.project = ? OR runs.session_id = ?', values: [project, project] }
    : { sql: 'runs.project = ?', values: [project] };
}

function oneOf(statuses: readonly string[]): Condition {
  const sql = `runs.status IN (${statuses.map(() => '?').join(', ')})`;
  // Said as the index of all that is no success says it, or it would not be used.
  return { sql: statuses.includes('success') ? sql : `${sql} AND runs.status <> 'success'`, values: statuses };
}

function equal(column: string, value: string | undefined): Condition[] {
  return value === undefined ? [] : [{ sql: `${column} = ?`, values: [value] }];
}

function within(column: string, range: Range | undefined): Condition[] {
  if (range === undefined) return [];
  return [
    ...(Number.isFinite(range.min) ? [{ sql: `${column} >= ?`, values: [range.min] }] : []),
    ...(Number.isFinite(range.max) ? [{ sql: `${column} <= ?`, values: [range.max] }] : []),
  ];
}
