import { definedOrNone } from '../../../../payload/fields.ts';
import { figuresOf } from '../../../domain/feedback.ts';
import { firstPage, PAGE_ITEMS, positionOf } from '../../../domain/query/cursor.ts';
import type { Scope, ThreadQuery } from '../../../domain/query/query.ts';
import type { TraceOutcome, Usage } from '../../../domain/run-view.ts';
import { USAGE_KEYS } from '../../../domain/summary.ts';
import { type Turn, threadSummaryOf } from '../../../domain/trace/trace-summary.ts';
import { ALL_RUNS, type Parsed, type RunFilter, withinProject } from '../../../filter/run-filter.ts';
import { all } from '../../../filter/sql.ts';
import {
  type ClickHouse,
  integer,
  integers,
  type Query,
  type Sql,
  sql,
  string,
  strings,
  uuids,
} from '../connection.ts';
import { rowCondition, traceColumn } from './conditions.ts';
import { feedbackByTrace, type StoredTotals, windows } from './lists.ts';
import { searchConditions } from './search.ts';

/** A thread, and the position of its latest turn that matches the filter. Threads are sorted by this position. */
interface LatestRow {
  readonly thread: string;
  readonly latest_us: number;
  readonly latest_n: number;
}

type TurnRow = {
  readonly id: string;
  readonly group_id: string;
  readonly trace: string;
  readonly thread: string;
  readonly start_us: number;
  readonly latency_us: number | null;
  readonly turn_outcome: TraceOutcome;
  readonly project: string;
  readonly user: string | null;
} & { readonly [Key in keyof Usage as `turn_${Key}`]-?: number | null };

export const threads: Query<'threads'> = async (db, scope, query) => {
  const { limit = PAGE_ITEMS } = query;
  const found = await latestTurns(db, scope, query, limit + 1);
  const { items: shown, ...next } = firstPage(found, limit, (row) => ({ value: row.latest_us, n: row.latest_n }));
  const inProject = withinProject(scope, { ...ALL_RUNS, projects: query.filter.projects });
  const names = shown.map(({ thread }) => thread);
  return { items: await summaries(db, scope, names, inProject), ...next };
};

/** Returns threads by their latest matching turn, newest first. Reads turns until there are enough threads. */
async function latestTurns(db: ClickHouse, scope: Scope, { cursor, ...query }: Parsed<ThreadQuery>, limit: number) {
  const filter = withinProject(scope, query.filter);
  const last = cursor === undefined ? undefined : positionOf(cursor);
  const after = last === undefined ? sql('1') : sql`latest < (${integer(last.value ?? 0)}, ${integer(last.n)})`;
  const latestUs = last?.value ?? undefined;
  let rows: LatestRow[] = [];
  for (const { fromUs } of await windows(db, scope.tenant, filter.range, true, latestUs)) {
    const inWindow = { ...filter, range: { ...filter.range, fromUs } };
    const where = all([
      rowCondition(scope.tenant, inWindow, 'trace'),
      sql('is_root = 1 AND thread IS NOT NULL'),
      ...(await searchConditions(db, scope.tenant, inWindow, 'traces')),
    ]);
    rows = await db.rows<LatestRow>(
      sql`SELECT thread, max((start_us, n)) AS latest, latest.1 AS latest_us, latest.2 AS latest_n FROM runs FINAL
        WHERE ${where} GROUP BY thread HAVING ${after} ORDER BY latest DESC LIMIT ${integer(limit)}`,
    );
    if (rows.length >= limit) break;
  }
  return rows;
}

/** Returns the summaries of threads. Only root runs that match the filter count as turns. */
async function summaries(db: ClickHouse, scope: Scope, names: readonly string[], filter: RunFilter) {
  if (names.length === 0) return [];
  const { tenant } = scope;
  const inThreads = all([rowCondition(tenant, filter), sql`is_root = 1 AND thread IN (${strings(names)})`]);
  const where = all([startingWith(tenant, inThreads), inThreads]);
  const usage = sql(USAGE_KEYS.map((key) => `${traceColumn(`trace_${key}`, filter)} AS turn_${key}`).join(', '));
  const outcome = sql(traceColumn('outcome', filter));
  const rows = await db.rows<TurnRow>(
    sql`SELECT id, group_id, trace, thread, start_us, latency_us, ${outcome} AS turn_outcome, project, user, ${usage}
      FROM runs FINAL
      WHERE ${where} ORDER BY start_us, n`,
  );
  const turns = new Map<string, TurnRow[]>(names.map((name) => [name, []]));
  for (const row of rows) turns.get(row.thread)?.push(row);
  const ends = [...turns.values()].flatMap((own) => [own[0], own.at(-1)]).filter((row) => row !== undefined);
  const shown = await storedTotals(db, tenant, ends, sql(traceColumn('totals', filter)));
  const shownOf = (row: TurnRow | undefined): Partial<StoredTotals> => JSON.parse(shown.get(row?.id ?? '') ?? '{}');
  const groups = rows.map(({ group_id }) => group_id);
  const feedback = await feedbackByTrace(db, scope, groups);
  return [...turns].flatMap(([name, own]) => {
    const [first, ...others] = own.map(turnOf);
    // The thread was deleted since the first query.
    if (first === undefined) return [];
    return threadSummaryOf(name, [first, ...others], {
      inputs_preview: shownOf(own[0]).inputs_preview,
      outputs_preview: shownOf(own.at(-1)).outputs_preview,
      feedback: figuresOf(own.flatMap(({ trace }) => feedback.get(trace) ?? [])),
    });
  });
}

/** Limits a query to the start times of matching rows, so that `FINAL` reads few rows if few match. */
function startingWith(tenant: string, condition: Sql): Sql {
  const starts = sql`SELECT start_us FROM runs WHERE is_deleted = 0 AND (${condition})`;
  return sql`tenant = ${string(tenant)} AND start_us IN (${starts})`;
}

/** Returns the `StoredTotals` of roots as JSON, by run id. Deleted runs have no entry. */
async function storedTotals(
  db: ClickHouse,
  tenant: string,
  keys: readonly TurnRow[],
  column: Sql,
): Promise<Map<string, string>> {
  if (keys.length === 0) return new Map();
  const starts = integers([...new Set(keys.map(({ start_us }) => start_us))]);
  const ids = uuids(keys.map(({ id }) => id));
  const rows = await db.rows<{ id: string; shown: string }>(
    sql`SELECT id, ${column} AS shown FROM runs FINAL
      WHERE tenant = ${string(tenant)} AND start_us IN (${starts}) AND id IN (${ids})`,
  );
  return new Map(rows.map(({ id, shown }) => [id, shown]));
}

function turnOf(row: TurnRow): Turn {
  const { start_us, latency_us, turn_outcome: outcome, project, user } = row;
  const usage = Object.fromEntries(USAGE_KEYS.map((key) => [key, row[`turn_${key}`] ?? undefined]));
  return {
    startUs: start_us,
    latencyUs: latency_us ?? undefined,
    outcome,
    project,
    user: user ?? undefined,
    usage: definedOrNone<Usage>(usage),
  };
}
