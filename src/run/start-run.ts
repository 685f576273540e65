import { diagnostics } from '../base/diagnostics.ts';
import { contextTo, currentContext, enterContext, enteredContext, sinkOf } from './context.ts';
import { RemoteRun } from './propagation.ts';
import { Run, startRunBelow } from './run.ts';
import { isSink, type RunOptions } from './run-options.ts';
import type { RunSink } from './sink.ts';

/**
 * Starts a run below the current one, or a new trace with `root`. The run does not become the current run; `withRun` does
 * that. It stays open until you call `end` or `fail`, or leave its `using` block.
 */
export function startRun(options: RunOptions): Run {
  return startRunBelow('startRun', options, currentContext());
}

/**
 * Calls `fn` with `run` as the current run, also for everything that `fn` starts, and returns its result. `run` may be a run
 * of another process that `fromHeaders` returned. Without a run, calls `fn` directly.
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
 * Calls `fn` so that runs that start in it, at any depth and at any later time, go to `exporter`, unless a run names its own
 * exporter. Runs that have already started are not affected.
 */
export function withExporter<Result>(exporter: RunSink, fn: () => Result): Result {
  if (isSink(exporter)) return enterContext(contextTo(exporter, currentContext()), fn);
  diagnostics.warnOnce(
    'withExporter',
    'withExporter(exporter, fn): expected `exporter` to be what createExporter() gives; the function was called without it.',
  );
  return fn();
}

/** Returns the innermost run that this code runs in, or undefined outside any run. */
export function currentRun(): Run | undefined {
  const owner = enteredContext()?.owner;
  return owner instanceof Run ? owner : undefined;
}

function is<Instance>(value: unknown, of: abstract new (...args: never[]) => Instance): value is Instance {
  try {
    return value instanceof of;
  } catch {
    // `instanceof` throws for a revoked proxy.
    return false;
  }
}
