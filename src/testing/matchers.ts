import type { RunRecord } from '../run/record.ts';
import { Comparison, type MatcherContext, type MatcherResult } from './comparison.ts';
import { type Candidate, type ExpectedRun, RunSearch } from './expected-run.ts';
import {
  checkedMatchOptions,
  checkedTrace,
  type ExpectedTrace,
  TraceComparison,
  type TraceMatchOptions,
} from './expected-trace.ts';
import { recordedText } from './outline.ts';
import { runsOf } from './recorded.ts';
import { steadyForest } from './steady-forest.ts';

/**
 * What the matchers add to `expect`, for a declaration of yours; `Result` is what an assertion gives back. For vitest:
 * `declare module 'vitest' { interface Matchers<T> extends RunMatchers {} }`.
 */
export interface RunMatchers<Result = void> {
  /** There is such a run; a text is its name. */
  toHaveRun(expected: string | ExpectedRun): Result;
  /** The runs are this tree, or these trees: whole and in order, unless the options say otherwise. */
  toMatchTrace(expected: ExpectedTrace | readonly ExpectedTrace[], options?: TraceMatchOptions): Result;
}

/**
 * For `expect.extend`, of vitest and of whatever shares its protocol. They look at what `recordRuns()` gives, at a list of
 * recorded runs, or at one. What they cannot make sense of is refused with a RunspanError, also under `not`.
 */
export const matchers: {
  toHaveRun(this: MatcherContext, received: unknown, expected: unknown): MatcherResult;
  toMatchTrace(this: MatcherContext, received: unknown, expected: unknown, options?: unknown): MatcherResult;
} = {
  toHaveRun(received, expected) {
    const runs = runsOf(received);
    const comparison = new Comparison(this);
    const search = new RunSearch(expected, comparison);
    const { times } = search.expected;
    const candidates = search.candidates(runs);
    const count = candidates.filter(({ differences }) => differences.length === 0).length;
    const pass = times === undefined ? count > 0 : count === times;
    const found = `${count === 0 ? 'no run is' : count === 1 ? '1 run is' : `${count} runs are`} like this`;
    const lines = (): string[] => {
      if (pass) return [found];
      const nearest = count > (times ?? 0) ? [] : nearestLines(search.nearest(candidates, NEAREST_MAX), runs);
      return [times === undefined ? found : `${found}, expected ${times}`, ...nearest];
    };
    return { pass, message: () => report(pass, `toHaveRun(${comparison.shown(expected)})`, lines(), runs) };
  },

  toMatchTrace(received, expected, options = {}) {
    const runs = runsOf(received);
    const trace = checkedTrace(expected);
    const comparison = new Comparison(this);
    const differences = new TraceComparison(comparison, checkedMatchOptions(options)).differences(
      steadyForest(runs, true),
      trace,
    );
    const pass = differences.length === 0;
    const lines = pass ? ['the runs are like this'] : differences;
    return { pass, message: () => report(pass, 'toMatchTrace(expected)', lines, runs) };
  },
};

/** Runs that are told of when none is as expected. */
const NEAREST_MAX = 3;
/** Lines of differences in a message. */
const LINES_MAX = 30;

/** Why an assertion fails. That of one which passes is shown when it is negated. */
function report(pass: boolean, head: string, lines: readonly string[], runs: readonly RunRecord[]): string {
  const told = lines.slice(0, LINES_MAX);
  if (lines.length > told.length) told.push(`… and ${lines.length - told.length} more`);
  return `expect(recorded)${pass ? '.not' : ''}.${head}\n\n${told.join('\n')}\n\n${recordedText(runs)}`;
}

function nearestLines(nearest: readonly Candidate[], runs: readonly RunRecord[]): string[] {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const lines = nearest.flatMap(({ run, differences }) => [
    `  ${pathOf(run, byId)}`,
    ...differences.map((line) => `    ${line}`),
  ]);
  return lines.length === 0 ? [] : ['the nearest:', ...lines];
}

/** `answer > search`. */
function pathOf(run: RunRecord, byId: ReadonlyMap<string, RunRecord>): string {
  // A set, since parents can stand in a ring.
  const path = new Set<RunRecord>();
  for (let at: RunRecord | undefined = run; at !== undefined && !path.has(at); ) {
    path.add(at);
    at = byId.get(at.parent_run_id ?? '');
  }
  return [...path]
    .reverse()
    .map(({ name }) => name)
    .join(' > ');
}
