import { isoTimestamp } from '../../../run/time.ts';
import type { FeedbackFigures } from '../../domain/feedback.ts';
import type { RunSummary, TraceSummary } from '../../domain/run-view.ts';
import { DECIDING_FIELDS, type DecidingRuns, decidedTrace, idsIn, shownIn } from '../../domain/trace-summary.ts';
import type { Row, SqliteConnection } from './database.ts';
import { type Condition, summaryIn } from './lists.ts';
import { SELECT_RUNS, type SelectedRun, type SummarizedRow, summarized, usageIn } from './run-row.ts';

/** Returns a trace as it appears in a list. `root` is the row of its root. */
export function traceSummaryIn(connection: SqliteConnection, root: SelectedRun): TraceSummary {
  const trace = connection.one<Row>('SELECT * FROM traces WHERE n = ?', root.trace) ?? {};
  const keys: DecidingRuns<number> = JSON.parse(String(trace.deciding ?? '{}'));
  const rows = new Map([[root.n, summarized(root)]]);
  const deciding: DecidingRuns<SummarizedRow<SelectedRun>> = {};
  for (const field of DECIDING_FIELDS) {
    const n = keys[field] ?? -1;
    const row = n === -1 || rows.has(n) ? undefined : connection.one<SelectedRun>(`${SELECT_RUNS} WHERE runs.n = ?`, n);
    if (row !== undefined) rows.set(n, summarized(row));
    deciding[field] = rows.get(n);
  }
  const decided = decidedTrace(summarized(root), root.outcome === 'incomplete', deciding);
  const summaries = new Map<number, RunSummary>();
  const summaryOf = ({ row }: SummarizedRow<SelectedRun>): RunSummary => {
    const summary = summaries.get(row.n) ?? summaryIn(connection, row);
    summaries.set(row.n, summary);
    return summary;
  };
  const totals = { ...totalsIn(connection, trace), ...idsIn(decided) };
  return { ...summaryOf(summarized(root)), ...shownIn(decided, summaryOf), trace: totals };
}

function totalsIn(connection: SqliteConnection, row: Row): TraceSummary['trace'] {
  const usage = usageIn(row);
  const feedback = feedbackFiguresIn(connection, { sql: 'feedback.trace = ?', params: [row.n as number] });
  return {
    runs: row.runs as number,
    pending: row.pending as number,
    errors: row.errors as number,
    model_calls: row.model_calls as number,
    ...(row.end_us !== null && { end_time: isoTimestamp(row.end_us as number) }),
    ...(usage && { usage }),
    ...(feedback.length > 0 && { feedback }),
  };
}

/** Returns the figures of feedback on visible runs. */
export function feedbackFiguresIn(connection: SqliteConnection, { sql, params }: Condition): FeedbackFigures[] {
  return connection
    .all<{ key: string; count: number; score: number | null }>(
      `SELECT key, count(*) AS count, avg(score) AS score FROM feedback JOIN runs ON runs.n = feedback.run
        WHERE ${sql} AND runs.start_us IS NOT NULL GROUP BY key ORDER BY key`,
      ...params,
    )
    .map(({ key, count, score }) => ({ key, count, ...(score !== null && { average_score: score }) }));
}
