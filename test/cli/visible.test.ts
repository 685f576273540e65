import { describe, expect, it } from 'vitest';
import { visible } from '../../src/cli/visible.ts';

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
