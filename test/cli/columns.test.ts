import { describe, expect, it } from 'vitest';
import { columnsOf, cut } from '../../src/cli/columns.ts';

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
