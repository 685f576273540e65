import { describe, expect, test } from 'vitest';
import { checkedOptions, isLoopback, type OptionMistake, validOptions, WHOLE_FROM_1 } from '#src/config/checker.ts';

const check = (options: unknown) => checkedOptions<{ a?: number }>('the options', options, { a: WHOLE_FROM_1 });

describe('checkedOptions', () => {
  test('returns a copy without undefined options', () => {
    const options = { a: 1 };
    expect(check(options)).toEqual(options);
    expect(check(options)).not.toBe(options);
    expect(Object.keys(check({ a: undefined }))).toEqual([]);
  });

  test.each([
    [{ a: 0 }, 'Expected `a` to be a whole number from 1, got the number 0'],
    [{ a: 1.5 }, 'Expected `a` to be a whole number from 1, got the number 1.5'],
    [{ a: null }, 'Expected `a` to be a whole number from 1, got null'],
    [{ b: undefined }, 'Expected the options to contain only a, got `b`'],
    [{ constructor: 1 }, 'Expected the options to contain only a, got `constructor`'],
    [undefined, 'Expected the options to be an object, got undefined'],
    ['a', 'Expected the options to be an object, got a string'],
    [[1], 'Expected the options to be an object, got an array'],
    [() => 1, 'Expected the options to be an object, got a function'],
  ])('refuses %j by name', (options, message) => {
    expect(() => check(options)).toThrow(expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION', message }));
  });

  test.each([
    ['hunter2', 'another string'],
    [5, 'the number 5'],
  ])('does not show the secret %s', (key, got) => {
    const checks = { key: ['a key', () => false, 'secret'] } as const;
    expect(() => checkedOptions('the options', { key }, checks)).toThrow(`Expected \`key\` to be a key, got ${got}`);
  });
});

test('validOptions reports every mistake and keeps the other options', () => {
  const given = Object.defineProperty({ a: 1, c: 3 }, 'b', { enumerable: true, get: () => check(null) });
  const mistakes: OptionMistake[] = [];
  const checks = { a: WHOLE_FROM_1, b: WHOLE_FROM_1 };
  expect(validOptions(given, checks, (mistake) => mistakes.push(mistake))).toEqual({ a: 1 });
  expect(mistakes).toMatchObject([
    { name: 'c', value: 3, check: undefined },
    { name: 'b', check: WHOLE_FROM_1 },
  ]);
});

test('the host of an option, which is no URL, may be a loopback address', () => {
  expect(['::1', 'LOCALHOST', '127.1', ''].map(isLoopback)).toEqual([true, true, false, false]);
});
