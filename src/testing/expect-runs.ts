import { inspect } from 'node:util';
import { isObject } from '../config/checker.ts';
import { isAsymmetric, type MatcherContext } from './expected-fields.ts';
import { type MatcherResult, matchers, type RunMatchers } from './matchers.ts';
import type { Recorded } from './recorded-run.ts';

/** Assertions about recorded runs. `not` expects the opposite. */
export interface RunExpectations extends RunMatchers {
  readonly not: RunMatchers;
}

/**
 * The matchers for test runners without `expect.extend`, such as `node:test`. A failed assertion throws an Error named
 * `AssertionError`. An invalid expectation throws a RunspanError.
 */
export function expectRuns(recorded: Recorded): RunExpectations {
  return { ...assertions(recorded, true), not: assertions(recorded, false) };
}

function assertions(recorded: Recorded, isExpected: boolean): RunMatchers {
  const own: RunMatchers = {
    toHaveRun: (expected) => check(matchers.toHaveRun.call(context, recorded, expected), own.toHaveRun),
    toMatchTrace: (expected, options) =>
      check(matchers.toMatchTrace.call(context, recorded, expected, options), own.toMatchTrace),
  };
  function check({ pass, message }: MatcherResult, assertion: CallableFunction): void {
    if (pass === isExpected) return;
    // Test runners would show a difference between values for the class of `node:assert`.
    const error = new Error(message());
    error.name = 'AssertionError';
    Error.captureStackTrace(error, assertion);
    throw error;
  }
  return own;
}

const context: MatcherContext = {
  equals,
  utils: {
    stringify: (value) => inspect(value, { depth: null, breakLength: Number.POSITIVE_INFINITY }),
    iterableEquality: none,
    subsetEquality: none,
  },
};

function none(): undefined {}

/** Like the equality of `toMatchObject`: objects may have further keys, and lists must have the same length. */
function equals(actual: unknown, expected: unknown): boolean {
  if (isObject(expected) && isAsymmetric(expected)) return expected.asymmetricMatch(actual);
  if (Array.isArray(expected)) {
    const isSame = Array.isArray(actual) && actual.length === expected.length;
    return isSame && expected.every((item, at) => equals(actual[at], item));
  }
  if (!isObject(expected) || !isObject(actual)) return Object.is(actual, expected);
  return Object.entries(expected).every(([key, value]) => equals(actual[key], value));
}
