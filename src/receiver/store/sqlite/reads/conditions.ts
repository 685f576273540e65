import { parseExact } from '../../../../payload/fields.ts';
import { mayBeCut } from '../../../domain/comparable.ts';
import type { Feedback } from '../../../domain/feedback.ts';
import { comparedError, metadataTextOf } from '../../../domain/run-values.ts';
import type { SmallFields } from '../../../domain/summary.ts';
import { RunFlag } from '../../../domain/trace/trace-summary.ts';
import type { Comparison, FilterNode, TextPattern } from '../../../filter/filter.ts';
import { hasValue, isMatchingFeedback } from '../../../filter/match.ts';
import type { RunFilter } from '../../../filter/run-filter.ts';
import { all, COLUMNS, conditionOf, type Dialect, isUsage, marks, ofText, withinBounds } from '../../../filter/sql.ts';
import { idBytes, type SqliteConnection, type SqlValue } from '../file/database.ts';
import { type Condition, figureSql, isKept, latencyUs, ofProject, ofTraces, outcomeSql } from './lists.ts';
import { RARE_MAX, type SqliteSearch } from './search.ts';

export class SqlFilter {
  readonly #connection: SqliteConnection;
  readonly #search: SqliteSearch;
  readonly #tenant: number;
  readonly #filter: RunFilter;
  /** Whether `#among` selects the runs, so that no other condition should. */
  #isNarrow = false;

  constructor(connection: SqliteConnection, search: SqliteSearch, tenant: number, filter: RunFilter) {
    this.#connection = connection;
    this.#search = search;
    this.#tenant = tenant;
    this.#filter = filter;
  }

