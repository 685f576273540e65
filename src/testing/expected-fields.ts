import { RunspanError } from '../base/errors.ts';
import { cut } from '../base/text.ts';
import { type Check, type Checks, checkedOptions, TRUE_OR_FALSE } from '../config/checker.ts';
import { type Fields, isFields, isPlainObject } from '../payload/fields.ts';
import type { RunFacts } from './recorded-run.ts';

/** The parts of `this` that the matcher uses. vitest and Jest provide `this`. */
export interface MatcherContext {
  equals(a: unknown, b: unknown, customTesters?: Tester[]): boolean;
  readonly customTesters?: Tester[];
  readonly utils: {
    stringify(value: unknown): string;
    readonly iterableEquality: Tester;
    readonly subsetEquality: Tester;
  };
}

/** A custom equality tester. The parameter types are open, because each test framework declares different types. */
export type Tester = (...values: never[]) => boolean | undefined;

/** An asymmetric matcher such as `expect.anything()`. */
export interface AsymmetricMatcher {
  asymmetricMatch(actual: unknown): boolean;
}

/**
 * Expected fields of a run. Omitted fields are not compared. A field set to `undefined` must be missing from the run.
 * Objects in the run may have additional keys at every level. Lists must match completely. Any value may be an
 * asymmetric matcher.
 */
export interface ExpectedFields {
  name?: string | RegExp | AsymmetricMatcher;
  runType?: string | AsymmetricMatcher;
  inputs?: object;
  outputs?: object | undefined;
  /** Expected first line of the run's error, in the format `Name: message`. */
  error?: string | RegExp | AsymmetricMatcher | undefined;
  tags?: readonly (string | AsymmetricMatcher)[] | AsymmetricMatcher | undefined;
  metadata?: object | undefined;
  /** Expected events, each as an object with `name` and `data`. */
  events?: readonly object[] | AsymmetricMatcher | undefined;
  /** Expected attachments, each as an object with `name`, `mimeType` and `size` in bytes. */
  attachments?: readonly object[] | AsymmetricMatcher | undefined;
  project?: string | AsymmetricMatcher;
  /** Whether the run is still open. */
  open?: boolean;
}

const object: Check = ['an object or a matcher', (value) => typeof value === 'object' && value !== null];
const list: Check = ['a list or a matcher', (value) => Array.isArray(value) || isAsymmetric(value)];
const text: Check = ['a string or a matcher', (value) => typeof value === 'string' || isAsymmetric(value)];
const pattern: Check = ['a string, a RegExp or a matcher', (value) => value instanceof RegExp || text[1](value)];

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
  open: TRUE_OR_FALSE,
};

/**
 * Validates an expectation, which is an object or a run's name. Throws a RunspanError if the expectation is invalid.
 */
export function checkedExpectation<Expected extends ExpectedFields>(
  what: string,
  expected: unknown,
  checks: Checks<Expected>,
): Partial<Expected> {
  const fields = typeof expected === 'string' ? { name: expected } : expected;
  if (isFields(fields) && kindOf(fields) !== 'Object') {
    // A RegExp or Map has no keys to compare, so it would match any run.
    const advice = fields instanceof RegExp ? `; write { name: ${fields} }` : '';
    throw invalid(`${what} to be a plain object, got a ${kindOf(fields)}${advice}`);
  }
  checkedOptions(what, fields, checks);
  for (const field of DATA_FIELDS) checkData(field, (fields as ExpectedFields)[field], new Set());
  return fields as Partial<Expected>;
}

/** Fields with values that are compared key by key at every level. */
const DATA_FIELDS = ['inputs', 'outputs', 'metadata', 'tags', 'events', 'attachments'] as const;

/**
 * Throws an error if the expected data contains an object without keys, such as a Map. Such an object would match any
 * value.
 */
function checkData(path: string, expected: unknown, seen: Set<object>): void {
  if (typeof expected !== 'object' || expected === null || isAsymmetric(expected) || seen.has(expected)) return;
  seen.add(expected);
  const entries = Object.entries(expected);
  const isList = Array.isArray(expected);
  if (kindOf(expected) === 'Promise' || (entries.length === 0 && !isList && !isPlain(expected))) {
    const advice = expected instanceof RegExp ? `; write expect.stringMatching(${expected})` : '';
    throw invalid(`\`${path}\` to be data or a matcher, got an object without keys (${kindOf(expected)})${advice}`);
  }
  for (const [key, value] of entries) checkData(isList ? `${path}[${key}]` : `${path}.${key}`, value, seen);
}

