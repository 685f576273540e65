import { type Feedback, figuresOf } from '../../../domain/feedback.ts';
import { grouped } from '../../../domain/grouped.ts';
import { firstPage, PAGE_ITEMS, positionOf } from '../../../domain/query/cursor.ts';
import type { ListQuery, Scope, SortKey, SuggestionQuery, TimeRange } from '../../../domain/query/query.ts';
import { metadataKeyOf } from '../../../domain/query/query-keys.ts';
import { projectSummaries } from '../../../domain/run-values.ts';
import type { RunSummary, TraceSummary } from '../../../domain/run-view.ts';
import { SUGGESTED_RUNS_MAX, suggestionsOf } from '../../../domain/statistics/suggestions.ts';
import { listedTrace, type TraceFields } from '../../../domain/trace/trace-summary.ts';
import { ALL_RUNS, inProject, type Parsed, type RunFilter, withinProject } from '../../../filter/run-filter.ts';
import { all } from '../../../filter/sql.ts';
import { type ClickHouse, float, integer, integers, type Query, type Sql, sql, string, uuids } from '../connection.ts';
import { directionOf, insideOf, metadataValue, rangeConditions, rowCondition, traceColumn } from './conditions.ts';
import { feedbackIn, type RunRow } from './reads.ts';
import { NO_ITEM, searchConditions } from './search.ts';

/** A row of the table `runs`. Its position in the list is `value`, then `n`. */
interface ListedRow extends Omit<RunRow, 'dotted_order'> {
  readonly n: number;
  readonly value: number | null;
  /** The run's summary as JSON, without its ids and previews, and with its `ToolMessages`. */
  readonly summary: string;
  readonly previews: string;
  /** `StoredTotals` as JSON if the run is the root, otherwise an empty string. */
  readonly shown_totals: string;
}

/** The totals of a trace, and the fields that are not those of its root. */
export type StoredTotals = TraceFields & Pick<TraceSummary, 'trace'>;

export const list: Query<'list'> = async (db, scope, query) => {
  const { items, ...next } = await pageOfRows(db, scope, query, 'runs');
  return { items: items.map(summaryOf), ...next };
};

function summaryOf({ id, trace, summary, previews }: ListedRow): RunSummary {
  const { tools: _, ...listed } = JSON.parse(summary);
  return { id, trace_id: trace, ...listed, ...JSON.parse(previews) };
}

export const traces: Query<'traces'> = async (db, scope, query) => {
  const { items: rows, ...next } = await pageOfRows(db, scope, query, 'traces');
  const groups = rows.map(({ group_id }) => group_id);
  const feedback = await feedbackByTrace(db, scope, groups);
  const items = rows.map((row): TraceSummary => {
    const { trace, ...shown }: StoredTotals = JSON.parse(row.shown_totals);
    const figures = figuresOf(feedback.get(row.trace) ?? []);
    return listedTrace(summaryOf(row), shown, { ...trace, ...(figures.length > 0 && { feedback: figures }) });
  });
  return { items, ...next };
};

export const projects: Query<'projects'> = async (db, scope, range) => {
  const where = rowCondition(scope.tenant, withinProject(scope, { ...ALL_RUNS, range }));
  return projectSummaries(
    await db.rows(sql`SELECT project, count() AS traces, max(start_us) AS last_us FROM runs FINAL
      WHERE ${where} AND is_root = 1 GROUP BY project`),
  );
};

export const suggestions: Query<'suggestions'> = async (db, scope, { field, text = '', project }) => {
  const filter = withinProject(scope, inProject(project));
  const selected = suggestedColumn(field);
  const rows = await firstRows(db, scope.tenant, filter.range, true, SUGGESTED_RUNS_MAX, async (range, limit) => {
    const where = rowCondition(scope.tenant, { ...filter, range });
    return await db.rows<{ id: string; group_id: string; value: string | null | readonly string[] }>(
      sql`SELECT id, group_id, ${selected} AS value FROM runs FINAL WHERE ${where}
        ORDER BY start_us DESC, n DESC LIMIT ${integer(limit)}`,
    );
  });
  const values = field === 'feedback' ? await feedbackKeys(db, scope.tenant, rows) : rows.map(({ value }) => value);
  const lists = values.map((value) => (Array.isArray(value) ? value : [(value as string | null) ?? undefined]));
  return suggestionsOf(lists, text);
};

/** Returns an SQL expression for the values that a run has for a field, as a single value or an array. */
function suggestedColumn(field: SuggestionQuery['field']): Sql {
  const key = metadataKeyOf(field);
  if (key !== undefined) return metadataValue(key);
  return sql(field.startsWith('meta') ? 'mapKeys(metadata)' : (SUGGESTED_COLUMNS.get(field) ?? 'NULL'));
}

const SUGGESTED_COLUMNS: ReadonlyMap<string, string> = new Map([
  ...['name', 'model', 'status', 'project', 'thread', 'user'].map((column) => [column, column] as const),
  ['type', 'run_type'],
  ['tag', 'tags'],
]);

