import { onTestFinished } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { type RunRecorder, recordRuns } from '#src/testing/record-runs.ts';

export function record(options?: Parameters<typeof recordRuns>[0]): RunRecorder {
  const recorder = recordRuns(options);
  onTestFinished(recorder.stop);
  return recorder;
}

/** Returns the names of runs as a tree: `{ answer: { search: {}, call: {} } }`. Siblings with one name are one entry. */
export function treeOf(runs: readonly RunRecord[], parent?: string): Record<string, unknown> {
  const children = runs.filter((run) => run.parent_run_id === parent);
  return Object.fromEntries(children.map((run) => [run.name, treeOf(runs, run.id)]));
}
