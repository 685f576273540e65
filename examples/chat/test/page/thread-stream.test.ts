import { expect, test } from 'vitest';
import { backOffMs } from '../../page/thread-stream.ts';

test('the first attempt comes soon, later ones each later, and none after more than 10 s', () => {
  expect([0, 1, 2, 5, 6, 1_000].map((failures) => backOffMs(failures, 1))).toEqual([
    250, 500, 1_000, 8_000, 10_000, 10_000,
  ]);
  expect(backOffMs(0, 0)).toBe(125);
});
