import { expect, test } from 'vitest';
import { piecesOf, visibleText } from '#src/viewer/elements/visible-text.ts';

test('a text is shown on one line, with hidden characters escaped', () => {
  expect(visibleText('a\u202eb, half \ud800 pair, tag \u{e0041}, emoji 👩‍👩‍👧\r\nand\nlines')).toBe(
    'a\\u202eb, half \\ud800 pair, tag \\u{e0041}, emoji 👩‍👩‍👧 and lines',
  );
});

test('hidden characters are pieces of their own, and line breaks stay', () => {
  expect(piecesOf('a\u202eb\n\tc\r\nd\r')).toEqual([
    { text: 'a', isHidden: false },
    { text: '\\u202e', isHidden: true },
    { text: 'b\n\tc\r\nd', isHidden: false },
    { text: '\\x0d', isHidden: true },
  ]);
});
