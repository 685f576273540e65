import { describe, expect, test } from 'vitest';
import { parseSearch, runWords } from '#src/receiver/domain/search-words.ts';

const BREAK = '|';
const wordsOf = (text: string) => runWords({ name: text }).slice(0, -1);

describe('the words of a text', () => {
  test.each<[string, string[]]>([
    ['', []],
    ['Hello, World!', ['hello', 'world']],
    ['snake_case x2 3.14', ['snake_case', 'x2', '3', '14']],
    ['Crème BRÛLÉE ﬁne', ['creme', 'brulee', 'fine']],
    ['Привет, Ёж', ['привет', 'еж']],
    ['東京 tower', ['東', '京', 'tower']],
    ['𠮷野', ['𠮷', '野']],
    ['don’t', ['don', 't']],
  ])('%j', (text, words) => {
    expect(wordsOf(text)).toEqual(words);
  });

  test('are looked at up to 64 characters', () => {
    expect(wordsOf(`${'a'.repeat(64)} ${'b'.repeat(65)}`)).toEqual(['a'.repeat(64), 'b'.repeat(64)]);
  });
});

test.each<[string, ReturnType<typeof parseSearch>]>([
  ['refund pol', { prefixes: ['refund', 'pol'], phrases: [] }],
  ['a "new order" b', { prefixes: ['a', 'b'], phrases: [['new', 'order']] }],
  ['"one"', { prefixes: ['one'], phrases: [] }],
  ['not "closed here', { prefixes: ['not'], phrases: [['closed', 'here']] }],
  ['タワー tow 京', { prefixes: ['tow', '京'], phrases: [['タ', 'ワ', 'ー']] }],
  ['?! ""', undefined],
])('a search %j', (text, search) => {
  expect(parseSearch(text)).toEqual(search);
});

describe('the words of a run', () => {
  test('are those of its name, error, tags, metadata, inputs and outputs, and of no key', () => {
    const run = {
      name: 'n',
      error: 'e',
      tags: ['t'],
      extra: { metadata: { m: 'v', deep: [{ x: 5 }] }, runtime: { sdk: 'not' } },
      inputs: { question: 'q' },
      outputs: { answer: true, text: 'o' },
      session_name: 'not',
    };
    const words = ['n', BREAK, 'e', BREAK, 't', BREAK, 'v', BREAK, '5', BREAK, 'q', BREAK, 'o', BREAK];
    expect(runWords(run)).toEqual(words);
  });

  test('reach over a mebi of characters, payloads last', () => {
    const long = `${'x'.repeat(63)} `.repeat(16 * 1024);
    expect(runWords({ name: 'n', inputs: { a: `${long.slice(0, -64)} end` } })).toContain('end');
    expect(runWords({ name: 'n', inputs: { a: long }, outputs: { b: 'end' } })).not.toContain('end');
  });
});
