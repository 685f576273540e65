import { type Check, type Checks, checkedOptions } from '../base/checked-options.ts';
import { RunspanError } from '../base/errors.ts';
import { type AsymmetricMatcher, type Comparison, isAsymmetric } from './comparison.ts';
import type { RunFacts } from './run-facts.ts';

/**
 * What is expected of a run. A field that is left out is not looked at; one that is `undefined` has to be absent. Objects
 * may have more keys than are given, at every level; lists have to be whole. Asymmetric matchers may stand for any value.
 */
export interface ExpectedFields {
  name?: string | RegExp | AsymmetricMatcher;
  runType?: string | AsymmetricMatcher;
  inputs?: object;
  outputs?: object | undefined;
  /** Compared with the first line, `Name: message`. */
  error?: string | RegExp | AsymmetricMatcher | undefined;
  tags?: readonly (string | AsymmetricMatcher)[] | AsymmetricMatcher | undefined;
  metadata?: object | undefined;
  /** Each with `name` and the `data` that it was given. */
  events?: readonly object[] | AsymmetricMatcher | undefined;
  /** Each with `name`, `mimeType` and `size` in bytes. */
  attachments?: readonly object[] | AsymmetricMatcher | undefined;
  project?: string | AsymmetricMatcher;
  /** Whether the run has not ended. */
  open?: boolean;
}

const object: Check = ['an object or a matcher', (value) => typeof value === 'object' && value !== null];
const list: Check = ['a list or a matcher', (value) => Array.isArray(value) || isAsymmetric(value)];
const text: Check = ['text or a matcher', (value) => typeof value === 'string' || isAsymmetric(value)];
const pattern: Check = ['text, a RegExp or a matcher', (value) => value instanceof RegExp || text[1](value)];

export const fieldChecks: Checks<ExpectedFields> = {
  name: pattern,
  runType: text,
  inputs: object,
  outputs: object,
  error: pattern,
  tags: list,
  metadata: object,
  events: list,
  attachments: list,
  project: text,
  open: ['true or false', (value) => typeof value === 'boolean'],
};

/** The expectation as it is given, a name as an object: other than in options, a field that is undefined says something. */
export function checkedExpectation<Expected extends ExpectedFields>(
  what: string,
  expected: unknown,
  checks: Checks<Expected>,
): Partial<Expected> {
  const object = typeof expected === 'string' ? { name: expected } : expected;
  refuseWithoutKeys(what, object);
  checkedOptions(what, object, checks);
  return object as Partial<Expected>;
}

/** What tells by other means than its keys, a pattern or a map, would expect nothing, and any run would do. */
function refuseWithoutKeys(what: string, object: unknown): void {
  if (typeof object !== 'object' || object === null) return;
  const kind = Object.prototype.toString.call(object).slice(8, -1);
  if (kind === 'Object' || Array.isArray(object)) return;
  const advice = kind === 'RegExp' ? `; write { name: ${object} }` : '';
  throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected ${what} to be a plain object, got a ${kind}${advice}`);
}

/** Where the facts depart from what is expected, a line for each place: `outputs.hits: expected 2, got 3`. */
export function fieldDifferences(facts: RunFacts, expected: ExpectedFields, comparison: Comparison): string[] {
  return (Object.keys(fieldChecks) as (keyof ExpectedFields)[])
    .filter((field) => Object.hasOwn(expected, field))
    .flatMap((field) => differencesOf(field, facts[field], expected[field], comparison));
}

function differencesOf(field: string, actual: unknown, expected: unknown, comparison: Comparison): string[] {
  if (expected instanceof RegExp && typeof actual === 'string') {
    // Unlike `test`, `search` starts anew each time, also with the flag `g`.
    return actual.search(expected) >= 0 ? [] : [`${field}: expected ${expected}, got ${comparison.shown(actual)}`];
  }
  // No tags and an empty list of them are one and the same.
  const isNone = actual === undefined && Array.isArray(expected) && expected.length === 0;
  return isNone ? [] : comparison.differences(field, actual, expected);
}
