import { expect, test } from 'vitest';
import { LINES_MAX, linesOf } from '../../src/viewer/compare/value-lines.ts';

test('a value has a line for each item', () => {
  expect(linesOf({ a: 1, b: [true, null], c: {}, d: [] })).toEqual([
    '{',
    '  "a": 1,',
    '  "b": [',
    '    true,',
    '    null',
    '  ],',
    '  "c": {},',
    '  "d": []',
    '}',
  ]);
});

test('text has a line for each of its lines, and long ones break after a space', () => {
  expect(linesOf('one\ntwo')).toEqual(['"', '  one', '  two', '"']);
  const words = `${'word '.repeat(23)}wordy tail`;
  expect(linesOf(words)).toEqual(['"', `  ${'word '.repeat(23)}`, '  wordy tail', '"']);
  expect(linesOf('x'.repeat(241))).toEqual(['"', `  ${'x'.repeat(120)}`, `  ${'x'.repeat(120)}`, '  x', '"']);
});

test('what is beyond the limit is left out, and said to be', () => {
  expect(linesOf(Array.from({ length: LINES_MAX - 2 }, () => 0))).toHaveLength(LINES_MAX);
  const lines = linesOf(Array.from({ length: 3 * LINES_MAX }, () => 0));
  expect(lines.length).toBeLessThanOrEqual(LINES_MAX + 2);
  expect(lines[LINES_MAX]).toBe('… more than 20000 lines: the rest is left out');
});
