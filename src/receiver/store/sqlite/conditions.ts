import type { Feedback } from '../../domain/feedback.ts';
import type { SmallFields } from '../../domain/summary.ts';
import type { Bound, Comparison, FilterNode, TextPattern } from '../../filter/filter.ts';
import { errorText, hasValue, isMatchingFeedback, metadataTextOf } from '../../filter/match.ts';
import type { RunFilter } from '../../filter/run-filter.ts';
import { idBytes, type SqliteConnection, type SqlValue } from './database.ts';
import { all, type Condition, latencyUs, ofProject } from './lists.ts';
import { RARE_MAX, type SqliteSearch } from './search.ts';

/** Aliases of the tables that a condition refers to: `runs`, and the table with the tokens and costs. */
interface Tables {
  readonly runs: string;
  readonly usage: string;
}

/** Translates a filter to SQL. Values from the filter are always passed as parameters. */
export class SqlFilter {
  readonly #connection: SqliteConnection;
  readonly #search: SqliteSearch;
  readonly #tenant: number;
  readonly #filter: RunFilter;

  constructor(connection: SqliteConnection, search: SqliteSearch, tenant: number, filter: RunFilter) {
    this.#connection = connection;
    this.#search = search;
    this.#tenant = tenant;
    this.#filter = filter;
  }

