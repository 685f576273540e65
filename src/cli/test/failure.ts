import type { RecordedTrace } from '../../replay/fixture-of.ts';
import { type ExportedRun, MODEL_TYPES, pathTo } from '../../replay/trace-calls.ts';

/** The step at which a trace failed. */
export interface Failure {
  /** The run whose error has no cause in a nested run. */
  readonly run: ExportedRun;
  /** The names of the root run and of all runs down to this one. */
  readonly path: readonly string[];
  /** First line of the error. */
  readonly error: string;
}

/**
 * Finds the step at which a trace failed. Below a failed run, this is the last failed run, because earlier ones did not
 * end it. In a trace that succeeded, it is the first failed run other than a model call, which an SDK repeats.
 */
export function failureOf({ root, runs }: RecordedTrace): Failure | undefined {
  const failed = runs.filter(({ error }) => error !== undefined && error !== '');
  const below = (run: ExportedRun): ExportedRun | undefined => failed.findLast((one) => one.parent_run_id === run.id);
  let run = failed.includes(root) ? root : failed.find(({ run_type: type }) => !MODEL_TYPES.has(type));
  for (let next = run; next !== undefined; next = below(next)) run = next;
  if (run === undefined) return undefined;
  const path = pathTo(run, new Map(runs.map((one) => [one.id, one]))).map(({ name }) => name);
  return { run, path: path.reverse(), error: run.error?.split('\n', 1)[0] ?? '' };
}

/** Failures with the same key have the same place and the same error, except for numbers and ids in its text. */
export function keyOf({ path, error }: Failure): string {
  return JSON.stringify([path, error.replace(/[\da-f-]*\d[\da-f-]*/gi, '#')]);
}
