import { pathText, pathTo } from '../base/forest.ts';
import { type Checks, wholeFrom } from '../config/checker.ts';
import type { RunRecord } from '../run/record.ts';
import {
  Comparison,
  checkedExpectation,
  type ExpectedFields,
  fieldChecks,
  type MatcherContext,
} from './expected-fields.ts';
import { factsOf, recordedRuns } from './recorded-run.ts';
import { recordedText } from './snapshot.ts';

/** Fields, parent and number of the runs that `toHaveRun` expects. */
export interface ExpectedRun extends ExpectedFields {
  /** Expected parent run, given by name or by fields. Set `null` to expect a root run. */
  parent?: string | RegExp | ExpectedFields | null;
  /** Exact number of runs that must match. @default one or more */
  times?: number;
}

/**
 * Type of the matcher for `expect`. `Result` is the return type of an assertion. For Vitest 5, add
 * `declare module 'vitest' { interface Matchers<R extends void | Promise<void>, T> extends RunMatchers<R> {} }`.
 */
export interface RunMatchers<Result = void> {
  /** Expects a run with these fields. Pass a string to match the run's name. */
  toHaveRun(expected: string | ExpectedRun): Result;
}

/** Result of a matcher, in the format that vitest and Jest expect. */
export interface MatcherResult {
  pass: boolean;
  message: () => string;
}

/**
 * The matcher `toHaveRun` for `expect.extend` in vitest and Jest. It accepts the result of `recordRuns()`, a list of
 * recorded runs, or one run. An invalid expectation throws a RunspanError, even with `not`.
 */
export const matchers: { toHaveRun(this: MatcherContext, received: unknown, expected: unknown): MatcherResult } = {
  toHaveRun(received, expected) {
    const runs = recordedRuns(received);
    const comparison = new Comparison(this);
    const { parent, ...fields } = checkedRun(expected);
    const candidates = candidatesOf(runs, fields, parent, comparison);
    const { times } = fields;
    const count = candidates.filter(({ differences }) => differences.length === 0).length;
    const pass = times === undefined ? count > 0 : count === times;
    const lines = (): string[] => {
      const found = count === 0 ? 'no run matches' : count === 1 ? '1 run matches' : `${count} runs match`;
      if (pass) return [found];
      const shown = count > (times ?? 0) ? [] : nearestLines(candidates, fields, comparison);
      return [times === undefined ? found : `${found}, expected ${times}`, ...shown];
    };
    const call = `expect(recorded)${pass ? '.not' : ''}.toHaveRun(${comparison.shown(expected)})`;
    return { pass, message: () => [call, lines().join('\n'), recordedText(runs)].join('\n\n') };
  },
};

const RUN_CHECKS: Checks<ExpectedRun> = {
  ...fieldChecks,
  parent: ['a name, a RegExp, an object or null', (value) => typeof value === 'string' || typeof value === 'object'],
  times: wholeFrom(0),
};

interface RunExpectation extends Omit<ExpectedRun, 'parent'> {
  /** Expected parent, or undefined to ignore parents. */
  readonly parent: ExpectedFields | null | undefined;
}

function checkedRun(given: unknown): RunExpectation {
  const expected = checkedExpectation('the argument of toHaveRun', given, RUN_CHECKS);
  const { parent } = expected;
  if (!Object.hasOwn(expected, 'parent')) return { ...expected, parent: undefined };
  if (parent === undefined || parent === null) return { ...expected, parent: null };
  const fields = parent instanceof RegExp ? { name: parent } : parent;
  return { ...expected, parent: checkedExpectation('`parent`', fields, fieldChecks) };
}

interface Candidate {
  readonly run: RunRecord;
  readonly differences: readonly string[];
}

function candidatesOf(
  runs: readonly RunRecord[],
  fields: ExpectedFields,
  parent: ExpectedFields | null | undefined,
  comparison: Comparison,
): Candidate[] {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const parentDifferences = (run: RunRecord): string[] => {
    if (parent === undefined) return [];
    const actual = byId.get(run.parent_run_id ?? '');
    const missing = run.parent_run_id === undefined ? 'none' : 'a run that is not recorded';
    const got = actual === undefined ? missing : comparison.shown(actual.name);
    if (parent === null) return got === 'none' ? [] : [`parent: expected none, got ${got}`];
    if (actual === undefined) return [`parent: expected one, got ${got}`];
    return comparison.fieldDifferences(factsOf(actual), parent).map((line) => `parent.${line}`);
  };
  return runs.map((run) => ({
    run,
    differences: [...comparison.fieldDifferences(factsOf(run), fields), ...parentDifferences(run)],
  }));
}

/** Maximum number of runs with differences in a failure message. */
const NEAREST_MAX = 3;
/** Maximum number of lines about these runs. */
const LINES_MAX = 30;
/** Returns the differences of runs with the expected name, most similar run first. */
function nearestLines(candidates: readonly Candidate[], { name }: ExpectedFields, comparison: Comparison): string[] {
  const nearest = candidates.filter(
    ({ run, differences }) => differences.length > 0 && comparison.isNamed(factsOf(run), name),
  );
  nearest.sort((a, b) => a.differences.length - b.differences.length);
  const byId = new Map(candidates.map(({ run }) => [run.id, run]));
  const lines = nearest
    .slice(0, NEAREST_MAX)
    .flatMap(({ run, differences }) => [
      `  ${pathText(pathTo(run, byId))}`,
      ...differences.map((line) => `    ${line}`),
    ]);
  if (lines.length > LINES_MAX) lines.splice(LINES_MAX, lines.length, `  … and ${lines.length - LINES_MAX} more lines`);
  return lines.length === 0 ? [] : ['nearest:', ...lines];
}
