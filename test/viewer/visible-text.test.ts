import { expect, test } from 'vitest';
import { piecesOf, visible } from '#src/viewer/elements/visible-text.ts';

test.each([
  ['plain text, ümläute, 漢字, emoji 👩‍👩‍👧', 'plain text, ümläute, 漢字, emoji 👩‍👩‍👧'],
  ['a\u0000b\u001b[31mc\u007fd', 'a\\x00b\\x1b[31mc\\x7fd'],
  ['a\u202eb\u2066c\u200bd\ufeff', 'a\\u202eb\\u2066c\\u200bd\\ufeff'],
  ['a\u2028b', 'a\\u2028b'],
  ['half \ud800 pair', 'half \\ud800 pair'],
  ['tag \u{e0041}', 'tag \\u{e0041}'],
  ['two\nlines\r\nand', 'two lines and'],
])('%j is shown as %s', (text, shown) => {
  expect(visible(text)).toBe(shown);
});

test('hidden characters are pieces of their own, and line breaks stay', () => {
  expect(piecesOf('a\u202eb\n\tc\r\nd\r')).toEqual([
    { text: 'a', isHidden: false },
    { text: '\\u202e', isHidden: true },
    { text: 'b\n\tc\r\nd', isHidden: false },
    { text: '\\x0d', isHidden: true },
  ]);
});