  /** Returns SQL conditions for the filter, except for `search`. `usage` is the table with the tokens and costs. */
  conditions(usage: 'runs' | 'traces' = 'runs'): Condition[] {
    const { range, conditions } = this.#filter;
    const isBounded = Number.isFinite(range.fromUs) || Number.isFinite(range.beforeUs);
    const selected = conditions.map((node) => this.#node(node, { runs: 'runs', usage }));
    const isSelective = selected.some((condition) => condition.isSelective);
    return [
      // The plus sign prevents SQLite from using indexes that begin with the tenant.
      { sql: isSelective ? '+runs.tenant = ?' : 'runs.tenant = ?', values: [this.#tenant] },
      // With a range, this condition would make SQLite prefer the index on the start to the index on the user.
      ...(isBounded ? this.#projects('runs') : this.inside('runs')),
      ...(Number.isFinite(range.fromUs) ? [{ sql: 'runs.start_us >= ?', values: [range.fromUs] }] : []),
      ...(Number.isFinite(range.beforeUs) ? [{ sql: 'runs.start_us < ?', values: [range.beforeUs] }] : []),
      ...selected,
    ];
  }

  /** Selects the visible runs in the projects of the filter. */
  inside(runs: string): Condition[] {
    return [{ sql: `${runs}.start_us IS NOT NULL`, values: [] }, ...this.#projects(runs)];
  }

  #projects(runs: string): Condition[] {
    return this.#filter.projects.map((project) => ofProject(this.#connection, this.#tenant, project, runs));
  }

  #node(node: FilterNode, tables: Tables): Condition {
    return conditionOf(node, (leaf) => ('anyRun' in leaf ? this.#anyRun(leaf.anyRun) : this.#comparison(leaf, tables)));
  }

  #anyRun(node: FilterNode): Condition {
    const { sql, values } = all([...this.inside('others'), this.#node(node, { runs: 'others', usage: 'others' })]);
    const found = {
      sql: `SELECT others.trace FROM runs AS others WHERE others.tenant = ? AND ${sql}`,
      values: [this.#tenant, ...values],
    };
    const isSelective = this.#isRare(found);
    if (isSelective) return { sql: `runs.trace IN (${found.sql})`, values: found.values, isSelective };
    return { sql: `EXISTS (SELECT 1 FROM runs AS others WHERE others.trace = runs.trace AND ${sql})`, values };
  }

  #comparison(comparison: Comparison, { runs, usage }: Tables): Condition {
    const { field, bounds = [], values = [] } = comparison;
    switch (field) {
      case 'root':
        return { sql: `${runs}.is_root = 1`, values: [] };
      case 'latency':
        return within(latencyUs(runs), bounds);
      case 'run':
        return { sql: `${runs}.id IN (${marks(values)})`, values: ids(values) };
      case 'trace': {
        const traces = `SELECT n FROM traces WHERE tenant = ? AND id IN (${marks(values)})`;
        return { sql: `${runs}.trace IN (${traces})`, values: [this.#tenant, ...ids(values)], isSelective: true };
      }
      case 'project':
        return any([ofText(`${runs}.project`, values), ofText(`${runs}.session_id`, values)]);
      case 'status':
        return ofStatus(`${runs}.status`, values);
      case 'tag':
        return this.#tag(values, runs);
      case 'feedback':
        return ofFeedback(comparison, runs);
      case 'error': {
        // If a run has an error, its status is never `success`.
        const sql = `${runs}.status <> 'success' AND ${hasDetails(runs, MATCHES_FIELDS)}`;
        return { sql, values: [JSON.stringify(comparison)] };
      }
      case 'meta':
        return this.#metadata(comparison, runs);
      case 'name':
      case 'model':
      case 'thread':
      case 'user':
        return ofText(`${runs}.${field}`, values);
      case 'type':
        return ofText(`${runs}.run_type`, values);
      default:
        return within(`${usage}.${USAGE_COLUMNS[field]}`, bounds);
    }
  }

  #tag(patterns: readonly TextPattern[], runs: string): Condition {
    const { sql, values } = all([{ sql: 'tenant = ?', values: [this.#tenant] }, ofText('tag', patterns)]);
    const found = { sql: `SELECT n FROM tags WHERE ${sql}`, values };
    // The table has an index on the tag and the run, but no index on the run alone.
    const isSelective = this.#isRare(found);
    const isSelected = isSelective || patterns.some(({ kind }) => kind !== 'equal');
    const condition = isSelected ? `${runs}.n IN (${found.sql})` : `EXISTS (${found.sql} AND n = ${runs}.n)`;
    return { sql: condition, values, isSelective };
  }

  #metadata(comparison: Comparison, runs: string): Condition {
    const { key = '', values: patterns = [] } = comparison;
    const [text] = patterns.length === 1 && patterns[0]?.kind === 'equal' ? [patterns[0].text] : [];
    const column = METADATA_COLUMNS.get(key);
    const conditions: Condition[] = [];
    if (text !== undefined && column !== undefined && isOnlyText(text)) {
      conditions.push({ sql: `${runs}.${column} = ?`, values: [text] });
    } else {
      const found = patterns.map((pattern) => this.#candidates(pattern));
      if (found.length > 0 && found.every((runsFound) => runsFound !== undefined)) {
        conditions.push({
          sql: `${runs}.n IN (SELECT value FROM json_each(?))`,
          values: [JSON.stringify(found.flat())],
        });
      }
    }
    // For speed, search the JSON text for the key and the value before parsing it. In JSON, strings have quotes and other
    // values do not.
    const checks = ['instr(fields, ?)', ...(text === undefined ? [] : ['(instr(fields, ?) OR instr(fields, ?))'])];
    const needles = [JSON.stringify(key), ...(text === undefined ? [] : [text, JSON.stringify(text)])];
    const sql = hasDetails(runs, [...checks, MATCHES_FIELDS].join(' AND '));
    const isSelective = conditions.length > 0 && column === undefined;
    return { ...all([...conditions, { sql, values: [...needles, JSON.stringify(comparison)] }]), isSelective };
  }

  /** Returns the runs that may have this metadata value. Returns undefined if there are many, or if they are unknown. */
  #candidates({ kind, text }: TextPattern): readonly number[] | undefined {
    // The index contains the words of texts and numbers.
    return kind === 'equal' && !/^(?:[[{]|null$|true$|false$)/.test(text) ? this.#search.runsWith(text) : undefined;
  }

  /** Returns whether few rows match. If many rows match, SQLite checks each run in the order of the list. */
  #isRare({ sql, values }: Condition): boolean {
    const count = this.#connection.number(`SELECT count(*) FROM (${sql} LIMIT ?)`, ...values, RARE_MAX + 1);
    return count <= RARE_MAX;
  }
}

export function defineFilterFunctions(connection: SqliteConnection): void {
  connection.define('fields_match', (fields, condition) => {
    const comparison: Comparison = JSON.parse(condition as string);
    const { error, extra }: SmallFields = JSON.parse(fields as string);
    const text =
      comparison.field === 'error' ? errorText(error) : metadataTextOf(extra?.metadata, comparison.key ?? '');
    return +hasValue(comparison, [text]);
  });
  connection.define('feedback_matches', (json, condition) => {
    const feedback: Feedback = JSON.parse(json as string);
    return +isMatchingFeedback(JSON.parse(condition as string), feedback);
  });
}

const MATCHES_FIELDS = 'fields_match(fields, ?)';
const METADATA_COLUMNS: ReadonlyMap<string, string> = new Map([
  ['thread_id', 'thread'],
  ['user_id', 'user'],
]);
const USAGE_COLUMNS = {
  tokens: 'total_tokens',
  input_tokens: 'input_tokens',
  output_tokens: 'output_tokens',
  cost: 'total_cost',
} as const;

/** Translates a tree of conditions. `leaf` translates the conditions that contain no other conditions. */
export function conditionOf(
  node: FilterNode,
  leaf: (node: Comparison | Extract<FilterNode, { anyRun: unknown }>) => Condition,
): Condition {
  if ('all' in node) return all(node.all.map((one) => conditionOf(one, leaf)));
  if ('some' in node) return any(node.some.map((one) => conditionOf(one, leaf)));
  if (!('not' in node)) return leaf(node);
  const { sql, values } = conditionOf(node.not, leaf);
  // A comparison with a missing value is null, which does not match.
  return { sql: `(${sql}) IS NOT TRUE`, values };
}

/** Combines conditions with OR. */
function any(conditions: readonly Condition[]): Condition {
  return {
    sql: conditions.map(({ sql }) => `(${sql})`).join(' OR '),
    values: conditions.flatMap(({ values }) => values),
  };
}

/** Returns a condition on a text column that is null if the run has no value. */
export function ofText(column: string, patterns: readonly TextPattern[]): Condition {
  const equal = patterns.filter(({ kind }) => kind === 'equal').map(({ text }) => text);
  const others = patterns.filter(({ kind }) => kind !== 'equal');
  const among = { sql: equal.length === 1 ? `${column} = ?` : `${column} IN (${marks(equal)})`, values: equal };
  return any([
    ...(equal.length > 0 || others.length === 0 ? [among] : []),
    ...others.map((pattern) => ({ sql: `${column} GLOB ?`, values: [globOf(pattern)] })),
  ]);
}

/** Repeats the condition of the partial index, so that SQLite uses the partial index. */
function ofStatus(column: string, patterns: readonly TextPattern[]): Condition {
  const { sql, values } = ofText(column, patterns);
  const isFailure = patterns.every(({ kind, text }) => kind === 'equal' && text !== 'success');
  return { sql: isFailure ? `(${sql}) AND ${column} <> 'success'` : sql, values };
}

function ofFeedback(comparison: Comparison, runs: string): Condition {
  const { key = '', values: patterns, bounds = [] } = comparison;
  const { sql, values } = all([
    { sql: 'key = ?', values: [key] },
    ...(bounds.length === 0 ? [] : [within('score', bounds)]),
    ...(patterns === undefined ? [] : [{ sql: 'feedback_matches(json, ?)', values: [JSON.stringify(comparison)] }]),
  ]);
  return { sql: `${runs}.n IN (SELECT run FROM feedback WHERE ${sql})`, values };
}

function within(column: string, bounds: readonly Bound[]): Condition {
  return all(bounds.map(({ operator, amount }) => ({ sql: `${column} ${operator} ?`, values: [amount] })));
}

function hasDetails(runs: string, condition: string): string {
  return `EXISTS (SELECT 1 FROM details WHERE details.n = ${runs}.n AND ${condition})`;
}

/** Returns whether only text can have this text as its value. Other values are compared as JSON text. */
function isOnlyText(text: string): boolean {
  return !/^(?:[-\d[{"]|null$|true$|false$)/.test(text);
}

function globOf({ kind, text }: TextPattern): string {
  const escaped = text.replace(/[*?[]/g, '[$&]');
  return `${kind === 'prefix' ? '' : '*'}${escaped}${kind === 'suffix' ? '' : '*'}`;
}

function marks(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}

function ids(values: readonly TextPattern[]): SqlValue[] {
  return values.map(({ text }) => idBytes(text));
}
