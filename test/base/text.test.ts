import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cut, messageOf, safeText, shown, visible } from '#src/base/text.ts';
import { anything, revokedProxy } from './hostile.ts';

test.each<[string, unknown, string]>([
  ['text', 'as it is\n', 'as it is\n'],
  ['a number', 1.5, '1.5'],
  ['undefined', undefined, 'undefined'],
  ['null', null, 'null'],
  ['a bigint', 12n, '12'],
  ['a symbol', Symbol('mark'), 'Symbol(mark)'],
  ['an array', [1, [2]], '[object Array(2)]'],
  ['an object', {}, '[object Object]'],
  ['an error', new TypeError('no'), 'TypeError: no'],
  ['an object without a prototype', Object.create(null), '[unprintable object]'],
  ['a revoked proxy', revokedProxy(), '[unprintable object]'],
  ['a revoked function', revokedProxy(() => {}), '[unprintable function]'],
])('safeText of %s', (_, value, expected) => {
  expect(safeText(value)).toBe(expected);
});

describe('messageOf', () => {
  test.each<[string, unknown, string]>([
    ['an error', new Error('refused'), 'refused'],
    ['an error with a code and no message', Object.assign(new Error(), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
    ['an error with neither', new RangeError(), 'RangeError'],
    ['several errors', new AggregateError([new Error('first'), new Error('second')], 'both'), 'first'],
    ['an empty list of errors', new AggregateError([], 'all were rejected'), 'all were rejected'],
    ['text', 'plain', 'plain'],
    ['undefined', undefined, 'undefined'],
    ['null', null, 'null'],
    ['a message that is not text', Object.assign(new Error(), { message: Symbol('mark') }), 'Symbol(mark)'],
    ['a revoked proxy', revokedProxy(), '[an error that cannot be read]'],
  ])('of %s', (_, thrown, expected) => {
    expect(messageOf(thrown)).toBe(expected);
  });

  test('is one line', () => {
    expect(messageOf(new Error('a\r\n\tb\u2028c\u0000\u001bd\u0085e'))).toBe('a b c d e');
  });

  test.each([
    [299, 299],
    [300, 300],
    [301, 300],
  ])('of %i characters has %i', (length, expected) => {
    expect(messageOf(new Error('x'.repeat(length)))).toHaveLength(expected);
  });
});

test('safeText and messageOf return text for any value', () => {
  fc.assert(
    fc.property(anything, (make) => {
      const value = make();
      expect(typeof safeText(value)).toBe('string');
      expect(messageOf(value)).toMatch(/^[^\n\r]{0,300}$/);
    }),
    { numRuns: 1_000 },
  );
});

describe('a value in a message', () => {
  test.each([
    ['a "b"', '"a \\"b\\""'],
    ['x'.repeat(80), `"${'x'.repeat(80)}"`],
    ['x'.repeat(81), `"${'x'.repeat(80)}…"`],
    [5, 'the number 5'],
    [Number.NaN, 'the number NaN'],
    [null, 'null'],
    [undefined, 'undefined'],
    [true, 'true'],
    [['secret'], 'an array'],
    [{ key: 'secret' }, 'an object'],
    [Promise.resolve('secret'), 'a promise'],
    [() => 'secret', 'a function'],
  ])('%j is shown as %s', (value, text) => {
    expect(shown(value)).toBe(text);
  });

  test('is that of its kind for anything, without a throw', () => {
    expect([shown(revokedProxy()), shown({ value: revokedProxy(() => 1) })]).toEqual(['an object', 'an object']);
    fc.assert(fc.property(anything, (maker) => typeof shown(maker()) === 'string'));
  });

  test.each([
    ['abcd', 'abcd'],
    ['abcde', 'abcde'],
    ['abcdef', 'abcde…'],
  ])('%s is cut at 5 to %s', (text, expected) => {
    expect(cut(text, 5)).toBe(expected);
  });
});

test.each<[string, string, string]>([
  ['an ANSI colour', '\u001b[31mred', '\\x1b[31mred'],
  ['an 8-bit control sequence', '\u009b2J', '\\x9b2J'],
  ['line breaks and a tab', 'a\r\nb\tc', 'a\\r\\nb\\tc'],
  ['a line separator', 'a\u2028b', 'a\\u2028b'],
  ['a reversed direction', '\u202etxt.exe', '\\u202etxt.exe'],
  ['an invisible tag', '\u{e0041}', '\\u{e0041}'],
  ['half a surrogate pair', '\ud83d!', '\\ud83d!'],
  ['only visible characters', 'naïve 検索 👩‍👩‍👧 می\u200cخواهم a\\b', 'naïve 検索 👩‍👩‍👧 می\u200cخواهم a\\b'],
])('visible escapes text with %s', (_, text, expected) => {
  expect(visible(text)).toBe(expected);
});
