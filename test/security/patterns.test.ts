import { parseSync } from 'oxc-parser';
import { describe, expect, test, vi } from 'vitest';
import { secretPatterns } from '#src/index.ts';
import { filesUnder, read } from '../package/repository.ts';
import { sample } from '../support/campaign.ts';
import { CountingRegExp } from '../support/counting-regexp.ts';

// A property takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const LENGTH = 200;

/** Linear is 2, quadratic 4. */
const FACTOR_MAX = 2.5;

/** Factors are taken from at least this number of steps per character, since short searches vary. */
const STEPS_PER_CHARACTER = 20;

/** Cubic. Shorter searches than those of `STEPS_PER_CHARACTER` cannot reach `FACTOR_MAX` with twice the text. */
const GROWTH_MAX = 8;

interface Growth {
  readonly factor: number;
  readonly text: string;
}

/** Returns a text that takes far more than twice the steps at twice the length. */
function offenderOf(pattern: RegExp): Growth | undefined {
  const counting = new CountingRegExp(pattern);
  const doubled = counting.pumps(2 * LENGTH);
  for (const [index, text] of counting.pumps(LENGTH).entries()) {
    const steps = counting.steps(text);
    if (steps * GROWTH_MAX < STEPS_PER_CHARACTER * FACTOR_MAX * LENGTH) continue;
    const factor = counting.steps(doubled[index] ?? '') / Math.max(steps, STEPS_PER_CHARACTER * LENGTH);
    if (factor >= FACTOR_MAX) return { factor, text: text.slice(0, 40) };
  }
  return undefined;
}

describe('the number of steps', () => {
  test.each<[RegExp, boolean]>([
    [/a+b/, false],
    [/\s+$/, false],
    [/[^"]+"/g, false],
    [/^a+b/, true],
    [/a{1,8}b/, true],
    [/[^"]*"/y, true],
    [/(?<!a)a+b/, true],
  ])('of %s is linear: %s [security 13]', (pattern, isLinear) => {
    expect(offenderOf(pattern) === undefined).toBe(isLinear);
  });

  test.each([/(?:a+)+b/, /(?:a|a)*b/, /(?:aa?)*b/])('of %s doubles with each character [security 13]', (pattern) => {
    // Longer texts would take forever.
    const stepsOf = (length: number): number => new CountingRegExp(pattern).steps(`${'a'.repeat(length)}!`);
    expect(stepsOf(16) / stepsOf(8)).toBeGreaterThan(20);
  });
});

interface Literal {
  readonly file: string;
  readonly pattern: RegExp;
}

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

test('every regular expression of the source takes a linear number of steps [security 13]', () => {
  const all = literals();
  expect(all.length).toBeGreaterThan(50);
  expect(all.filter(({ file }) => file.endsWith('redaction/patterns.ts'))).toHaveLength(secretPatterns.length);
  const slow = sample(all).flatMap(({ file, pattern }) => {
    const offender = offenderOf(pattern);
    return offender === undefined ? [] : [{ file, pattern: String(pattern), ...offender }];
  });
  expect(slow).toEqual([]);
});
