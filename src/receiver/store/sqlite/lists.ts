import { cursorOf, PAGE_ITEMS, positionOf } from '../../query/cursor.ts';
import type { ListQuery, Page, Ranged, SortKey } from '../../query/query.ts';
import { outlineOf, type PayloadFacts, previewsIn, summaryOf } from '../run-summary.ts';
import type { RunOutline, RunSummary } from '../run-view.ts';
import type { RunFields } from '../store.ts';
import { all, type Condition, LATENCY_US } from './conditions.ts';
import { idText, type SqliteConnection } from './database.ts';
import { factsIn, readPayload } from './payloads.ts';
import { fieldsOf, SELECT_RUNS, type SelectedRun, usageIn } from './run-row.ts';

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

/** Reads a page of `from`. Sorts the keys first, so that the other columns are read only for the page. */
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
  // Visible runs have a start, so the index returns them in order.
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

/** The condition for items after a cursor. */
function following(cursor: string, column: string, order: ListQuery['order']): Condition {
  const { value, n } = positionOf(cursor);
  const sign = order === 'descending' ? '<' : '>';
  if (value === null) return { sql: `${column} IS NULL AND runs.n ${sign} ?`, values: [n] };
  const sql = `(${column}, runs.n) ${sign} (?, ?)`;
  return { sql: column === RUN_SORTS.start_time ? sql : `${sql} OR ${column} IS NULL`, values: [value, n] };
}

/** Returns a run of a list. Previews of large payloads are stored, others are made from the payloads. */
export function summaryIn(connection: SqliteConnection, row: SelectedRun): RunSummary {
  const facts = storedFactsIn(row);
  const payloads: RunFields = {};
  for (const field of ['inputs', 'outputs'] as const) {
    const text = facts[`${field}_preview`] === undefined ? readPayload(connection, row.n, field) : undefined;
    if (text !== undefined) payloads[field] = JSON.parse(text);
  }
  return summaryWith(row, { ...facts, ...previewsIn(payloads) });
}

/** Returns a run of an outline. */
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
