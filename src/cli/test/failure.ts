import { depthFirst, forestOf, pathTo, type Tree } from '../../base/forest.ts';
import { firstLine } from '../../base/text.ts';
import type { RecordedTrace } from '../../replay/fixture-of.ts';
import { type ExportedRun, isModelCall } from '../../replay/trace-calls.ts';
import { hasProgramEnded } from '../../run/record.ts';

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
 * Finds the step at which a trace failed. In a trace that succeeded, this is below the first failed run other than a
 * model call, which an SDK repeats, or else the last model call if it has failed.
 */
export function failureOfTrace({ root, runs }: RecordedTrace): Failure | undefined {
  const tree = forestOf(runs).find(({ run }) => run === root);
  const nodes = [...depthFirst(tree === undefined ? [] : [tree])].map(([node]) => node);
  let node = isFailed(root) ? tree : nodes.find(({ run }) => isFailed(run) && !isModelCall(run));
  if (!isFailed(root)) node ??= lastFailedCall(nodes);
  for (let next = node; next !== undefined; next = causeIn(next)) node = next;
  if (node === undefined) return undefined;
  const path = pathTo(node.run, new Map(runs.map((run) => [run.id, run]))).map(({ name }) => name);
  return { run: node.run, path, error: errorLine(node.run) };
}

function lastFailedCall(nodes: readonly Tree<ExportedRun>[]): Tree<ExportedRun> | undefined {
  const calls = nodes.filter(({ run }) => isModelCall(run));
  const last = calls.toSorted((a, b) => (a.run.start_time < b.run.start_time ? -1 : 1)).at(-1);
  return last && isFailed(last.run) ? last : undefined;
}

/** Returns the nested run that has failed a run. A failure after which the run has started others was handled. */
function causeIn({ run, children }: Tree<ExportedRun>): Tree<ExportedRun> | undefined {
  const failed = children.filter((child) => isFailed(child.run));
  const same = failed.find((child) => errorLine(child.run) === errorLine(run));
  const last = failed.at(-1);
  const { end_time: endTime = '' } = last?.run ?? {};
  const isLast = children.every((child) => child.run.start_time <= endTime);
  return same ?? (isLast ? last : undefined);
}

/** If the failure of another run has ended the program, `runspan dev` has ended the runs that were still open. */
function isFailed(run: ExportedRun): boolean {
  return run.error !== undefined && run.error !== '' && !hasProgramEnded(run);
}

function errorLine({ error = '' }: ExportedRun): string {
  return firstLine(error);
}

/** Failures with the same key have the same place and the same error, except for numbers and ids in its text. */
export function failureKey({ path, error }: Failure): string {
  return JSON.stringify([path, error.replace(/[\da-f-]+/gi, (word) => (/\d/.test(word) ? '#' : word))]);
}
