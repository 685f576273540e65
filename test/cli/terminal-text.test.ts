import { expect, it } from 'vitest';
import { columnWidth, cutToColumns, inShellQuotes } from '#src/cli/terminal-text.ts';

it.each<[string, string]>([
  ['x'.repeat(80), `"${'x'.repeat(80)}"`],
  ['x'.repeat(81), `"${'x'.repeat(80)}…"`],
  ['\u001b[2J', '"\\x1b[2J"'],
])('%j is quoted as %s', (text, expected) => {
  expect(inShellQuotes(text)).toBe(expected);
});

it.each<[string, number]>([
  ['plain', 5],
  ['e\u0301', 1],
  ['\u0301', 0],
  ['検索', 4],
  ['가', 2],
  ['🚀', 2],
  ['👩‍👩‍👧', 2],
  ['❤️', 2],
  ['… · ✗ └─', 8],
])('%j is %i columns wide', (text, columns) => {
  expect(columnWidth(text)).toBe(columns);
});

it.each<[string, number, string]>([
  ['abcd', 4, 'abcd'],
  ['abcde', 4, 'abc…'],
  ['éééé', 4, 'éééé'],
  ['検索', 3, '検…'],
  ['a検索', 3, 'a…'],
  ['👩‍👩‍👧!', 2, '…'],
  ['ab', 1, '…'],
])('%j is shortened to %i columns as %j', (text, columnsMax, expected) => {
  expect(cutToColumns(text, columnsMax)).toBe(expected);
});
