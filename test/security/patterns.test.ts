import { parseSync } from 'oxc-parser';
import { describe, expect, test } from 'vitest';
import { secretPatterns } from '../../src/index.ts';
import { filesUnder, read } from '../package/repository.ts';
import { CountingRegExp } from '../support/counting-regexp.ts';

const LENGTH = 200;

/** The text on which twice the length takes by far more than twice the steps, and the factor. */
function worstOf(pattern: RegExp): { factor: number; text: string } {
  const counting = new CountingRegExp(pattern);
  const doubled = counting.pumps(2 * LENGTH);
  const worst = counting.pumps(LENGTH).map((text, index) => {
    const longer = doubled[index] ?? '';
    return { factor: counting.steps(longer) / Math.max(counting.steps(text), 20 * LENGTH), text: text.slice(0, 40) };
  });
  return worst.reduce((one, other) => (other.factor > one.factor ? other : one), { factor: 0, text: '' });
}

/** Linear is 2, quadratic 4. */
const FACTOR_MAX = 2.5;

describe('steps are counted as an engine would take them', () => {
  test.each<[RegExp, boolean]>([
    [/a+b/, false],
    [/\s+$/, false],
    [/[^"]+"/g, false],
    [/^a+b/, true],
    [/a{1,8}b/, true],
    [/[^"]*"/y, true],
    [/(?<!a)a+b/, true],
  ])('of %s, which is linear: %s [security 13]', (pattern, isLinear) => {
    expect(worstOf(pattern).factor < FACTOR_MAX).toBe(isLinear);
  });

  test.each([/(?:a+)+b/, /(?:a|a)*b/, /(?:aa?)*b/])(
    'of %s, which doubles with each character [security 13]',
    (pattern) => {
      // On as many as elsewhere it would not end.
      const stepsOf = (length: number): number => new CountingRegExp(pattern).steps(`${'a'.repeat(length)}!`);
      expect(stepsOf(16) / stepsOf(8)).toBeGreaterThan(20);
    },
  );
});

test.each(secretPatterns.map((pattern) => [pattern.source, pattern] as const))(
  'a pattern for secrets takes steps in proportion to the text: %s [security 13]',
  (_, pattern) => {
    const worst = worstOf(pattern);
    expect(worst, worst.text).toMatchObject({ factor: expect.toSatisfy((factor: number) => factor < FACTOR_MAX) });
  },
);

interface Literal {
  readonly file: string;
  readonly pattern: RegExp;
}

/** Every regular expression that is written in the source. */
function literals(): Literal[] {
  const found = new Map<string, Literal>();
  for (const file of filesUnder('src', '.ts')) {
    JSON.stringify(parseSync(file, read(`src/${file}`), { sourceType: 'module' }).program, (_, value) => {
      if (value?.regex === undefined || value.regex === null) return value;
      const { pattern, flags } = value.regex as { pattern: string; flags: string };
      found.set(`/${pattern}/${flags}`, { file, pattern: new RegExp(pattern, flags) });
      return undefined;
    });
  }
  return [...found.values()];
}

test('every regular expression of the source does [security 13]', () => {
  const all = literals();
  expect(all.length).toBeGreaterThan(50);
  const slow = all
    .map((literal) => ({ ...literal, worst: worstOf(literal.pattern) }))
    .filter(({ worst }) => worst.factor >= FACTOR_MAX)
    .map(
      ({ file, pattern, worst }) =>
        `${file}: ${pattern} on ${JSON.stringify(worst.text)}, ${worst.factor.toFixed(1)} times`,
    );
  expect(slow).toEqual([]);
});
