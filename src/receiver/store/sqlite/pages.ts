import { cursorOf, type Position } from '../../query/cursor.ts';
import type { Page, SortKey } from '../../query/query.ts';
import type { RunFilter } from '../run-filter.ts';
import { all, type Condition, LATENCY_US } from './conditions.ts';
import type { SqliteConnection } from './database.ts';
import { LISTED, type ListedRow } from './listed-run.ts';

/** A page of a list. */
export interface PageQuery {
  readonly filter: RunFilter;
  readonly sort: SortKey;
  readonly order: 'ascending' | 'descending';
  readonly after: Position | undefined;
  readonly limit: number;
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

/** Sorts the keys first, so that the other columns are read only for the page. */
export function rowsOfPage(
  connection: SqliteConnection,
  { sort, order, after, limit }: PageQuery,
  from: string,
  conditions: readonly Condition[],
  sorts: Readonly<Record<SortKey, string>>,
): Page<ListedRow> {
  const value = sorts[sort];
  const direction = order === 'descending' ? 'DESC' : 'ASC';
  const { sql, values } = all(after === undefined ? conditions : [...conditions, following(after, value, order)]);
  // Visible runs have a start, so the index returns them in order.
  const orderBy = `${sort === 'start_time' ? '' : `${value} IS NULL, `}${value} ${direction}, runs.n ${direction}`;
  const keys = connection.all<{ n: number; value: number | null }>(
    `SELECT runs.n AS n, ${value} AS value FROM ${from} WHERE ${sql} ORDER BY ${orderBy} LIMIT ?`,
    ...values,
    limit + 1,
  );
  const shown = keys.slice(0, limit);
  const items = shown.flatMap(({ n }) => connection.one<ListedRow>(LISTED, n) ?? []);
  const last = shown.at(-1);
  return keys.length > limit && last !== undefined ? { items, next: cursorOf(last) } : { items };
}

/** The condition for items after a position. */
function following({ value, n }: Position, column: string, order: PageQuery['order']): Condition {
  const sign = order === 'descending' ? '<' : '>';
  if (value === null) return { sql: `${column} IS NULL AND runs.n ${sign} ?`, values: [n] };
  const sql = `(${column}, runs.n) ${sign} (?, ?)`;
  return { sql: column === RUN_SORTS.start_time ? sql : `${sql} OR ${column} IS NULL`, values: [value, n] };
}
