import { exactJson } from '../../payload/fields.ts';
import { takeTurn } from '../domain/in-turns.ts';

const PIECE_LENGTH = 256 * 1024;

/**
 * Serializes an object that contains a long list, and yields the JSON text in pieces. The list's items are JSON text
 * already. Between pieces, the server can process other requests. No piece exceeds the engine's maximum string length.
 */
export async function* jsonPieces(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  items: Iterable<string> | AsyncIterable<string>,
): AsyncGenerator<string> {
  const head = Object.entries(fields).map(([field, value]) => `${JSON.stringify(field)}:${exactJson(value)},`);
  let piece = `{${head.join('')}${JSON.stringify(name)}:[`;
  let separator = '';
  for await (const item of items) {
    piece += separator + item;
    separator = ',';
    if (piece.length >= PIECE_LENGTH) {
      yield piece;
      piece = '';
    }
    // A fast socket would accept all pieces in one turn and delay other requests.
    await takeTurn();
  }
  yield `${piece}]}`;
}
