import type { Suggestion, SuggestionField, SuggestionQuery } from '../../query/query.ts';
import type { RunFields } from '../store.ts';
import { SUGGESTED_RUNS_MAX, suggestedMetadata, suggestionsOf } from '../suggestions.ts';
import type { SqliteConnection } from './database.ts';
import type { Condition } from './lists.ts';

/** Returns the values of a field in the latest runs that match a condition. */
export function suggestionsIn(
  connection: SqliteConnection,
  { field, text = '' }: SuggestionQuery,
  condition: Condition,
): Suggestion[] {
  return suggestionsOf(valuesIn(connection, field, condition), text);
}

const COLUMNS: Readonly<Partial<Record<SuggestionField, string>>> = {
  name: 'name',
  type: 'run_type',
  model: 'model',
  status: 'status',
  project: 'project',
  thread: 'thread',
  user: 'user',
};

/** Returns the values of each run. */
function valuesIn(
  connection: SqliteConnection,
  field: SuggestionField,
  { sql, values }: Condition,
): (readonly (string | undefined)[])[] {
  const latest = `SELECT * FROM runs WHERE ${sql} ORDER BY start_us DESC, n DESC LIMIT ?`;
  const select = <Row>(text: string): Row[] => connection.all<Row>(text, ...values, SUGGESTED_RUNS_MAX);
  const column = COLUMNS[field];
  if (column !== undefined) {
    return select<{ value: string | null }>(`SELECT ${column} AS value FROM (${latest})`).map(({ value }) =>
      value === null ? [] : [value],
    );
  }
  if (field === 'feedback') {
    const sqlOfKeys = `SELECT DISTINCT run, key FROM feedback WHERE run IN (SELECT n FROM (${latest}))`;
    return select<{ key: string }>(sqlOfKeys).map(({ key }) => [key]);
  }
  return select<{ fields: string }>(`SELECT fields FROM (${latest}) JOIN details USING (n)`).map(({ fields }) => {
    const { tags = [], extra }: RunFields = JSON.parse(fields);
    return field === 'tag' ? tags : suggestedMetadata(field, extra?.metadata);
  });
}
