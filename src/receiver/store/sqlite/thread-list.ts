import type { Page, ThreadQuery } from '../../domain/query.ts';
import type { ThreadSummary, TraceOutcome, TraceSummary } from '../../domain/run-view.ts';
import { USAGE_KEYS } from '../../domain/summary.ts';
import { type Turn, threadSummaryOf } from '../../domain/thread-summary.ts';
import type { Parsed, RunFilter } from '../../filter/run-filter.ts';
import { all } from '../../filter/sql.ts';
import type { Row, SqliteConnection } from './database.ts';
import { type Condition, RUN_SORTS, rowsOfPage } from './lists.ts';
import { SELECT_RUNS, type SelectedRun, usageIn } from './run-row.ts';
import { feedbackFiguresIn, traceSummaryIn } from './trace-list.ts';

/**
 * Returns the threads of the root runs that match `conditions`. Reads the root runs in descending order of their start,
 * and skips a root run if its thread has a later matching root run.
 */
export function threadsIn(
  connection: SqliteConnection,
  query: Parsed<ThreadQuery>,
  conditions: readonly Condition[],
  summaryOf: (thread: string) => ThreadSummary,
): Page<ThreadSummary> {
  const { sql, params } = all(conditions);
  // The index begins with the tenant, which the conditions may hide from the query planner.
  const later = `SELECT 1 FROM runs INDEXED BY roots_by_thread JOIN traces ON traces.n = runs.trace
    WHERE runs.tenant = latest.tenant AND runs.thread = latest.thread
      AND (runs.start_us, runs.n) > (latest.start_us, latest.n) AND ${sql}`;
  // Without the clause, the query planner might read all root runs, including those without a thread.
  const index = isPlain(query.filter) ? 'INDEXED BY threads_by_start' : '';
  const { items, ...page } = rowsOfPage(
    connection,
    query,
    `runs ${index} JOIN traces ON traces.n = runs.trace JOIN runs AS latest ON latest.n = runs.n`,
    [...conditions, { sql: 'runs.thread IS NOT NULL', params: [] }, { sql: `NOT EXISTS (${later})`, params }],
    RUN_SORTS,
  );
  return { items: items.map(({ thread }) => summaryOf(thread ?? '')), ...page };
}

/** Returns whether a filter selects all threads of a time range. */
function isPlain({ projects, conditions, search }: RunFilter): boolean {
  return projects.length + conditions.length === 0 && search === undefined;
}

interface TurnRow extends Row {
  n: number;
  start_us: number;
  end_us: number | null;
  outcome: TraceOutcome;
  project: string;
  user: string | null;
}

/** Returns a thread whose turns are the root runs that match `conditions`. The thread must have a turn. */
export function threadSummaryIn(
  connection: SqliteConnection,
  thread: string,
  conditions: readonly Condition[],
): ThreadSummary {
  const { sql, params } = all(conditions);
  const rows = connection.all<TurnRow>(
    `SELECT runs.n AS n, runs.start_us AS start_us, runs.end_us AS end_us, outcome, project, user,
      ${USAGE_KEYS.map((key) => `traces.${key}`).join(', ')}
      FROM runs INDEXED BY roots_by_thread JOIN traces ON traces.n = runs.trace WHERE ${sql}
      ORDER BY runs.start_us, runs.n`,
    ...params,
  );
  const summary = (row: TurnRow | undefined): TraceSummary | undefined => {
    const run = row && connection.one<SelectedRun>(`${SELECT_RUNS} WHERE runs.n = ?`, row.n);
    return run && traceSummaryIn(connection, run);
  };
  const traces = `SELECT runs.trace FROM runs INDEXED BY roots_by_thread WHERE ${sql}`;
  return threadSummaryOf(thread, rows.map(turnOf) as [Turn, ...Turn[]], {
    inputs: summary(rows[0])?.inputs_preview,
    outputs: summary(rows.at(-1))?.outputs_preview,
    feedback: feedbackFiguresIn(connection, { sql: `feedback.trace IN (${traces})`, params }),
  });
}

function turnOf(row: TurnRow): Turn {
  const { start_us, end_us, outcome, project, user } = row;
  const latencyUs = end_us === null ? undefined : Math.max(0, end_us - start_us);
  return { startUs: start_us, latencyUs, outcome, project, user: user ?? undefined, usage: usageIn(row) };
}
