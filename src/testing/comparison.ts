import { cut } from '../base/text.ts';
import { hasPlainPrototype } from '../payload/describe.ts';

/** What `expect` gives a matcher as `this`, as far as ours use it; vitest and jest agree on it. */
export interface MatcherContext {
  equals(a: unknown, b: unknown, customTesters?: Tester[]): boolean;
  readonly customTesters?: Tester[];
  readonly utils: {
    stringify(value: unknown): string;
    readonly iterableEquality: Tester;
    readonly subsetEquality: Tester;
  };
}

/** Only handed on: each `expect` declares its own. */
export type Tester = (...values: never[]) => boolean | undefined;

/** What a matcher answers. */
export interface MatcherResult {
  pass: boolean;
  message: () => string;
}

/** Characters of one value in a message. */
const VALUE_MAX = 300;

/** How values are compared and shown: as `toMatchObject` does, asymmetric matchers included. */
export class Comparison {
  readonly #context: MatcherContext;
  readonly #testers: Tester[];

  constructor(context: MatcherContext) {
    const { customTesters = [], utils } = context;
    this.#context = context;
    this.#testers = [...customTesters, unlikeKinds, utils.iterableEquality, utils.subsetEquality];
  }

  /** Objects may have more than expected, lists may not. */
  matches(actual: unknown, expected: unknown): boolean {
    return this.#context.equals(actual, expected, this.#testers);
  }

  /** A value on one line. */
  shown(value: unknown): string {
    if (value === undefined) return 'nothing';
    const text = typeof value === 'string' ? JSON.stringify(value) : onOneLine(this.#context.utils.stringify(value));
    return cut(text, VALUE_MAX);
  }

  /** Where a value departs from what is expected of it, a line for each place; none when it matches. */
  differences(path: string, actual: unknown, expected: unknown): string[] {
    if (this.matches(actual, expected)) return [];
    const inner = commonKeys(actual, expected).flatMap(([key, inside, wanted]) =>
      this.differences(path + key, inside, wanted),
    );
    return inner.length > 0 ? inner : [`${path}: expected ${this.shown(expected)}, got ${this.shown(actual)}`];
  }
}

/** Taken by itself, subset equality finds every key of `{}` in anything, in nothing at all too. */
function unlikeKinds(actual: unknown, expected: unknown): false | undefined {
  if (typeof expected !== 'object' || expected === null || isAsymmetric(expected)) return undefined;
  const isAlike = typeof actual === 'object' && actual !== null && Array.isArray(actual) === Array.isArray(expected);
  return isAlike ? undefined : false;
}

/** `Object {⏎  "a": 1,⏎}` as `{ "a": 1 }`. */
function onOneLine(text: string): string {
  return text
    .replace(/(?<!\s)\s*\n\s*/g, ' ')
    .replace(/\b(?:Object|Array) (?=[{[])/g, '')
    .replace(/,(?= [}\]])/g, '');
}

/** What stands at the same place in both, when both are plain objects or lists of the same length. */
function commonKeys(
  actual: unknown,
  expected: unknown,
): (readonly [key: string, actual: unknown, expected: unknown])[] {
  if (Array.isArray(actual) && Array.isArray(expected)) {
    if (actual.length !== expected.length) return [];
    return expected.map((item, at) => [`[${at}]`, actual[at], item] as const);
  }
  if (!isPlain(actual) || !isPlain(expected)) return [];
  return Object.entries(expected).map(
    ([key, value]) => [`.${key}`, Object.hasOwn(actual, key) ? actual[key] : undefined, value] as const,
  );
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && hasPlainPrototype(value) && !isAsymmetric(value);
}

/** One such as `expect.anything()`. */
export interface AsymmetricMatcher {
  asymmetricMatch(actual: unknown): boolean;
}

export function isAsymmetric(value: unknown): value is AsymmetricMatcher {
  return typeof (value as Partial<AsymmetricMatcher> | null)?.asymmetricMatch === 'function';
}
