import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Pieces } from '../../src/receiver/ingest/pieces.ts';
import { collectGarbage } from '../support/garbage.ts';

test('pieces are put together in their order, however many they are', () => {
  const piece = fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes));
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 600, size: 'max' }), (all) => {
      const pieces = new Pieces();
      for (const bytes of all) pieces.push(bytes);
      expect(pieces.whole()).toEqual(Buffer.concat(all));
    }),
    { numRuns: 50 },
  );
});

test('a single piece is not copied', () => {
  const pieces = new Pieces();
  const bytes = Buffer.from('x');
  pieces.push(bytes);
  expect(pieces.whole()).toBe(bytes);
});

test('a body in pieces of one byte takes little more than its bytes', () => {
  const pieces = new Pieces();
  const bytes = Buffer.alloc(500_000, 'x');
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let at = 0; at < bytes.length; at += 1) pieces.push(bytes.subarray(at, at + 1));
  collectGarbage();
  // Each by itself they take over 30 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000);
  expect(pieces.whole().equals(bytes)).toBe(true);
});
