import { isoTimestamp } from '../../run/time.ts';
import type { SqlValue } from './sqlite-engine.ts';
import { idText } from './sqlite-id.ts';

/** A run as lists read it. */
export interface ListedRow {
  n: number;
  id: Uint8Array;
  trace_id: Uint8Array;
  parent_id: Uint8Array | null;
  start_us: number;
  end_us: number | null;
  outline: string;
  listing: string | null;
  facts: string | null;
}

export const LISTED_COLUMNS: string = 'runs.n, id, trace_id, parent_id, start_us, end_us, outline, listing, facts';

/** JSON text of a run in a line of a list. What is JSON in the row is not read, only put together. */
export function summaryText(row: ListedRow): string {
  return joined(
    JSON.stringify({ ...outlineHead(row), trace_id: idText(row.trace_id) }),
    row.outline,
    row.listing,
    row.facts,
  );
}

export interface OutlinedRow extends Omit<ListedRow, 'trace_id' | 'listing' | 'facts'> {
  first_token_time: string | null;
}

export const OUTLINED_COLUMNS: string =
  "runs.n, id, parent_id, start_us, end_us, outline, facts ->> '$.first_token_time' AS first_token_time";

/** JSON text of a run in a line of a trace. */
export function outlineText(row: OutlinedRow): string {
  const { first_token_time } = row;
  const head = { ...outlineHead(row), ...(first_token_time === null ? {} : { first_token_time }) };
  return joined(JSON.stringify(head), row.outline);
}

function outlineHead({ id, parent_id, start_us, end_us }: Omit<OutlinedRow, 'first_token_time'>): object {
  return {
    id: idText(id),
    ...(parent_id === null ? {} : { parent_run_id: idText(parent_id) }),
    start_time: isoTimestamp(start_us),
    ...(end_us === null ? {} : { end_time: isoTimestamp(end_us) }),
  };
}

/** JSON text of one object with the fields of several; of fields that are there twice the last is right. */
export function joined(...texts: readonly (SqlValue | undefined)[]): string {
  const insides = texts.map((text) => (typeof text === 'string' ? text.slice(1, -1) : ''));
  return `{${insides.filter((inside) => inside !== '').join(',')}}`;
}

/** Characters of JSON that are read in one turn of the main thread. */
const PIECE_LENGTH = 256 * 1024;

/** JSON texts as arrays of JSON, none much longer than what may be read at once. */
export function piecesOf(texts: Iterable<string>): string[] {
  const pieces: string[] = [];
  let piece: string[] = [];
  let length = 0;
  for (const text of texts) {
    piece.push(text);
    length += text.length;
    if (length < PIECE_LENGTH) continue;
    pieces.push(`[${piece.join(',')}]`);
    piece = [];
    length = 0;
  }
  if (piece.length > 0) pieces.push(`[${piece.join(',')}]`);
  return pieces;
}
