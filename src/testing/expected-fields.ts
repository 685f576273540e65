import { RunspanError } from '../base/errors.ts';
import { type Check, type Checks, checkedOptions } from '../base/options.ts';
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
  for (const field of DATA_FIELDS) refuseWhatMatchesAll(field, (object as ExpectedFields)[field], new Set());
  return object as Partial<Expected>;
}

/** What tells by other means than its keys, a pattern or a map, would expect nothing, and any run would do. */
function refuseWithoutKeys(what: string, object: unknown): void {
  if (typeof object !== 'object' || object === null) return;
  const kind = kindOf(object);
  if (kind === 'Object' || Array.isArray(object)) return;
  const advice = kind === 'RegExp' ? `; write { name: ${object} }` : '';
  throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected ${what} to be a plain object, got a ${kind}${advice}`);
}

/** Fields that are compared by their keys, at every level. */
const DATA_FIELDS = ['inputs', 'outputs', 'metadata', 'tags', 'events', 'attachments'] as const;

/** The same anywhere in what is expected: a promise, a map, any object that keeps its data to itself. */
function refuseWhatMatchesAll(path: string, expected: unknown, seen: Set<object>): void {
  if (typeof expected !== 'object' || expected === null || isAsymmetric(expected) || seen.has(expected)) return;
  seen.add(expected);
  if (Array.isArray(expected)) {
    for (const [at, item] of expected.entries()) refuseWhatMatchesAll(`${path}[${at}]`, item, seen);
    return;
  }
  const entries = Object.entries(expected);
  if (kindOf(expected) === 'Promise' || (entries.length === 0 && !isPlain(expected))) {
    const message = `Expected \`${path}\` to be data or a matcher, got ${inWords(expected)}`;
    throw new RunspanError('RUNSPAN_INVALID_OPTION', message);
  }
  for (const [key, value] of entries) refuseWhatMatchesAll(`${path}.${key}`, value, seen);
}

/** Of this realm or another, as tests may run in one of their own. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function inWords(value: object): string {
  const kind = kindOf(value);
  if (kind === 'Object') return 'an object without keys';
  if (kind === 'RegExp') return `a RegExp; write expect.stringMatching(${value})`;
  return `${/^[AEIOU]/.test(kind) ? 'an' : 'a'} ${kind}${kind === 'Promise' ? '; await it' : ''}`;
}

function kindOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1);
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
