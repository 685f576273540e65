import { isoTimestamp } from '../../../../run/time.ts';
import type { FeedbackFigures } from '../../../domain/feedback.ts';
import type { ListPage, ThreadQuery } from '../../../domain/query/query.ts';
import type { RunSummary, ThreadSummary, TraceOutcome, TraceSummary } from '../../../domain/run-view.ts';
import { USAGE_KEYS } from '../../../domain/summary.ts';
import {
  DECIDING_FIELDS,
  type DecidingRuns,
  decidedTrace,
  idsIn,
  listedTrace,
  type Turn,
  threadSummaryOf,
  traceFieldsIn,
} from '../../../domain/trace/trace-summary.ts';
import type { Parsed } from '../../../filter/run-filter.ts';
import { all } from '../../../filter/sql.ts';
import type { Row, SqliteConnection } from '../file/database.ts';
import { rowUsage, runAt, type SelectedRun, SummarizedRow } from '../run-row.ts';
import { type Condition, figureSql, outcomeSql, RUN_SORTS, rowsOfPage, summaryIn } from './lists.ts';
import { type FiguresRow, NO_FIGURES, type OwnFigures } from './stored-figures.ts';

/** Returns a trace as it appears in a list, to a key that may be limited to the project of the root. */
export function traceSummaryIn(connection: SqliteConnection, root: SelectedRun, isLimited: boolean): TraceSummary {
  const trace = connection.one<FiguresRow & { own: string | null }>('SELECT * FROM traces WHERE n = ?', root.trace);
  const ownFigures: OwnFigures | undefined = trace?.own ? JSON.parse(trace.own) : undefined;
  const keys: DecidingRuns<number> = JSON.parse((ownFigures ?? trace)?.deciding ?? '{}');
  const [figures, outcome] = isLimited && ownFigures ? [ownFigures, ownFigures.outcome] : [trace, root.outcome];
  const own = new SummarizedRow(root);
  const rows = new Map([[root.n, own]]);
  const deciding: DecidingRuns<SummarizedRow<SelectedRun>> = {};
  for (const field of DECIDING_FIELDS) {
    const n = keys[field] ?? -1;
    const row = n === -1 || rows.has(n) ? undefined : runAt(connection, n);
    if (row !== undefined) rows.set(n, new SummarizedRow(row));
    deciding[field] = rows.get(n);
  }
  const decided = decidedTrace(own, outcome ?? 'pending', deciding);
  const summaries = new Map<number, RunSummary>();
  const summaryOf = ({ row }: SummarizedRow<SelectedRun>): RunSummary => {
    const summary = summaries.get(row.n) ?? summaryIn(connection, row);
    summaries.set(row.n, summary);
    return summary;
  };
  const inTrace: Condition = { sql: 'feedback.trace = ?', params: [root.trace] };
  const inProject: Condition = { sql: 'runs.project = ?', params: [root.project] };
  const given = feedbackFiguresIn(connection, all(isLimited ? [inTrace, inProject] : [inTrace]));
  const totals = {
    ...totalsIn(figures ?? NO_FIGURES),
    ...(given.length > 0 && { feedback: given }),
    ...idsIn(decided),
  };
  return listedTrace(summaryOf(own), traceFieldsIn(decided, summaryOf), totals);
}

function totalsIn({ runs, pending, errors, model_calls, end_us, ...row }: FiguresRow): TraceSummary['trace'] {
  const usage = rowUsage(row);
  const end = end_us !== null && { end_time: isoTimestamp(end_us) };
  return { runs, pending, errors, model_calls, ...end, ...(usage && { usage }) };
}

function feedbackFiguresIn(connection: SqliteConnection, { sql, params }: Condition): FeedbackFigures[] {
  return connection
    .all<{ key: string; count: number; score: number | null }>(
      `SELECT key, count(*) AS count, avg(score) AS score FROM feedback JOIN runs ON runs.n = feedback.run
        WHERE ${sql} AND runs.start_us IS NOT NULL GROUP BY key ORDER BY key`,
      ...params,
    )
    .map(({ key, count, score }) => ({ key, count, ...(score !== null && { average_score: score }) }));
}

/**
 * Returns the threads of the root runs that match `conditions`. Reads the root runs in descending order of their start,
 * and skips a root run if its thread has a later matching root run.
 */
export function threadsIn(
  connection: SqliteConnection,
  query: Parsed<ThreadQuery>,
  conditions: readonly Condition[],
  summaryOf: (thread: string) => ThreadSummary,
): ListPage<ThreadSummary> {
  const { sql, params } = all(conditions);
  // The index begins with the tenant, which the conditions may hide from the query planner.
  const later = `SELECT 1 FROM runs INDEXED BY roots_by_thread JOIN traces ON traces.n = runs.trace
    WHERE runs.tenant = latest.tenant AND runs.thread = latest.thread
      AND (runs.start_us, runs.n) > (latest.start_us, latest.n) AND ${sql}`;
  const { projects, conditions: fields, search } = query.filter;
  const hasAllThreads = projects.length + fields.length === 0 && search === undefined;
  // Without the clause, the query planner might read all root runs, including those without a thread.
  const index = hasAllThreads ? 'INDEXED BY threads_by_start' : '';
  const { items, ...page } = rowsOfPage(
    connection,
    query,
    `runs ${index} JOIN traces ON traces.n = runs.trace JOIN runs AS latest ON latest.n = runs.n`,
    [...conditions, { sql: 'runs.thread IS NOT NULL', params: [] }, { sql: `NOT EXISTS (${later})`, params }],
    RUN_SORTS,
  );
  return { items: items.map(({ thread }) => summaryOf(thread ?? '')), ...page };
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
  isLimited: boolean,
): ThreadSummary {
  const { sql, params } = all(conditions);
  const rows = connection.all<TurnRow>(
    `SELECT runs.n AS n, runs.start_us AS start_us, runs.end_us AS end_us, project, user,
      ${outcomeSql('runs', isLimited)} AS outcome, ${USAGE_KEYS.map((key) => `${figureSql(key, isLimited)} AS ${key}`).join(', ')}
      FROM runs INDEXED BY roots_by_thread JOIN traces ON traces.n = runs.trace WHERE ${sql}
      ORDER BY runs.start_us, runs.n`,
    ...params,
  );
  const summary = (row: TurnRow | undefined): TraceSummary | undefined => {
    const run = row && runAt(connection, row.n);
    return run && traceSummaryIn(connection, run, isLimited);
  };
  const turns = `FROM runs INDEXED BY roots_by_thread WHERE ${sql}`;
  const inTurns = { sql: `feedback.trace IN (SELECT runs.trace ${turns})`, params };
  const inProject = { sql: `runs.project IN (SELECT runs.project ${turns})`, params };
  return threadSummaryOf(thread, rows.map(turnOf) as [Turn, ...Turn[]], {
    inputs_preview: summary(rows[0])?.inputs_preview,
    outputs_preview: summary(rows.at(-1))?.outputs_preview,
    feedback: feedbackFiguresIn(connection, all(isLimited ? [inTurns, inProject] : [inTurns])),
  });
}

function turnOf(row: TurnRow): Turn {
  const { start_us, end_us, outcome, project, user } = row;
  const latencyUs = end_us === null ? undefined : Math.max(0, end_us - start_us);
  return { startUs: start_us, latencyUs, outcome, project, user: user ?? undefined, usage: rowUsage(row) };
}
