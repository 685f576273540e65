import { expect, it } from 'vitest';
import { visible } from '../../src/base/text.ts';
import { columnsOf, cut, quoted } from '../../src/cli/terminal-text.ts';

it.each<[string, string, string]>([
  ['an ANSI colour', '\u001b[31mred', '\\x1b[31mred'],
  ['a window title', '\u001b]0;owned\u0007', '\\x1b]0;owned\\x07'],
  ['an 8-bit control sequence', '\u009b2J', '\\x9b2J'],
  ['line breaks and a tab', 'a\r\nb\tc', 'a\\r\\nb\\tc'],
  ['a backspace and a delete', 'a\b\u007f', 'a\\x08\\x7f'],
  ['a line separator', 'a\u2028b', 'a\\u2028b'],
  ['a reversed direction', '\u202etxt.exe', '\\u202etxt.exe'],
  ['an invisible tag', '\u{e0041}', '\\u{e0041}'],
  ['half a surrogate pair', '\ud83d!', '\\ud83d!'],
  ['only visible characters', 'naïve 検索 👩‍👩‍👧 می\u200cخواهم a\\b', 'naïve 検索 👩‍👩‍👧 می\u200cخواهم a\\b'],
])('text with %s is printed safely', (_, text, expected) => {
  expect(visible(text)).toBe(expected);
});

it.each<[string, string]>([
  ['x'.repeat(80), `"${'x'.repeat(80)}"`],
  ['x'.repeat(81), `"${'x'.repeat(80)}…"`],
  ['\u001b[2J', '"\\x1b[2J"'],
])('%j is quoted as %s', (text, expected) => {
  expect(quoted(text)).toBe(expected);
});

it.each<[string, number]>([
  ['', 0],
  ['plain', 5],
  ['naïve', 5],
  ['e\u0301', 1],
  ['\u0301', 0],
  ['検索', 4],
  ['ｆ', 2],
  ['가', 2],
  ['🚀', 2],
  ['👩‍👩‍👧', 2],
  ['❤️', 2],
  ['… · ✗ └─', 8],
])('%j is %i columns wide', (text, columns) => {
  expect(columnsOf(text)).toBe(columns);
});

it.each<[string, number, string]>([
  ['abcd', 5, 'abcd'],
  ['abcd', 4, 'abcd'],
  ['abcde', 4, 'abc…'],
  ['éééé', 4, 'éééé'],
  ['ééééé', 4, 'ééé…'],
  ['検索', 4, '検索'],
  ['検索', 3, '検…'],
  ['a検索', 4, 'a検…'],
  ['a検索', 3, 'a…'],
  ['👩‍👩‍👧!', 2, '…'],
  ['ab', 1, '…'],
])('%j is shortened to %i columns as %j', (text, columnsMax, expected) => {
  expect(cut(text, columnsMax)).toBe(expected);
});
