import { setSoon } from '../../base/timers.ts';

/** Characters after which a piece goes out. */
const PIECE_LENGTH = 256 * 1024;

/**
 * An object with some fields and a long list, as JSON in pieces: others have a turn after each, and no text is longer than the
 * engine allows.
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
    // A socket that takes all at once gives nobody else a turn.
    await new Promise<void>((resolve) => void setSoon(resolve));
  }
  yield `${piece}]}`;
}
