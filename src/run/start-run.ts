import { diagnostics } from '../base/diagnostics.ts';
import { currentContext, enterContext, enteredContext } from './context.ts';
import { beginRun, Run } from './run.ts';
import type { RunOptions } from './run-options.ts';

/**
 * Starts a run by hand, below the current one unless `root` is set. It does not become the current run (`withRun` does
 * that), and stays open until you call `end` or `fail`, or leave its `using` block.
 */
export function startRun(options: RunOptions): Run {
  return beginRun('startRun', options, currentContext());
}

/** Calls `fn` with `run` as the current run, for `fn` and all that it starts, and gives back what it returns. */
export function withRun<Result>(run: Run, fn: () => Result): Result {
  if (isRun(run)) return run.sink === undefined ? fn() : enterContext(run.context, fn);
  diagnostics.warnOnce('withRun', 'withRun(run, fn): expected `run` to be a Run; the function was called without it.');
  return fn();
}

/** The innermost run that this code runs in, or undefined outside of any. */
export function currentRun(): Run | undefined {
  const handle = enteredContext()?.handle;
  return handle instanceof Run ? handle : undefined;
}

function isRun(value: unknown): value is Run {
  try {
    return value instanceof Run;
  } catch {
    // A proxy can throw even at this.
    return false;
  }
}
