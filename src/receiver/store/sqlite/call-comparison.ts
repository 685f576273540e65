import type { CallRecord } from '../../../run/same-call.ts';
import { type RepeatedCall, repeatedCallsIn } from '../../domain/repeated-calls.ts';
import { idText, type SqliteConnection } from './database.ts';
import { COUNTS_ALONE } from './run-row.ts';

/** A run as selected by `CALLS`. Ids are hex digits, or empty if there is none. */
interface StoredCall extends CallRecord {
  readonly countsAlone: 0 | 1;
  readonly outerId: string;
  readonly isUsageRepeated: 0 | 1;
}

/**
 * Compares the calls in a trace. Returns the new result of each run whose stored result is wrong, by run id.
 * The result is undefined if no other run records the same call.
 */
export function changedCalls(connection: SqliteConnection, trace: number): Map<string, RepeatedCall | undefined> {
  const calls: StoredCall[] = JSON.parse(connection.one<{ calls: string }>(CALLS, trace)?.calls ?? '[]');
  const repeated = repeatedCallsIn(calls, ({ countsAlone }) => countsAlone === 1);
  const changed = new Map<string, RepeatedCall | undefined>();
  for (const stored of calls) {
    const { outerId = '', isUsageRepeated = false } = repeated.get(stored.id) ?? {};
    if (stored.outerId === outerId && stored.isUsageRepeated === +isUsageRepeated) continue;
    const result = outerId === '' ? undefined : { outerId: textOfHex(outerId), isUsageRepeated };
    changed.set(textOfHex(stored.id), result);
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
  'id', hex(id), 'parentId', hex(parent), 'name', name, 'type', run_type, 'startUs', start_us, 'endUs', end_us,
  'countsAlone', ${COUNTS_ALONE} AND coalesce(input_tokens, output_tokens, total_tokens, total_cost) IS NOT NULL,
  'outerId', hex(same_call), 'isUsageRepeated', is_repeated))) AS calls
  FROM runs WHERE trace = ? AND start_us IS NOT NULL`;
