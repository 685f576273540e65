import { onTestFinished } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import type { RunRecord } from '../../src/run/record.ts';
import { type RunRecorder, recordRuns } from '../../src/testing/record-runs.ts';

/** Records the runs of one test. */
export function record(): RunRecorder {
  const recorder = recordRuns();
  onTestFinished(recorder.stop);
  return recorder;
}

/** The diagnostic lines that a test causes; what was told once before may be told again. */
export function heard(): string[] {
  const lines: string[] = [];
  diagnostics.forgetPlaces();
  diagnostics.setLog((_level, line) => lines.push(line));
  onTestFinished(() => diagnostics.setLog('warn'));
  return lines;
}

/** Names below names: `{ answer: { search: {}, call: {} } }`. A name that comes twice below one parent is told once. */
export function treeOf(runs: readonly RunRecord[], parent?: string): Record<string, unknown> {
  const children = runs.filter((run) => run.parent_run_id === parent);
  return Object.fromEntries(children.map((run) => [run.name, treeOf(runs, run.id)]));
}

/** A promise that the test settles. */
export function gate<Value = void>(): Promise<Value> & { open(value: Value): void; fail(error: unknown): void } {
  let open = (_value: Value): void => {};
  let fail = (_error: unknown): void => {};
  const promise = new Promise<Value>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return Object.assign(promise, { open, fail });
}
