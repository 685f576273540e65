import type { Suggestion, SuggestionQuery } from '../../query/query.ts';
import { SUGGESTED_RUNS_MAX, suggestedValues, suggestionsOf } from '../suggestions.ts';
import type { SqliteConnection } from './database.ts';
import { type Condition, summaryWith } from './lists.ts';
import { fieldsOf, SELECT_RUNS, type SelectedRun } from './run-row.ts';

/** Returns the values of a field in the latest runs that match a condition. */
export function suggestionsIn(
  connection: SqliteConnection,
  { field, text = '' }: SuggestionQuery,
  { sql, values }: Condition,
): Suggestion[] {
  const latest = `SELECT n FROM runs WHERE ${sql} ORDER BY start_us DESC, n DESC LIMIT ${SUGGESTED_RUNS_MAX}`;
  const feedbackOn = (n: number) => connection.all<{ key: string }>('SELECT key FROM feedback WHERE run = ?', n);
  const found: (readonly (string | undefined)[])[] = [];
  for (const row of connection.each<SelectedRun>(`${SELECT_RUNS} WHERE runs.n IN (${latest})`, ...values)) {
    const metadata = field.startsWith('meta') ? fieldsOf(row).extra?.metadata : undefined;
    const feedback = field === 'feedback' ? feedbackOn(row.n) : [];
    found.push(suggestedValues(field, { summary: summaryWith(row, {}), metadata, feedback }));
  }
  return suggestionsOf(found, text);
}
