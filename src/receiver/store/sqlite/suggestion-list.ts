import { comparable } from '../../domain/comparable.ts';
import type { Suggestion, SuggestionQuery } from '../../domain/query.ts';
import { SUGGESTED_RUNS_MAX, suggestedMetadata, suggestionsOf } from '../../domain/suggestions.ts';
import type { Row, SqliteConnection } from './database.ts';
import type { Condition } from './lists.ts';
import { fieldsOf, type SelectedRun } from './run-row.ts';

/** Returns the values of a field in the latest runs that match a condition. */
export function suggestionsIn(
  connection: SqliteConnection,
  { field, text = '' }: SuggestionQuery,
  { sql, params }: Condition,
): Suggestion[] {
  const column = field === 'type' ? 'run_type' : field;
  const valuesOf = (row: SelectedRun & Row): readonly (string | undefined)[] => {
    if (column in row) return [(row[column] ?? undefined) as string | undefined];
    if (field === 'feedback') return connection.all<{ key: string }>(KEYS, row.n).map(({ key }) => key);
    const { tags = [], extra } = fieldsOf(row);
    return field === 'tag' ? tags.map(comparable) : suggestedMetadata(field, extra?.metadata);
  };
  const latest = `SELECT n FROM runs WHERE ${sql} ORDER BY start_us DESC, n DESC LIMIT ${SUGGESTED_RUNS_MAX}`;
  const rows = connection.each<SelectedRun & Row>(`${SELECT} WHERE n IN (${latest})`, ...params);
  return suggestionsOf(Array.from(rows, valuesOf), text);
}

const SELECT = 'SELECT runs.*, fields FROM runs JOIN details USING (n)';
const KEYS = 'SELECT key FROM feedback WHERE run = ?';
