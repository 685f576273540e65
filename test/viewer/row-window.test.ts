import { expect, test } from 'vitest';
import { rowWindow, scrollTopFor } from '../../src/viewer/elements/rows.tsx';

test('the rows in sight are there, with six on either side', () => {
  expect(rowWindow(0, 100, 20, 1_000)).toEqual({ first: 0, end: 12 });
  expect(rowWindow(2_000, 100, 20, 1_000)).toEqual({ first: 94, end: 112 });
  expect(rowWindow(2_019, 100, 20, 1_000)).toEqual({ first: 94, end: 112 });
});

test('there are no rows before the first nor after the last', () => {
  expect(rowWindow(0, 100, 20, 3)).toEqual({ first: 0, end: 3 });
  expect(rowWindow(0, 100, 20, 0)).toEqual({ first: 0, end: 0 });
  expect(rowWindow(19_900, 100, 20, 1_000)).toEqual({ first: 989, end: 1_000 });
  // The list has become shorter than where it was scrolled to.
  expect(rowWindow(19_900, 100, 20, 10)).toEqual({ first: 4, end: 10 });
  expect(rowWindow(-50, 100, 20, 10)).toEqual({ first: 0, end: 10 });
});

test('a row is scrolled into sight by the shortest way, and not when it is there', () => {
  expect(scrollTopFor(10, 0, 100, 20)).toBe(120);
  expect(scrollTopFor(10, 300, 100, 20)).toBe(200);
  expect(scrollTopFor(10, 150, 100, 20)).toBe(150);
  expect(scrollTopFor(0, 300, 100, 20)).toBe(0);
});