function invalid(expectation: string): RunspanError {
  return new RunspanError('RUNSPAN_INVALID_OPTION', `Expected ${expectation}`);
}

/**
 * Returns whether a value is a plain object. Objects from other realms count too, because test frameworks may use
 * several realms.
 */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function kindOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

function isAsymmetric(value: unknown): value is AsymmetricMatcher {
  return typeof (value as Partial<AsymmetricMatcher> | null)?.asymmetricMatch === 'function';
}

/** Maximum length of a value in a failure message, in characters. */
const VALUE_MAX = 300;

/** Compares and prints values like `toMatchObject`, including asymmetric matchers. */
export class Comparison {
  readonly #context: MatcherContext;
  readonly #testers: Tester[];

  constructor(context: MatcherContext) {
    const { customTesters = [], utils } = context;
    this.#context = context;
    this.#testers = [...customTesters, differentKinds, utils.iterableEquality, utils.subsetEquality];
  }

  shown(value: unknown): string {
    if (value === undefined) return 'nothing';
    const text = typeof value === 'string' ? JSON.stringify(value) : onOneLine(this.#context.utils.stringify(value));
    return cut(text, VALUE_MAX);
  }

  /** Returns one line per difference, for example `outputs.hits: expected 2, got 3`. */
  fieldDifferences(facts: RunFacts, expected: ExpectedFields): string[] {
    return (Object.keys(fieldChecks) as (keyof ExpectedFields)[])
      .filter((field) => Object.hasOwn(expected, field))
      .flatMap((field) => {
        const [actual, wanted] = [facts[field], expected[field]];
        if (wanted instanceof RegExp && typeof actual === 'string') {
          // `search` ignores `lastIndex`, unlike `test` with the flag `g`.
          return actual.search(wanted) >= 0 ? [] : [`${field}: expected ${wanted}, got ${this.shown(actual)}`];
        }
        // An expected empty list matches a missing field such as `tags`.
        const isNone = actual === undefined && Array.isArray(wanted) && wanted.length === 0;
        return isNone ? [] : this.#differences(field, actual, wanted);
      });
  }

  isNamed(facts: RunFacts, name: ExpectedFields['name']): boolean {
    return name === undefined || this.fieldDifferences(facts, { name }).length === 0;
  }

  #differences(path: string, actual: unknown, expected: unknown): string[] {
    if (this.#context.equals(actual, expected, this.#testers)) return [];
    const inner = commonKeys(actual, expected).flatMap(([key, value, wanted]) =>
      this.#differences(path + key, value, wanted),
    );
    return inner.length > 0 ? inner : [`${path}: expected ${this.shown(expected)}, got ${this.shown(actual)}`];
  }
}

/**
 * Rejects values of different types, such as an object and a list. Otherwise `{}` would match any value, because subset
 * equality compares only keys.
 */
function differentKinds(actual: unknown, expected: unknown): false | undefined {
  if (typeof expected !== 'object' || expected === null || isAsymmetric(expected)) return undefined;
  const isSame = typeof actual === 'object' && actual !== null && Array.isArray(actual) === Array.isArray(expected);
  return isSame ? undefined : false;
}

/** Joins printed lines into one: `Object {⏎  "a": 1,⏎}` becomes `{ "a": 1 }`. */
function onOneLine(text: string): string {
  return text
    .replace(/(?<!\s)\s*\n\s*/g, ' ')
    .replace(/\b(?:Object|Array) (?=[{[])/g, '')
    .replace(/,(?= [}\]])/g, '');
}

/** Pairs values with the same key in two plain objects, or with the same index in two lists of equal length. */
function commonKeys(
  actual: unknown,
  expected: unknown,
): (readonly [key: string, actual: unknown, expected: unknown])[] {
  if (Array.isArray(actual) && Array.isArray(expected)) {
    if (actual.length !== expected.length) return [];
    return expected.map((item, at) => [`[${at}]`, actual[at], item] as const);
  }
  if (!isPlainData(actual) || !isPlainData(expected)) return [];
  return Object.entries(expected).map(
    ([key, value]) => [`.${key}`, Object.hasOwn(actual, key) ? actual[key] : undefined, value] as const,
  );
}

function isPlainData(value: unknown): value is Fields {
  return isPlainObject(value) && !isAsymmetric(value);
}
