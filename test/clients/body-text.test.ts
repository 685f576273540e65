import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { bodyText } from '../../src/clients/body-text.ts';

const streamOf = (...chunks: (string | Buffer)[]): Readable =>
  Readable.from(
    chunks.map((chunk) => Buffer.from(chunk)),
    { objectMode: false },
  );

test.each([
  [9, 'x'.repeat(9), 'x'.repeat(9)],
  [10, 'x'.repeat(10), 'x'.repeat(10)],
  [11, undefined, 'x'.repeat(10)],
])('of %i bytes where 10 are read is %s, cut %s', async (bytes, whole, cut) => {
  const body = (): Readable => streamOf('x'.repeat(5), 'x'.repeat(bytes - 5));
  expect(await bodyText(body(), 10, 1_000)).toBe(whole);
  expect(await bodyText(body(), 10, 1_000, true)).toBe(cut);
});

test('a letter may be split between pieces', async () => {
  const [one, other] = [Buffer.from('ü').subarray(0, 1), Buffer.from('ü').subarray(1)];
  expect(await bodyText(streamOf(one, other), 10, 1_000)).toBe('ü');
});

test('a body that is too long, or late, is broken off', async () => {
  const endless = new Readable({ read: () => {} });
  endless.push('xxx');
  expect(await bodyText(endless, 2, 1_000)).toBeUndefined();
  const silent = new Readable({ read: () => {} });
  await expect(bodyText(silent, 2, 1)).rejects.toMatchObject({ name: 'DeadlineError' });
  expect([endless.destroyed, silent.destroyed]).toEqual([true, true]);
});

test('what breaks it off is told, and so is an end without a reason', async () => {
  const broken = new Readable({ read: () => {} });
  const reading = expect(bodyText(broken, 10, 1_000)).rejects.toThrow('reset');
  broken.destroy(new Error('reset'));
  await reading;
  const gone = new Readable({ read: () => {} });
  const other = expect(bodyText(gone, 10, 1_000)).rejects.toThrow('the answer broke off');
  gone.destroy();
  await other;
});
