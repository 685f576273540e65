import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type DiffLine, diffLines } from '../../src/viewer/compare/line-diff.ts';

const print = (lines: readonly DiffLine[]): string =>
  lines.map(({ kind, text }) => `${{ same: ' ', removed: '-', added: '+' }[kind]}${text}`).join('\n');
const diff = (before: string, after: string): string => print(diffLines([...before], [...after]));

test('equal lines are the same, none are none', () => {
  expect(diff('ab', 'ab')).toBe(' a\n b');
  expect(diff('', '')).toBe('');
});

test('a line that is new, gone or changed is the only one that differs', () => {
  expect(diff('ac', 'abc')).toBe(' a\n+b\n c');
  expect(diff('abc', 'ac')).toBe(' a\n-b\n c');
  expect(diff('abc', 'axc')).toBe(' a\n-b\n+x\n c');
});

test('the way is the shortest: the example of the paper takes five edits', () => {
  const lines = diffLines([...'abcabba'], [...'cbabac']);
  expect(lines.filter(({ kind }) => kind !== 'same')).toHaveLength(5);
});

test('both sides can be read back from any diff', () => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 30 });
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after);
      expect(lines.filter(({ kind }) => kind !== 'added').map((line) => line.text)).toEqual(before);
      expect(lines.filter(({ kind }) => kind !== 'removed').map((line) => line.text)).toEqual(after);
    }),
  );
});

test('texts that have nothing in common cost no more than a bound, and count as replaced', () => {
  const before = Array.from({ length: 20_000 }, (_, index) => `a${index}`);
  const after = Array.from({ length: 20_000 }, (_, index) => `b${index}`);
  const lines = diffLines(before, after);
  expect(lines).toHaveLength(40_000);
  expect(lines[0]).toEqual({ kind: 'removed', text: 'a0' });
});
