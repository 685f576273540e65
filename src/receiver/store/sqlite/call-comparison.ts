import { type ComparedRun, type RepeatedCall, repeatedCallsIn } from '../../domain/repeated-calls.ts';
import { idText, type SqliteConnection } from './database.ts';
import { COUNTS_ALONE } from './run-row.ts';

/** A run as selected by `CALLS`. Ids are hex digits, or empty if there is none. */
interface StoredCall extends ComparedRun {
  readonly countsAlone: 0 | 1;
  readonly headId: string;
  readonly isUsageRepeated: 0 | 1;
}

/** Compares the calls in a trace. Returns the new result of each run whose stored result is wrong, by run id. */
export function changedCalls(connection: SqliteConnection, trace: number): Map<string, RepeatedCall> {
  const calls: StoredCall[] = JSON.parse(connection.one<{ calls: string }>(CALLS, trace)?.calls ?? '[]');
  const repeated = repeatedCallsIn(calls, ({ countsAlone }) => countsAlone === 1);
  const changed = new Map<string, RepeatedCall>();
  for (const stored of calls) {
    const { headId = '', isUsageRepeated = false } = repeated.get(stored.id) ?? {};
    if (stored.headId === headId && stored.isUsageRepeated === +isUsageRepeated) continue;
    changed.set(textOfHex(stored.id), { headId: headId === '' ? undefined : textOfHex(headId), isUsageRepeated });
  }
  return changed;
}

function textOfHex(hex: string): string {
  return idText(Buffer.from(hex, 'hex'));
}

/**
 * Selects the runs of a trace as one JSON text, because reading each row would take three times as long. Adds the
 * columns to the evidence about the call. `json_patch` omits columns that are null.
 */
const CALLS = `SELECT json_group_array(json_patch(coalesce(call, '{}'), json_object(
  'id', hex(id), 'parentId', nullif(hex(parent), ''), 'name', name, 'type', run_type, 'model', model, 'status', status,
  'startUs', start_us, 'endUs', end_us, 'sameCall', upper(replace(call ->> 'sameCall', '-', '')),
  'countsAlone', ${COUNTS_ALONE} AND coalesce(input_tokens, output_tokens, total_tokens, total_cost) IS NOT NULL,
  'headId', hex(same_call), 'isUsageRepeated', is_repeated))) AS calls
  FROM runs WHERE trace = ? AND start_us IS NOT NULL`;
