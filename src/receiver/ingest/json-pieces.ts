import { setSoon } from '../../base/timers.ts';

/** Length in characters after which a piece is sent. */
const PIECE_LENGTH = 256 * 1024;

/**
 * Yields the JSON of an object with a long list in pieces. Other requests get a turn after each piece, and no string
 * exceeds the limit of the engine.
 */
export function jsonPieces(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  items: Iterable<unknown>,
): AsyncGenerator<string> {
  return jsonTextPieces(fields, name, stringified(items));
}

function* stringified(items: Iterable<unknown>): Iterable<string> {
  for (const item of items) yield JSON.stringify(item);
}

/** Like `jsonPieces`, for items that are JSON text. */
export async function* jsonTextPieces(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  items: Iterable<string> | AsyncIterable<string>,
): AsyncGenerator<string> {
  const head = Object.entries(fields).map(([field, value]) => `${JSON.stringify(field)}:${JSON.stringify(value)},`);
  let piece = `{${head.join('')}${JSON.stringify(name)}:[`;
  let separator = '';
  for await (const item of items) {
    piece += separator + item;
    separator = ',';
    if (piece.length < PIECE_LENGTH) continue;
    yield piece;
    piece = '';
    // A fast socket would accept all pieces in one turn.
    await new Promise<void>((resolve) => void setSoon(resolve));
  }
  yield `${piece}]}`;
}
