import { expect, test } from 'vitest';
import { piecesOf, visible } from '../../src/viewer/elements/visible-text.ts';

test.each([
  ['plain text, ümläute, 漢字, emoji 👩‍👩‍👧', 'plain text, ümläute, 漢字, emoji 👩‍👩‍👧'],
  ['a\u0000b\u001b[31mc\u007fd', 'a\\x00b\\x1b[31mc\\x7fd'],
  ['a\u202eb\u2066c\u200bd\ufeff', 'a\\u202eb\\u2066c\\u200bd\\ufeff'],
  ['a\u2028b', 'a\\u2028b'],
  ['half \ud800 pair', 'half \\ud800 pair'],
  ['tag \u{e0041}', 'tag \\u{e0041}'],
  ['two\nlines\r\nand', 'two lines and'],
])('%j is seen as %s', (text, seen) => {
  expect(visible(text)).toBe(seen);
});

test('a text in pieces is the text, with what is hidden told apart', () => {
  expect(piecesOf('a\u202eb\n\tc\r\nd')).toEqual([
    { text: 'a', isHidden: false },
    { text: '\\u202e', isHidden: true },
    { text: 'b\n\tc\r\nd', isHidden: false },
  ]);
  expect(piecesOf('')).toEqual([]);
  expect(piecesOf('\r')).toEqual([{ text: '\\x0d', isHidden: true }]);
});
