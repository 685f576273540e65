import { RunspanError } from '../base/errors.ts';
import { type Check, type Checks, checkedOptions, isObject, TRUE_OR_FALSE } from '../base/options.ts';
import { cut } from '../base/text.ts';
import { hasPlainPrototype } from '../payload/describe.ts';
import type { RunFacts } from './recorded-run.ts';

/** The parts of `this` that the matchers use. vitest and jest supply them. */
export interface MatcherContext {
  equals(a: unknown, b: unknown, customTesters?: Tester[]): boolean;
  readonly customTesters?: Tester[];
  readonly utils: {
    stringify(value: unknown): string;
    readonly iterableEquality: Tester;
    readonly subsetEquality: Tester;
  };
}

/** A custom equality tester. The parameter types are left open, because each test framework declares its own. */
export type Tester = (...values: never[]) => boolean | undefined;

/** A matcher such as `expect.anything()`. */
export interface AsymmetricMatcher {
  asymmetricMatch(actual: unknown): boolean;
}

/**
 * The expected fields of a run. Omitted fields are not compared. A field set to `undefined` must be absent from the
 * run. The run's objects may have additional keys at every level, but its lists must match completely. Any value may be
 * an asymmetric matcher.
 */
export interface ExpectedFields {
  name?: string | RegExp | AsymmetricMatcher;
  runType?: string | AsymmetricMatcher;
  inputs?: object;
  outputs?: object | undefined;
  /** Compared with the first line of the run's error, `Name: message`. */
  error?: string | RegExp | AsymmetricMatcher | undefined;
  tags?: readonly (string | AsymmetricMatcher)[] | AsymmetricMatcher | undefined;
  metadata?: object | undefined;
  /** The run's events. Each event is compared as an object with `name` and `data`. */
  events?: readonly object[] | AsymmetricMatcher | undefined;
  /** The run's attachments. Each attachment is compared as an object with `name`, `mimeType` and `size` in bytes. */
  attachments?: readonly object[] | AsymmetricMatcher | undefined;
  project?: string | AsymmetricMatcher;
  /** Whether the run is still open. */
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
  open: TRUE_OR_FALSE,
};

/**
 * Validates an expectation. Throws a RunspanError if the expectation is invalid. `expected` may be a name instead of an
 * object.
 */
export function checkedExpectation<Expected extends ExpectedFields>(
  what: string,
  expected: unknown,
  checks: Checks<Expected>,
): Partial<Expected> {
  const fields = typeof expected === 'string' ? { name: expected } : expected;
  if (isObject(fields) && kindOf(fields) !== 'Object') {
    // A RegExp or a Map has no keys to compare, so it would match any run.
    const advice = fields instanceof RegExp ? `; write { name: ${fields} }` : '';
    throw invalid(`${what} to be a plain object, got a ${kindOf(fields)}${advice}`);
  }
  checkedOptions(what, fields, checks);
  for (const field of DATA_FIELDS) checkData(field, (fields as ExpectedFields)[field], new Set());
  return fields as Partial<Expected>;
}

/** Fields whose values are compared key by key at every level. */
const DATA_FIELDS = ['inputs', 'outputs', 'metadata', 'tags', 'events', 'attachments'] as const;

/** Throws if the expected data contains an object without keys, such as a Map, because it would match any value. */
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

/** Whether a value is a plain object. Recognizes objects from other realms, because test frameworks may use several. */
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

/** Maximum number of characters of a value in a failure message. */
const VALUE_MAX = 300;

/** Compares and prints values in the same way as `toMatchObject`, including asymmetric matchers. */
export class Comparison {
  readonly #context: MatcherContext;
  readonly #testers: Tester[];

  constructor(context: MatcherContext) {
    const { customTesters = [], utils } = context;
    this.#context = context;
    this.#testers = [...customTesters, differentKinds, utils.iterableEquality, utils.subsetEquality];
  }

  /** Formats a value on one line. */
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
          // Uses `search`, because `test` depends on the `lastIndex` of a pattern with the flag `g`.
          return actual.search(wanted) >= 0 ? [] : [`${field}: expected ${wanted}, got ${this.shown(actual)}`];
        }
        // An expected empty list matches a missing field, for example `tags`.
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
 * An equality tester that rejects values of different kinds. Without this tester, `{}` would match any value, because
 * subset equality compares only keys.
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

/** Pairs the values that have the same key in two plain objects, or the same index in two lists of equal length. */
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

function isPlainData(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && hasPlainPrototype(value) && !isAsymmetric(value);
}
