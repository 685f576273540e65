import { setSoon } from '../../base/timers.ts';

const PIECE_LENGTH = 256 * 1024;

/**
 * Yields the JSON text for an object with a long list in pieces. The list's items are JSON text. Other requests are
 * processed between pieces, and no string exceeds the engine's limit.
 */
export async function* jsonPieces(
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
    // Yields to the event loop. Otherwise, a fast socket would accept all pieces in one turn, and other requests would
    // have to wait.
    await new Promise<void>((resolve) => void setSoon(resolve));
  }
  yield `${piece}]}`;
}