  /** Returns SQL conditions for the filter, except for `search`. `usage` is the table with the tokens and costs. */
  conditions(usage: 'runs' | 'traces' = 'runs'): Condition[] {
    const { range, conditions, projects } = this.#filter;
    const isBounded = Number.isFinite(range.fromUs) || Number.isFinite(range.beforeUs);
    const selected = [
      ...this.#among(conditions),
      ...conditions.map((node) => conditionOf(node, this.#dialect('runs', usage))),
    ];
    const isSelective = selected.some((condition) => condition.isSelective);
    return [
      // The plus sign prevents SQLite from using indexes that begin with the tenant.
      { sql: isSelective ? '+runs.tenant = ?' : 'runs.tenant = ?', params: [this.#tenant] },
      // Without the plus sign, this condition makes SQLite prefer the index on the start to the index on the user.
      ...(isBounded ? [] : [isVisible(conditions.length + projects.length > 0 ? '+runs' : 'runs')]),
      ...this.#projects('runs'),
      ...(Number.isFinite(range.fromUs) ? [{ sql: 'runs.start_us >= ?', params: [range.fromUs] }] : []),
      ...(Number.isFinite(range.beforeUs) ? [{ sql: 'runs.start_us < ?', params: [range.beforeUs] }] : []),
      ...selected,
      isKept('runs'),
    ];
  }

  inside(runs: string): Condition[] {
    return [isVisible(runs), isKept(runs), ...this.#projects(runs)];
  }

  /** Selects the runs with the words of several tags and metadata values. The index begins with the rarest word. */
  #among(conditions: readonly FilterNode[]): Condition[] {
    const texts = conditions.flatMap((node) => indexedText(node) ?? []);
    const found = texts.length > 1 ? this.#search.runsWith(texts) : undefined;
    this.#isNarrow = found !== undefined;
    return found === undefined ? [] : [{ ...ofKeys('runs', found), isSelective: true }];
  }

  #projects(runs: string): Condition[] {
    return this.#filter.projects.map((project) => ofProject(this.#connection, this.#tenant, project, runs));
  }

  /** Returns the dialect for conditions on the tables with these aliases. `usage` is the table with the tokens and costs. */
  #dialect(runs: string, usage: string): Dialect<SqlValue> {
    return {
      ...SPELLING,
      column: (field) => {
        if (field === 'latency') return latencyUs(runs);
        if (field === 'internal') return `(${runs}.flags & ${RunFlag.INTERNAL} > 0)`;
        const column = COLUMNS[field] ?? field;
        if (usage === 'traces' && isUsage(field)) return figureSql(column, this.#filter.isLimited);
        return `${isUsage(field) ? usage : runs}.${column}`;
      },
      own: (comparison) => this.#own(comparison, runs),
      anyRun: (node) => this.#anyRun(node),
    };
  }

  #anyRun(node: FilterNode): Condition {
    const { sql, params } = all([...this.inside('others'), conditionOf(node, this.#dialect('others', 'others'))]);
    const found = {
      sql: `SELECT others.trace FROM runs AS others WHERE others.tenant = ? AND ${sql}`,
      params: [this.#tenant, ...params],
    };
    const isSelective = this.#isRare(found);
    if (isSelective) return { sql: `runs.trace IN (${found.sql})`, params: found.params, isSelective };
    return { sql: `EXISTS (SELECT 1 FROM runs AS others WHERE others.trace = runs.trace AND ${sql})`, params };
  }

  #own(comparison: Comparison, runs: string): Condition | undefined {
    const { field, values = [] } = comparison;
    switch (field) {
      case 'run': {
        const found = `SELECT n FROM runs WHERE tenant = ? AND id IN (${marks(values)})`;
        return { sql: `${runs}.n IN (${found})`, params: [this.#tenant, ...ids(values)], isSelective: true };
      }
      case 'trace': {
        const texts = values.map(({ text }) => text);
        return { ...ofTraces(this.#tenant, texts, runs), isSelective: true };
      }
      case 'status':
        return ofStatus(`${runs}.status`, values, ['success']);
      case 'outcome':
        return ofStatus(outcomeSql(runs, this.#filter.isLimited), values, ['success', 'pending']);
      case 'tag':
        return this.#tag(values, runs);
      case 'feedback':
        return ofFeedback(comparison, runs);
      case 'error': {
        // If a run has an error, its status is never `success`.
        const sql = `${runs}.status <> 'success' AND ${hasDetails(runs, MATCHES_FIELDS)}`;
        return { sql, params: [JSON.stringify(comparison)] };
      }
      case 'meta':
        return this.#metadata(comparison, runs);
      default:
        return undefined;
    }
  }

  #tag(patterns: readonly TextPattern[], runs: string): Condition {
    const { sql, params } = all([{ sql: 'tenant = ?', params: [this.#tenant] }, ofText('tag', patterns, SPELLING)]);
    const found = { sql: `SELECT n FROM tags WHERE ${sql}`, params };
    // The table has an index on the tag and the run, but no index on the run alone.
    const isSelective = !this.#isNarrow && this.#isRare(found);
    const isSelected = isSelective || patterns.some(({ kind }) => kind !== 'equal');
    const condition = isSelected ? `${runs}.n IN (${found.sql})` : `EXISTS (${found.sql} AND n = ${runs}.n)`;
    return { sql: condition, params, isSelective };
  }

  #metadata(comparison: Comparison, runs: string): Condition {
    const { key = '', values: patterns = [] } = comparison;
    const [text] = patterns.length === 1 && patterns[0]?.kind === 'equal' ? [patterns[0].text] : [];
    const column = METADATA_COLUMNS.get(key);
    const conditions: Condition[] = [];
    // A value that is no text is compared as JSON text.
    if (text !== undefined && column !== undefined && !/^(?:[-\d[{"]|null$|true$|false$)/.test(text)) {
      conditions.push({ sql: `${runs}.${column} = ?`, params: [text] });
    } else if (!this.#isNarrow) {
      const found = patterns.map((pattern) => (isIndexed(pattern) ? this.#search.runsWith([pattern.text]) : undefined));
      if (found.length > 0 && found.every((runsFound) => runsFound !== undefined)) {
        conditions.push(ofKeys(runs, found.flat()));
      }
    }
    // For speed, search the JSON text for the key and the value before parsing it. In JSON, strings have quotes and other
    // values do not. A text with U+FFFD, or a cut one, may have another form in the JSON, see `comparable`.
    const found = text === undefined || text.includes('\ufffd') || mayBeCut(text) ? [] : [text, JSON.stringify(text)];
    const checks = ['instr(fields, ?)', ...(found.length === 0 ? [] : ['(instr(fields, ?) OR instr(fields, ?))'])];
    const needles = [mayBeCut(key) ? '' : JSON.stringify(key), ...found];
    const sql = hasDetails(runs, [...checks, MATCHES_FIELDS].join(' AND '));
    const isSelective = conditions.length > 0 && column === undefined;
    return { ...all([...conditions, { sql, params: [...needles, JSON.stringify(comparison)] }]), isSelective };
  }

  /** Returns whether few rows match. If many rows match, SQLite checks each run in the order of the list. */
  #isRare({ sql, params }: Condition): boolean {
    const count = this.#connection.number(`SELECT count(*) FROM (${sql} LIMIT ?)`, ...params, RARE_MAX + 1);
    return count <= RARE_MAX;
  }
}

/** Returns whether the index contains the words of a metadata value. It contains those of texts and numbers. */
function isIndexed({ kind, text }: TextPattern): boolean {
  return kind === 'equal' && !mayBeCut(text) && !/^(?:[[{]|null$|true$|false$)/.test(text);
}

/** Returns the tag or metadata value that a run must have, if only the index of words finds it. */
function indexedText(node: FilterNode): string | undefined {
  if (!('field' in node) || METADATA_COLUMNS.has(node.key ?? '') || node.values?.length !== 1) return undefined;
  const [value] = node.values;
  return (node.field === 'meta' || node.field === 'tag') && value && isIndexed(value) ? value.text : undefined;
}

function ofKeys(runs: string, keys: readonly number[]): Condition {
  return { sql: `${runs}.n IN (SELECT value FROM json_each(?))`, params: [JSON.stringify(keys)] };
}

function isVisible(runs: string): Condition {
  return { sql: `${runs}.start_us IS NOT NULL`, params: [] };
}

/** A condition that is true for all runs. Ends a query that must end. Calls a function for one of 64 runs, for speed. */
export const IS_GOING_ON: Condition = { sql: '(runs.n & 63 OR is_going_on(runs.n))', params: [] };

/** Defines the functions of conditions. `check` throws to end the query. */
export function defineFilterFunctions(connection: SqliteConnection, check: () => void): void {
  connection.define('is_going_on', (_n) => {
    check();
    return 1;
  });
  const parsedComparison = remembered((json): Comparison => JSON.parse(json));
  // A query with several conditions calls the function for the same row several times.
  const parsedFields = remembered((json): SmallFields => parseExact(json), 1);
  connection.define('fields_match', (fields, condition) => {
    check();
    const comparison = parsedComparison(condition as string);
    const { error, extra } = parsedFields(fields as string);
    const text =
      comparison.field === 'error' ? comparedError(error) : metadataTextOf(extra?.metadata, comparison.key ?? '');
    return +hasValue(comparison, [text]);
  });
  connection.define('feedback_matches', (json, condition) => {
    const feedback: Feedback = parseExact(json as string);
    return +isMatchingFeedback(JSON.parse(condition as string), feedback);
  });
}

/** Returns a function that remembers its latest results, at most `most` of them. */
export function remembered<Value>(read: (json: string) => Value, most = 100): (json: string) => Value {
  const known = new Map<string, Value>();
  return (json) => {
    const value = known.get(json) ?? read(json);
    if (known.size >= most && !known.has(json)) known.clear();
    known.set(json, value);
    return value;
  };
}

const MATCHES_FIELDS = 'fields_match(fields, ?)';
const METADATA_COLUMNS: ReadonlyMap<string, string> = new Map(Object.entries({ thread_id: 'thread', user_id: 'user' }));

/** Spells values and parts of texts. `GLOB` distinguishes upper and lower case. */
export const SPELLING: Pick<Dialect<SqlValue>, 'param' | 'part'> = {
  param: (value) => value,
  part: (column, { kind, text }) => {
    const escaped = text.replace(/[*?[]/g, '[$&]');
    const glob = `${kind === 'prefix' ? '' : '*'}${escaped}${kind === 'suffix' ? '' : '*'}`;
    return { sql: `${column} GLOB ?`, params: [glob] };
  },
};

/** Repeats the condition of the partial index, which leaves out `unlisted`, so that SQLite uses the partial index. */
function ofStatus(column: string, patterns: readonly TextPattern[], unlisted: readonly string[]): Condition {
  const { sql, params } = ofText(column, patterns, SPELLING);
  const isListed = patterns.every(({ kind, text }) => kind === 'equal' && !unlisted.includes(text));
  const names = unlisted.map((text) => `'${text}'`).join(', ');
  const others = unlisted.length === 1 ? `<> ${names}` : `NOT IN (${names})`;
  return { sql: isListed ? `(${sql}) AND ${column} ${others}` : sql, params };
}

function ofFeedback(comparison: Comparison, runs: string): Condition {
  const { key = '', values: patterns, bounds = [] } = comparison;
  const { sql, params } = all([
    { sql: 'key = ?', params: [key] },
    withinBounds('score', bounds, SPELLING),
    ...(patterns === undefined ? [] : [{ sql: 'feedback_matches(json, ?)', params: [JSON.stringify(comparison)] }]),
  ]);
  return { sql: `${runs}.n IN (SELECT run FROM feedback WHERE ${sql})`, params };
}

function hasDetails(runs: string, condition: string): string {
  return `EXISTS (SELECT 1 FROM details WHERE details.n = ${runs}.n AND ${condition})`;
}

function ids(values: readonly TextPattern[]): SqlValue[] {
  return values.map(({ text }) => idBytes(text));
}
