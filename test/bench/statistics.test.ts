import { expect, it } from 'vitest';
import { median, quantile } from '../../bench/statistics.mjs';

const upTo = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1);

it('the median is the middle, or lies between the two that stand there', () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([9, 1, 5, 7])).toBe(6);
  expect(median([])).toBeUndefined();
});

it.each([
  [100, 0.5, 50],
  [101, 0.5, 51],
  [100, 0.99, 99],
  [1_000, 0.999, 999],
  [1_001, 0.999, 1_000],
  [500, 0.999, 500],
  [1, 0.5, 1],
])('of the numbers up to %d the share of %d does not exceed %d', (count, share, expected) => {
  expect(quantile(upTo(count), share)).toBe(expected);
});
