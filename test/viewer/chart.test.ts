import { expect, test } from 'vitest';
import { linePath, roundAbove } from '../../src/viewer/statistics/chart-path.ts';

test('an axis ends at 1, 2 or 5 with zeros', () => {
  expect(
    [0, 1, 1.1, 2, 3, 5, 5.1, 99, 0.0023, Number.NaN].map(roundAbove).map((value) => Number(value.toPrecision(3))),
  ).toEqual([1, 1, 2, 2, 5, 5, 10, 100, 0.005, 1]);
});

test('a line breaks where there is no value, and one value is a dot', () => {
  expect(linePath([1, undefined, 2, 4], 4, 400, 100)).toBe('M50.0 75.0L50.0 75.0M250.0 50.0L250.0 50.0L350.0 0.0');
});
