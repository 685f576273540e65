import { describe, expect, it } from 'vitest';
import { visible } from '../../src/base/text.ts';
import { columnsOf, cut, quoted } from '../../src/cli/terminal-text.ts';

describe('text from outside', () => {
  it.each<[string, string, string]>([
    ['an ANSI colour', '\u001b[31mred', '\\x1b[31mred'],
    ['a title of the window', '\u001b]0;owned\u0007', '\\x1b]0;owned\\x07'],
    ['an introducer of eight bits', '\u009b2J', '\\x9b2J'],
    ['ends of lines and a tab', 'a\r\nb\tc', 'a\\r\\nb\\tc'],
    ['a backspace and a delete', 'a\b\u007f', 'a\\x08\\x7f'],
    ['a line separator', 'a\u2028b', 'a\\u2028b'],
    ['a reversed direction', '\u202etxt.exe', '\\u202etxt.exe'],
    ['a tag that cannot be seen', '\u{e0041}', '\\u{e0041}'],
    ['half a surrogate pair', '\ud83d!', '\\ud83d!'],
  ])('has %s written out', (_, text, expected) => {
    expect(visible(text)).toBe(expected);
  });

  it.each(['naïve', '検索', '👩‍👩‍👧', 'می\u200cخواهم', 'a\\b'])('stays as it is when it only shows: %s', (text) => {
    expect(visible(text)).toBe(text);
  });
});

describe('text in a message', () => {
  it.each<[number, string]>([
    [79, ''],
    [80, ''],
    [81, '…'],
  ])('of %i characters is shown whole, or its first 80', (length, rest) => {
    expect(quoted('x'.repeat(length))).toBe(`"${'x'.repeat(Math.min(length, 80))}${rest}"`);
  });

  it('steers no terminal', () => {
    expect(quoted('\u001b[2J')).toBe('"\\x1b[2J"');
  });
});

describe('the columns of a text', () => {
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
  ])('of %j are %i', (text, columns) => {
    expect(columnsOf(text)).toBe(columns);
  });
});

describe('a text that is cut', () => {
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
  ])('%j in %i columns is %j', (text, columnsMax, expected) => {
    expect(cut(text, columnsMax)).toBe(expected);
  });
});
