import type { TimeRange } from '../../../domain/query/query.ts';
import type { Comparison, FilterNode, TextPattern } from '../../../filter/filter.ts';
import type { RunFilter } from '../../../filter/run-filter.ts';
import {
  all,
  any,
  COLUMNS,
  type Dialect,
  isUsage,
  ofText,
  conditionOf as translated,
  withinBounds,
} from '../../../filter/sql.ts';
import { float, integer, type Param, type Sql, sql, string, uuids } from '../connection.ts';
import { namesIn } from '../places.ts';

/** Conditions on tokens and costs apply either to the run itself or to its trace's totals. */
type UsageOf = 'run' | 'trace';

/** Translates a filter, except its `search`, into a condition on the rows of `runs FINAL`. */
export function rowCondition(tenant: string, filter: RunFilter, usage: UsageOf = 'run'): Sql {
  const dialect = dialectFor(tenant, filter, usage);
  return all([
    insideOf(tenant, filter),
    ...rangeConditions(filter.range),
    ...filter.conditions.map((node) => translated(node, dialect)),
  ]);
}

export function insideOf(tenant: string, { projects }: Pick<RunFilter, 'projects'>): Sql {
  return all([
    sql`tenant = ${string(tenant)}`,
    ...projects.map((project) => sql`project = ${string(project)} OR session_id = ${string(project)}`),
  ]);
}

export function rangeConditions({ fromUs, beforeUs }: TimeRange): Sql[] {
  return [
    ...(Number.isFinite(fromUs) ? [sql`start_us >= ${integer(fromUs)}`] : []),
    ...(Number.isFinite(beforeUs) ? [sql`start_us < ${integer(beforeUs)}`] : []),
  ];
}

/** Returns the SQL expression for what the trace of a root says as a whole. */
export function traceColumn(column: string, { isLimited }: Pick<RunFilter, 'isLimited'>): string {
  return isLimited ? `if(is_shared = 1, own_${column}, ${column})` : column;
}

export function directionOf(isDescending: boolean): Sql {
  return sql(isDescending ? 'DESC' : 'ASC');
}

function dialectFor(tenant: string, filter: RunFilter, usage: UsageOf): Dialect<Param> {
  return {
    ...SPELLING,
    column(field) {
      const column = COLUMNS[field] ?? field;
      if (usage === 'trace' && isUsage(field)) return traceColumn(`trace_${column}`, filter);
      return field === 'outcome' ? traceColumn(column, filter) : column;
    },
    own: (comparison) => OWN[comparison.field]?.(comparison, tenant),
    anyRun(node: FilterNode) {
      const others = all([insideOf(tenant, filter), translated(node, dialectFor(tenant, filter, 'run'))]);
      return sql`trace IN (SELECT trace FROM runs FINAL WHERE ${others})`;
    },
  };
}

const SPELLING: Pick<Dialect<Param>, 'param' | 'part'> = {
  param: (value) => (typeof value === 'string' ? string(value) : float(value)),
  part: (column, { kind, text }) => ({ sql: PARTS[kind].replace('column', () => column), params: [string(text)] }),
};

const PARTS: Readonly<Record<TextPattern['kind'], string>> = {
  equal: 'column = ?',
  prefix: 'startsWith(column, ?)',
  suffix: 'endsWith(column, ?)',
  contains: 'position(column, ?) > 0',
};

/** The comparisons that need SQL of their own. */
const OWN: Readonly<Partial<Record<Comparison['field'], (comparison: Comparison, tenant: string) => Sql>>> = {
  run: ({ values }) => ofIds(values, (ids) => sql`id IN (${uuids(ids)})`),
  trace: ({ values }, tenant) => ofIds(values, (ids) => ofMeantTraces(tenant, ids)),
  tag: ({ values }) => ofTexts('tags', values),
  error: ({ values }) => all([sql("error != ''"), ofText('error', values, SPELLING)]),
  meta: ofMetadata,
  feedback: ofFeedback,
};

/** Returns a condition on a column that holds an array of strings. */
function ofTexts(column: string, patterns: readonly TextPattern[] | undefined): Sql {
  if (patterns === undefined) return sql(`notEmpty(${column})`);
  return any(
    patterns.map((pattern) => {
      // `has` uses the index on the elements of the array.
      if (pattern.kind === 'equal') return sql`has(${sql(column)}, ${string(pattern.text)})`;
      return sql`arrayExists(one -> ${SPELLING.part('one', pattern)}, ${sql(column)})`;
    }),
  );
}

/** Returns a condition on the ids among patterns. Only whole ids match. A pattern that is not an id matches nothing. */
function ofIds(patterns: readonly TextPattern[] | undefined, conditionOn: (ids: readonly string[]) => Sql): Sql {
  const ids = (patterns ?? []).filter(({ kind, text }) => kind === 'equal' && ID.test(text)).map(({ text }) => text);
  return ids.length === 0 ? sql('0') : conditionOn(ids);
}

/** Returns a condition for the traces that clients mean by ids: a name of the trace, or else the id in answers. */
export function ofMeantTraces(tenant: string, ids: readonly string[]): Sql {
  const ofTenant = sql`tenant = ${string(tenant)}`;
  const names = sql`SELECT id, group_id FROM (${namesIn(ids.map((id) => ({ tenant, id })))}) WHERE is_trace = 1`;
  return sql`trace IN (SELECT trace FROM runs FINAL WHERE ${ofTenant} AND id IN (SELECT id FROM messages
      WHERE ${ofTenant} AND toUInt128(group_id) IN (SELECT toUInt128(group_id) FROM (${names})))
    UNION ALL SELECT arrayJoin(${uuids(ids)}) AS shown WHERE shown NOT IN (SELECT id FROM (${names})))`;
}

const ID = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/;

/** Returns an SQL expression for the value of a metadata key. It is null if the run has no such key. */
export function metadataValue(key: string): Sql {
  return sql`if(mapContains(metadata, ${string(key)}), metadata[${string(key)}], NULL)`;
}

function ofMetadata({ key = '', values }: Comparison): Sql {
  const hasKey = sql`mapContains(metadata, ${string(key)})`;
  if (values === undefined) return hasKey;
  const parts = values.map((pattern) => SPELLING.part('metadata[?]', pattern));
  return all([hasKey, any(parts.map((part) => sql(part.sql, string(key), ...part.params)))]);
}

function ofFeedback({ key = '', values, bounds = [] }: Comparison, tenant: string): Sql {
  const where = all([
    sql`tenant = ${string(tenant)}`,
    sql`key = ${string(key)}`,
    withinBounds('score', bounds, SPELLING),
    ...(values === undefined ? [] : [ofTexts('texts', values)]),
  ]);
  return sql`id IN (SELECT run FROM feedback FINAL WHERE ${where})`;
}
