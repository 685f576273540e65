import type { Bound, Comparison, FilterNode, TextPattern } from './filter.ts';

/** A part of an SQL query. Each `?` stands for the next parameter. Values from users are always parameters. */
export interface Sql<Param> {
  readonly sql: string;
  readonly params: readonly Param[];
  /** Whether the condition selects few rows by an index, so that no index on another column is better. */
  readonly isSelective?: boolean;
}

/** A field whose values are in one column. */
type ColumnField =
  | Exclude<Comparison['field'], 'run' | 'trace' | 'tag' | 'error' | 'meta' | 'feedback' | 'cached'>
  | 'session_id'
  | 'cached_tokens';

/** Names of columns that differ from the names of their fields. */
export const COLUMNS: Readonly<Partial<Record<ColumnField, string>>> = {
  type: 'run_type',
  root: 'is_root',
  latency: 'latency_us',
  tokens: 'total_tokens',
  cost: 'total_cost',
};

/** Returns whether the values of a field are tokens or costs. In a list of traces, these are totals of the trace. */
export function isUsage(field: string): boolean {
  return field === 'cost' || field.endsWith('tokens');
}

/** How a database spells the comparisons of a filter. */
export interface Dialect<Param> {
  param(value: string | number): Param;
  /** Returns the SQL expression for the values of a field. The expression is null if a run has no value. */
  column(field: ColumnField): string;
  /** Returns a condition that a column starts with, ends with or contains a text. */
  part(column: string, pattern: TextPattern): Sql<Param>;
  /** Returns a comparison that needs SQL of its own. Returns undefined for a comparison of a column. */
  own(comparison: Comparison): Sql<Param> | undefined;
  /** Returns a condition that any run of the trace matches. */
  anyRun(node: FilterNode): Sql<Param>;
}

/** Combines conditions with AND. Without conditions, the result matches everything. */
export function all<Param>(conditions: readonly Sql<Param>[]): Sql<Param> {
  return conditions.length === 0 ? { sql: '1', params: [] } : joined(conditions.map(inParentheses), ' AND ');
}

/** Combines conditions with OR. Without conditions, the result matches nothing. */
export function any<Param>(conditions: readonly Sql<Param>[]): Sql<Param> {
  return conditions.length === 0 ? { sql: '0', params: [] } : joined(conditions.map(inParentheses), ' OR ');
}

function joined<Param>(parts: readonly Sql<Param>[], separator: string): Sql<Param> {
  return { sql: parts.map(({ sql }) => sql).join(separator), params: parts.flatMap(({ params }) => params) };
}

function inParentheses<Param>({ sql, params }: Sql<Param>): Sql<Param> {
  return { sql: `(${sql})`, params };
}

export function conditionOf<Param>(node: FilterNode, dialect: Dialect<Param>): Sql<Param> {
  if ('all' in node) return all(node.all.map((one) => conditionOf(one, dialect)));
  if ('some' in node) return any(node.some.map((one) => conditionOf(one, dialect)));
  if ('anyRun' in node) return dialect.anyRun(node.anyRun);
  if ('field' in node) return dialect.own(node) ?? ofColumn(node, dialect);
  const { sql, params } = conditionOf(node.not, dialect);
  // A comparison with a missing value is null, which does not match.
  return { sql: `ifNull((${sql}), 0) = 0`, params };
}

function ofColumn<Param>({ field, values, bounds }: Comparison, dialect: Dialect<Param>): Sql<Param> {
  if (field === 'project') {
    return any((['project', 'session_id'] as const).map((column) => ofText(dialect.column(column), values, dialect)));
  }
  const column = field === 'cached' ? cachedShare(dialect) : dialect.column(field as ColumnField);
  if (field === 'root' || field === 'internal') return { sql: `${column} = 1`, params: [] };
  return bounds === undefined ? ofText(column, values, dialect) : withinBounds(column, bounds, dialect);
}

/** Returns the SQL expression for the share of cached input tokens, as `cachedShareOf`. It is null without input tokens. */
function cachedShare<Param>({ column }: Dialect<Param>): string {
  return `ifNull(${column('cached_tokens')}, 0) / nullIf(${column('input_tokens')}, 0)`;
}

/** Returns a condition that a text column matches any of the patterns. Without patterns, it must have a value. */
export function ofText<Param>(
  column: string,
  patterns: readonly TextPattern[] | undefined,
  dialect: Pick<Dialect<Param>, 'param' | 'part'>,
): Sql<Param> {
  if (patterns === undefined) return { sql: `${column} IS NOT NULL`, params: [] };
  const equal = patterns.filter(({ kind }) => kind === 'equal').map(({ text }) => dialect.param(text));
  const others = patterns.filter(({ kind }) => kind !== 'equal').map((pattern) => dialect.part(column, pattern));
  const among = { sql: equal.length === 1 ? `${column} = ?` : `${column} IN (${marks(equal)})`, params: equal };
  return equal.length === 0 ? any(others) : any([among, ...others]);
}

export function withinBounds<Param>(
  column: string,
  bounds: readonly Bound[],
  { param }: Pick<Dialect<Param>, 'param'>,
): Sql<Param> {
  return all(bounds.map(({ operator, amount }) => ({ sql: `${column} ${operator} ?`, params: [param(amount)] })));
}

/** Returns one placeholder for each value. */
export function marks(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}
