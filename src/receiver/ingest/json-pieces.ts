import { setSoon } from '../../base/timers.ts';

/** Length in characters after which a piece is sent. */
const PIECE_LENGTH = 256 * 1024;

/**
 * Yields the JSON of an object with a long list in pieces. Other requests get a turn after each piece, and no string
 * exceeds the limit of the engine.
 */
export async function* jsonPieces(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  items: Iterable<unknown> | AsyncIterable<unknown>,
): AsyncGenerator<string> {
  const head = Object.entries(fields).map(([field, value]) => `${JSON.stringify(field)}:${JSON.stringify(value)},`);
  let piece = `{${head.join('')}${JSON.stringify(name)}:[`;
  let separator = '';
  for await (const item of items) {
    piece += separator + JSON.stringify(item);
    separator = ',';
    if (piece.length < PIECE_LENGTH) continue;
    yield piece;
    piece = '';
    // A fast socket would accept all pieces in one turn.
    await new Promise<void>((resolve) => void setSoon(resolve));
  }
  yield `${piece}]}`;
}
