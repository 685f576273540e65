import { expect, test } from 'vitest';
import { jsonPieces } from '../../src/receiver/ingest/json-pieces.ts';

async function piecesOf(...args: Parameters<typeof jsonPieces>): Promise<string[]> {
  const pieces: string[] = [];
  for await (const piece of jsonPieces(...args)) pieces.push(piece);
  return pieces;
}

test.each([
  [{}, []],
  [{}, [1]],
  [{ a: { b: 'c' }, '"': null }, ['x', { y: [] }]],
])('the fields %j and the list %j are an object', async (fields, items) => {
  const pieces = await piecesOf(fields, 'items', items);
  expect(pieces.length).toBe(1);
  expect(JSON.parse(pieces.join(''))).toEqual({ ...fields, items });
});

test('a piece goes out when it has 256 KiB, and not before', async () => {
  // {"l":[ and two quotes.
  const fits = 'x'.repeat(256 * 1024 - 6 - 2);
  expect((await piecesOf({}, 'l', [fits.slice(1)])).length).toBe(1);
  expect(await piecesOf({}, 'l', [fits, 1])).toEqual([`{"l":["${fits}"`, ',1]}']);
});