async function feedbackKeys(
  db: ClickHouse,
  tenant: string,
  runs: readonly { readonly id: string; readonly group_id: string }[],
): Promise<string[][]> {
  const groups = uuids([...new Set(runs.map(({ group_id }) => group_id))]);
  const ids = uuids(runs.map(({ id }) => id));
  const rows = await db.rows<{ keys: string[] }>(
    sql`SELECT groupArray(key) AS keys FROM feedback FINAL
      WHERE tenant = ${string(tenant)} AND group_id IN (${groups}) AND run IN (${ids}) GROUP BY run`,
  );
  return rows.map(({ keys }) => keys);
}

async function pageOfRows(db: ClickHouse, scope: Scope, query: Parsed<ListQuery>, listed: 'runs' | 'traces') {
  const { limit = PAGE_ITEMS } = query;
  return firstPage(await firstListed(db, scope, query, listed, limit + 1), limit, (row) => row);
}

async function firstListed(
  db: ClickHouse,
  scope: Scope,
  query: Parsed<ListQuery>,
  listed: 'runs' | 'traces',
  limit: number,
): Promise<ListedRow[]> {
  const { tenant } = scope;
  const { sort = 'start_time', order = 'descending', cursor } = query;
  const filter = withinProject(scope, query.filter);
  const [isByStart, isDescending] = [sort === 'start_time', order === 'descending'];
  const column = sortColumn(sort, listed, filter);
  const after = cursor === undefined ? [] : [following(positionOf(cursor), column, isDescending)];
  const isRoot = listed === 'traces' ? [sql('is_root = 1')] : [];
  const read = async (range: TimeRange, rowsMax: number): Promise<ListedRow[]> => {
    const inRange = { ...filter, range };
    const needed = { isDescending, limit: rowsMax, condition: all(after) };
    const found = await searchConditions(db, tenant, inRange, listed, isByStart ? needed : undefined);
    if (found[0] === NO_ITEM) return [];
    const condition = all([
      rowCondition(tenant, inRange, listed === 'traces' ? 'trace' : 'run'),
      ...after,
      ...isRoot,
      ...found,
    ]);
    // The search has found the start times.
    const first = isByStart && filter.search !== undefined ? firstFinal : firstMatching;
    return await first(db, condition, {
      column,
      isDescending,
      limit: rowsMax,
      totals: sql(traceColumn('totals', filter)),
    });
  };
  const range = isByStart && cursor !== undefined ? rangeAfter(filter.range, cursor, isDescending) : filter.range;
  if (!isByStart || filter.search === undefined) return await read(range, limit);
  return await firstRows(db, tenant, range, isDescending, limit, read);
}

/** Order and number of the rows of a page. Rows with the same value are sorted by `n`. */
interface Sorting {
  readonly column: Sql;
  readonly isDescending: boolean;
  readonly limit: number;
  /** SQL expression for the `StoredTotals`. */
  readonly totals: Sql;
}

/** Maximum number of row versions that are read to find candidates. */
const VERSIONS_MAX = 50_000;

/**
 * Returns the first rows that match a condition. `FINAL` is slow on many rows, so the first query finds candidates in
 * all row versions without it, and the second query reads only the candidates with `FINAL`.
 */
async function firstMatching(db: ClickHouse, condition: Sql, sorting: Sorting): Promise<ListedRow[]> {
  const { column, isDescending, limit } = sorting;
  // Sorting by `start_us` alone is faster. The second query reads all rows with the start times that were found.
  const order = column === START ? orderByValue(sorting) : orderOf(sorting);
  for (let versions = 2 * limit; versions < VERSIONS_MAX; versions *= 8) {
    const found = await db.rows<Pick<ListedRow, 'start_us' | 'n' | 'value'>>(
      sql`SELECT start_us, n, ${column} AS value FROM runs
        WHERE is_deleted = 0 AND (${condition}) ${order} LIMIT ${integer(versions)}`,
    );
    if (found.length === 0) return [];
    const last = found[versions - 1];
    const beyond = last === undefined ? sql('0') : following(last, column, isDescending);
    const candidates = all([
      sql`start_us IN (${integers([...new Set(found.map(({ start_us }) => start_us))])})`,
      condition,
      sql`NOT (${beyond})`,
    ]);
    const rows = await firstFinal(db, candidates, sorting);
    if (last === undefined || rows.length === limit) return rows;
  }
  return await firstFinal(db, condition, sorting);
}

/** Returns the first rows that match a condition. Reads all matching rows with `FINAL`. */
async function firstFinal(db: ClickHouse, condition: Sql, sorting: Sorting): Promise<ListedRow[]> {
  return await db.rows<ListedRow>(
    sql`SELECT id, trace, group_id, start_us, n, ${sorting.column} AS value, summary, previews,
        ${sorting.totals} AS shown_totals FROM runs FINAL
      WHERE ${condition} ${orderOf(sorting)} LIMIT ${integer(sorting.limit)}`,
  );
}

