import type { TimeRange } from '../../domain/query.ts';
import type { AmountField, Bound, Comparison, FilterNode, TextPattern } from '../../filter/filter.ts';
import type { RunFilter } from '../../filter/run-filter.ts';
import { float, integer, joined, type Param, type Sql, sql, string, uuids } from './connection.ts';

/** Conditions on tokens and costs apply either to the run itself or to its trace's totals. */
type UsageOf = 'run' | 'trace';

/**
 * Translates a filter, except its `search`, into a condition on the rows of `runs FINAL`. Values from the filter are
 * always passed as query parameters.
 */
export function conditionOf(tenant: string, filter: RunFilter, usage: UsageOf = 'run'): Sql {
  return allOf([
    insideOf(tenant, filter),
    ...rangeConditions(filter.range),
    ...filter.conditions.map((node) => nodeCondition(tenant, filter, node, usage)),
  ]);
}

/** Returns a condition on the tenant and on the filter's projects. */
export function insideOf(tenant: string, { projects }: Pick<RunFilter, 'projects'>): Sql {
  return allOf([
    sql('tenant = ?', string(tenant)),
    ...projects.map((project) => sql('project = ? OR session_id = ?', string(project), string(project))),
  ]);
}

export function rangeConditions({ fromUs, beforeUs }: TimeRange): Sql[] {
  return [
    ...(Number.isFinite(fromUs) ? [sql('start_us >= ?', integer(fromUs))] : []),
    ...(Number.isFinite(beforeUs) ? [sql('start_us < ?', integer(beforeUs))] : []),
  ];
}

/** Combines conditions with AND. */
export function allOf(conditions: readonly Sql[]): Sql {
  return conditions.length === 0 ? sql('1') : joined(conditions.map(inParentheses), ' AND ');
}

/** Combines conditions with OR. Without conditions, the result matches nothing. */
export function anyOf(conditions: readonly Sql[]): Sql {
  return conditions.length === 0 ? sql('0') : joined(conditions.map(inParentheses), ' OR ');
}

export function directionOf(isDescending: boolean): 'DESC' | 'ASC' {
  return isDescending ? 'DESC' : 'ASC';
}

function inParentheses({ sql: text, params }: Sql): Sql {
  return { sql: `(${text})`, params };
}

function nodeCondition(tenant: string, filter: RunFilter, node: FilterNode, usage: UsageOf): Sql {
  if ('all' in node) return allOf(node.all.map((one) => nodeCondition(tenant, filter, one, usage)));
  if ('some' in node) return anyOf(node.some.map((one) => nodeCondition(tenant, filter, one, usage)));
  if ('not' in node) {
    const { sql: text, params } = nodeCondition(tenant, filter, node.not, usage);
    // A comparison with a missing value returns null. Its negation is true.
    return { sql: `ifNull((${text}), 0) = 0`, params };
  }
  if (!('anyRun' in node)) return comparisonCondition(tenant, node, usage);
  const { sql: text, params } = allOf([insideOf(tenant, filter), nodeCondition(tenant, filter, node.anyRun, 'run')]);
  return { sql: `trace IN (SELECT trace FROM runs FINAL WHERE ${text})`, params };
}

function comparisonCondition(tenant: string, comparison: Comparison, usage: UsageOf): Sql {
  const { field, values, bounds = [] } = comparison;
  switch (field) {
    case 'root':
      return sql('is_root = 1');
    case 'latency':
      return within('latency_us', bounds);
    case 'tokens':
    case 'input_tokens':
    case 'output_tokens':
    case 'cost':
      return within((usage === 'trace' ? 'trace_' : '') + USAGE_COLUMNS[field], bounds);
    case 'run':
      return ofId('id', values);
    case 'trace':
      return ofId('trace', values);
    case 'project':
      return anyOf([ofText('project', values), ofText('session_id', values)]);
    case 'tag':
      return ofTexts('tags', values);
    case 'error':
      return allOf([sql("error != ''"), ofText('error', values)]);
    case 'meta':
      return ofMetadata(comparison);
    case 'feedback':
      return ofFeedback(tenant, comparison);
    default:
      return ofText(field === 'type' ? 'run_type' : field, values);
  }
}

const USAGE_COLUMNS: Readonly<Record<Exclude<AmountField, 'latency'>, string>> = {
  tokens: 'total_tokens',
  input_tokens: 'input_tokens',
  output_tokens: 'output_tokens',
  cost: 'total_cost',
};

function within(column: string, bounds: readonly Bound[]): Sql {
  return allOf(bounds.map(({ operator, amount }) => sql(`${column} ${operator} ?`, float(amount))));
}

/** Returns a condition on a string column. The column is null if the run has no value. */
function ofText(column: string, patterns: readonly TextPattern[] | undefined): Sql {
  if (patterns === undefined) return sql(`${column} IS NOT NULL`);
  return anyOf(patterns.map((pattern) => ofPattern(column, pattern)));
}

/** Returns a condition on a column that holds an array of strings. */
function ofTexts(column: string, patterns: readonly TextPattern[] | undefined): Sql {
  if (patterns === undefined) return sql(`notEmpty(${column})`);
  return anyOf(
    patterns.map((pattern) => {
      // `has` uses the index on the elements of the array.
      if (pattern.kind === 'equal') return sql(`has(${column}, ?)`, string(pattern.text));
      const { sql: text, params } = ofPattern('one', pattern);
      return { sql: `arrayExists(one -> ${text}, ${column})`, params };
    }),
  );
}

function ofPattern(column: string, { kind, text }: TextPattern, ...params: readonly Param[]): Sql {
  return sql(
    PATTERNS[kind].replace('column', () => column),
    ...params,
    string(text),
  );
}

const PATTERNS: Readonly<Record<TextPattern['kind'], string>> = {
  equal: 'column = ?',
  prefix: 'startsWith(column, ?)',
  suffix: 'endsWith(column, ?)',
  contains: 'position(column, ?) > 0',
};

/** Returns a condition on an id column. Only whole ids match. A pattern that is not an id matches nothing. */
function ofId(column: string, patterns: readonly TextPattern[] = []): Sql {
  const ids = patterns.filter(({ kind, text }) => kind === 'equal' && ID.test(text)).map(({ text }) => text);
  return ids.length === 0 ? sql('0') : sql(`${column} IN (?)`, uuids(ids));
}

const ID = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/;

function ofMetadata({ key = '', values }: Comparison): Sql {
  const hasKey = sql('mapContains(metadata, ?)', string(key));
  if (values === undefined) return hasKey;
  return allOf([hasKey, anyOf(values.map((pattern) => ofPattern('metadata[?]', pattern, string(key))))]);
}

function ofFeedback(tenant: string, { key = '', values, bounds = [] }: Comparison): Sql {
  const { sql: text, params } = allOf([
    sql('tenant = ?', string(tenant)),
    sql('key = ?', string(key)),
    ...(bounds.length === 0 ? [] : [within('score', bounds)]),
    ...(values === undefined ? [] : [ofTexts('texts', values)]),
  ]);
  return { sql: `id IN (SELECT run FROM feedback FINAL WHERE ${text})`, params };
}
