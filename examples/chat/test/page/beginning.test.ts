import { expect, test } from 'vitest';
import { beginningOf } from '../../page/beginning.ts';

test.each([
  ['abcd', 'abcd'],
  ['abcde', 'abcde'],
  ['abcdef', 'abcd…'],
  // Neither a space nor half of a pair is left before the sign.
  ['abc def', 'abc…'],
  ['abc😀e', 'abc…'],
  ['ab😀ef', 'ab😀…'],
  ['', ''],
])('of %j five characters show %j', (text, shown) => {
  expect(beginningOf(text, 5)).toBe(shown);
});