function orderByValue({ column, isDescending }: Sorting): Sql {
  return sql`ORDER BY ${column} ${directionOf(isDescending)} NULLS LAST`;
}

function orderOf(sorting: Sorting): Sql {
  return sql`${orderByValue(sorting)}, n ${directionOf(sorting.isDescending)}`;
}

const START = sql('start_us');

function sortColumn(sort: SortKey, listed: 'runs' | 'traces', filter: RunFilter): Sql {
  if (sort === 'start_time') return START;
  if (sort === 'latency') return sql('latency_us');
  return sql(listed === 'traces' ? traceColumn(`trace_total_${sort}`, filter) : `total_${sort}`);
}

function following({ value, n }: Pick<ListedRow, 'value' | 'n'>, column: Sql, isDescending: boolean): Sql {
  const isLater = sql`n ${sql(isDescending ? '<' : '>')} ${integer(n)}`;
  if (value === null) return sql`${column} IS NULL AND ${isLater}`;
  const isBeyond = sql`${column} ${sql(isDescending ? '<' : '>')} ${float(value)}`;
  return sql`${isBeyond} OR (${column} = ${float(value)} AND ${isLater}) OR ${column} IS NULL`;
}

function rangeAfter({ fromUs, beforeUs }: TimeRange, cursor: string, isDescending: boolean): TimeRange {
  const us = positionOf(cursor).value ?? 0;
  return isDescending ? { fromUs, beforeUs: Math.min(beforeUs, us + 1) } : { fromUs: Math.max(fromUs, us), beforeUs };
}

const DAY_US = 86_400_000_000;

/** Returns the first or last rows of a range. Reads one day, then eight, then the rest, until there are enough. */
async function firstRows<Row>(
  db: ClickHouse,
  tenant: string,
  range: TimeRange,
  isDescending: boolean,
  limit: number,
  read: (range: TimeRange, limit: number) => Promise<Row[]>,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const window of await windows(db, tenant, range, isDescending)) {
    rows.push(...(await read(window, limit - rows.length)));
    if (rows.length >= limit) break;
  }
  return rows;
}

/**
 * Splits a time range one day and nine days after `startUs`, by default the start time of the first run. If
 * `isDescending` is true, counts back from `startUs` or the last run, and returns the latest part first.
 */
export async function windows(
  db: ClickHouse,
  tenant: string,
  range: TimeRange,
  isDescending: boolean,
  startUs?: number,
): Promise<TimeRange[]> {
  if (startUs !== undefined) return windowsOf(range, startUs, isDescending);
  const where = all([sql`tenant = ${string(tenant)} AND is_deleted = 0`, ...rangeConditions(range)]);
  const [first] = await db.rows<{ start_us: number }>(
    sql`SELECT start_us FROM runs WHERE ${where} ORDER BY start_us ${directionOf(isDescending)} LIMIT 1`,
  );
  return first === undefined ? [] : windowsOf(range, first.start_us, isDescending);
}

function windowsOf({ fromUs, beforeUs }: TimeRange, firstUs: number, isDescending: boolean): TimeRange[] {
  const edges = [DAY_US, 9 * DAY_US].map((us) => (isDescending ? firstUs - us : firstUs + us));
  const inside = edges.filter((us) => us > fromUs && us < beforeUs);
  if (!isDescending) {
    const starts = [fromUs, ...inside];
    return starts.map((start, at) => ({ fromUs: start, beforeUs: starts[at + 1] ?? beforeUs }));
  }
  const ends = [beforeUs, ...inside];
  return ends.map((end, at) => ({ fromUs: ends[at + 1] ?? fromUs, beforeUs: end }));
}

/** Returns the feedback on the visible runs of these groups that are in the scope, by trace id. */
export async function feedbackByTrace(
  db: ClickHouse,
  scope: Scope,
  groups: readonly string[],
): Promise<Map<string, Feedback[]>> {
  if (groups.length === 0) return new Map();
  const all = await feedbackIn(db, scope.tenant, groups);
  const tracesOfRuns = await tracesOf(db, scope, [...new Set(all.map(({ run_id }) => run_id))]);
  const visible = all.filter(({ run_id }) => tracesOfRuns.has(run_id));
  return grouped(visible, ({ run_id }) => tracesOfRuns.get(run_id) ?? '');
}

async function tracesOf(db: ClickHouse, scope: Scope, runs: readonly string[]): Promise<Map<string, string>> {
  if (runs.length === 0) return new Map();
  // Skip indexes are safe with `FINAL` here, because all versions of a row have the same id.
  const rows = await db.rows<{ id: string; trace: string }>(
    sql`SELECT id, trace FROM runs FINAL
      WHERE ${insideOf(scope.tenant, withinProject(scope, ALL_RUNS))} AND id IN (${uuids(runs)})
      SETTINGS use_skip_indexes_if_final = 1`,
  );
  return new Map(rows.map(({ id, trace }) => [id, trace]));
}
