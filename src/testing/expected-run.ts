import type { Checks } from '../base/options.ts';
import type { RunRecord } from '../run/record.ts';
import type { Comparison } from './comparison.ts';
import { checkedExpectation, type ExpectedFields, fieldChecks, fieldDifferences } from './expected-fields.ts';
import { factsOf } from './run-facts.ts';

/** A run to look for among others. */
export interface ExpectedRun extends ExpectedFields {
  /** The run directly above, by its name or by more; null when there has to be none. */
  parent?: string | RegExp | ExpectedFields | null;
  /** How many runs there are like this. @default one or more */
  times?: number;
}

const CHECKS: Checks<ExpectedRun> = {
  ...fieldChecks,
  parent: ['a name, a RegExp, an object or null', (value) => typeof value === 'string' || typeof value === 'object'],
  times: ['a whole number from 0', (value) => Number.isSafeInteger(value) && (value as number) >= 0],
};

/** A run beside what is looked for. */
export interface Candidate {
  readonly run: RunRecord;
  /** Where it departs from that, a line for each place. */
  readonly differences: readonly string[];
}

/** Looks for a run; a RunspanError says what is wrong with the expectation. */
export class RunSearch {
  readonly expected: Partial<ExpectedRun>;
  readonly #parent: ExpectedFields | null | undefined;
  readonly #comparison: Comparison;

  constructor(given: unknown, comparison: Comparison) {
    this.expected = checkedExpectation('what toHaveRun takes', given, CHECKS);
    this.#parent = Object.hasOwn(this.expected, 'parent') ? checkedParent(this.expected.parent) : undefined;
    this.#comparison = comparison;
  }

  candidates(runs: readonly RunRecord[]): Candidate[] {
    const byId = new Map(runs.map((run) => [run.id, run]));
    return runs.map((run) => ({
      run,
      differences: [
        ...fieldDifferences(factsOf(run), this.expected, this.#comparison),
        ...this.#parentDifferences(run, byId.get(run.parent_run_id ?? '')),
      ],
    }));
  }

  /** Of those that differ the most alike: of the expected name, where there is any, and with the fewest differences. */
  nearest(candidates: readonly Candidate[], countMax: number): Candidate[] {
    const { name } = this.expected;
    const isNamed = ({ run }: Candidate): boolean =>
      name === undefined || fieldDifferences(factsOf(run), { name }, this.#comparison).length === 0;
    return candidates
      .filter((candidate) => candidate.differences.length > 0 && isNamed(candidate))
      .sort((a, b) => a.differences.length - b.differences.length)
      .slice(0, countMax);
  }

  #parentDifferences(run: RunRecord, parent: RunRecord | undefined): string[] {
    if (this.#parent === undefined) return [];
    const stranger = run.parent_run_id === undefined ? undefined : 'a run that is not recorded';
    if (this.#parent === null) {
      const above = parent === undefined ? stranger : this.#comparison.shown(parent.name);
      return above === undefined ? [] : [`parent: expected none, got ${above}`];
    }
    if (parent === undefined) return [`parent: expected one, got ${stranger ?? 'none'}`];
    return fieldDifferences(factsOf(parent), this.#parent, this.#comparison).map((line) => `parent.${line}`);
  }
}

function checkedParent(parent: ExpectedRun['parent']): ExpectedFields | null {
  if (parent === undefined || parent === null) return null;
  return checkedExpectation('`parent`', parent instanceof RegExp ? { name: parent } : parent, fieldChecks);
}
