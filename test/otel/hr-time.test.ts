import { expect, test } from 'vitest';
import { hrTimeUs } from '../../src/otel/span-identity.ts';

test.each<[[number, number], number | undefined]>([
  [[1_795_159_360, 123_456_999], 1_795_159_360_123_456],
  [[0, 0], 0],
  [[9_007_199_254, 740_991_000], Number.MAX_SAFE_INTEGER],
  [[9_007_199_254, 740_992_000], undefined],
  [[Number.NaN, Number.NaN], undefined],
  [[Number.POSITIVE_INFINITY, 0], undefined],
  [[-1, 0], undefined],
  [null as never, undefined],
  ['now' as never, undefined],
  [[1] as never, undefined],
  [[1n, 2n] as never, undefined],
])('%o is %j microseconds', (time, us) => {
  expect(hrTimeUs(time)).toBe(us);
});
