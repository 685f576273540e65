import { diagnostics } from '../base/diagnostics.ts';
import { contextTo, currentContext, enterContext, enteredContext } from './context.ts';
import { RemoteRun } from './propagation.ts';
import { beginRun, Run, sinkOf } from './run.ts';
import { isSink, type RunOptions } from './run-options.ts';
import type { RunSink } from './sink.ts';

/**
 * Starts a run by hand, below the current one unless `root` is set. It does not become the current run (`withRun` does
 * that), and stays open until you call `end` or `fail`, or leave its `using` block.
 */
export function startRun(options: RunOptions): Run {
  return beginRun('startRun', options, currentContext());
}

/**
 * Calls `fn` with `run` as the current run, for `fn` and all that it starts, and gives back what it returns. It may also be
 * a run of another process, as `fromHeaders` gives it; without one, `fn` is called as it is.
 */
export function withRun<Result>(run: Run | RemoteRun | undefined, fn: () => Result): Result {
  if (run === undefined) return fn();
  if (is(run, Run)) return run.sink === undefined ? fn() : enterContext(run.context, fn);
  if (is(run, RemoteRun)) {
    const sink = sinkOf(currentContext());
    return sink === undefined ? fn() : enterContext(run.contextFor(sink), fn);
  }
  diagnostics.warnOnce('withRun', 'withRun(run, fn): expected `run` to be a Run; the function was called without it.');
  return fn();
}

/**
 * Calls `fn` so that runs that start in it, at any depth and however late, go to `exporter`; a run that names an exporter of
 * its own goes there. Those that have started already stay where they are.
 */
export function withExporter<Result>(exporter: RunSink, fn: () => Result): Result {
  if (isSink(exporter)) return enterContext(contextTo(exporter, currentContext()), fn);
  diagnostics.warnOnce(
    'withExporter',
    'withExporter(exporter, fn): expected `exporter` to be what createExporter() gives; the function was called without it.',
  );
  return fn();
}

/** The innermost run that this code runs in, or undefined outside of any. */
export function currentRun(): Run | undefined {
  const handle = enteredContext()?.handle;
  return handle instanceof Run ? handle : undefined;
}

function is<Instance>(value: unknown, of: abstract new (...args: never[]) => Instance): value is Instance {
  try {
    return value instanceof of;
  } catch {
    // A proxy can throw even at this.
    return false;
  }
}
