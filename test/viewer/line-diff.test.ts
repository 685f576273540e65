import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parsedJson } from '#src/payload/fields.ts';
import { diffLines, LINES_MAX, linesOf } from '#src/viewer/compare/line-diff.ts';

const SIGNS = { same: ' ', removed: '-', added: '+' };
const diff = (before: string, after: string): string =>
  diffLines([...before], [...after])
    .map(({ kind, text }) => SIGNS[kind] + text)
    .join('');

test('only changed lines differ', () => {
  expect([diff('ab', 'ab'), diff('', ''), diff('ac', 'abc'), diff('abc', 'ac'), diff('abc', 'axc')]).toEqual([
    ' a b',
    '',
    ' a+b c',
    ' a-b c',
    ' a-b+x c',
  ]);
});

test('both values can be read from a diff', () => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 30 });
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after);
      expect(lines.filter(({ kind }) => kind !== 'added').map((line) => line.text)).toEqual(before);
      expect(lines.filter(({ kind }) => kind !== 'removed').map((line) => line.text)).toEqual(after);
    }),
  );
});

test('values with too many changes count as completely different', () => {
  const lines = (prefix: string): string[] => Array.from({ length: 20_000 }, (_, index) => `${prefix}${index}`);
  const kinds = diffLines(lines('a'), lines('b')).map(({ kind }) => kind);
  expect([kinds.indexOf('added'), kinds.lastIndexOf('removed'), kinds.length]).toEqual([20_000, 19_999, 40_000]);
});

test('JSON has a line per item', () => {
  expect(linesOf(parsedJson('{"id":107505301260286111}'))).toContain('  "id": 107505301260286111');
  expect(linesOf({ a: 1, b: [true, null], c: {}, d: [] }).join('\n')).toBe(
    '{\n  "a": 1,\n  "b": [\n    true,\n    null\n  ],\n  "c": {},\n  "d": []\n}',
  );
});

test('text keeps its lines, and long lines wrap after a space', () => {
  expect(linesOf('one\ntwo')).toEqual(['"', '  one', '  two', '"']);
  const words = `${'word '.repeat(23)}wordy tail`;
  expect(linesOf(words)).toEqual(['"', `  ${'word '.repeat(23)}`, '  wordy tail', '"']);
  expect(linesOf('x'.repeat(241))).toEqual(['"', `  ${'x'.repeat(120)}`, `  ${'x'.repeat(120)}`, '  x', '"']);
});

test('lines beyond the limit are replaced by a note', () => {
  const zeros = (length: number): string[] => linesOf(new Array<number>(length).fill(0));
  expect(zeros(LINES_MAX - 2).at(-1)).toBe(']');
  expect(zeros(LINES_MAX - 1).slice(LINES_MAX)).toEqual(['… only the first 20,000 lines are compared']);
  expect(linesOf('x'.repeat(120 * 3 * LINES_MAX))).toHaveLength(LINES_MAX + 1);
});
