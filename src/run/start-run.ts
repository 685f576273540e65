import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreErrors } from '../base/guard.ts';
import { contextTo, contextWith } from './context/context.ts';
import { currentContext, enterContext, enteredContext, offToEnter } from './context/current.ts';
import { sinkBeside, urlOf } from './context/inherited.ts';
import { RemoteRun } from './propagation/propagation.ts';
import { Run, startRunIn } from './run.ts';
import { type ContextFields, contextChecks, isSink, type RunOptions, usableOptions } from './run-options.ts';
import type { RunSink } from './sink.ts';

/**
 * Starts a run as a child of the current run. If there is no current run or `root` is true, the run starts a new trace.
 * Use `withRun` to make the new run the current run. The run stays open until you call `end` or `fail`, or until its
 * `using` block ends.
 */
export function startRun(options: RunOptions): Run {
  return startRunIn('startRun', options);
}

/**
 * Calls `fn` with `run` as the current run, and returns the result of `fn`. `run` is also the current run in
 * asynchronous work that `fn` starts. `run` can be a run from `fromHeaders`. If `run` is undefined, the current run
 * does not change. If `run` is not recorded, nothing in `fn` is recorded.
 */
export function withRun<Result>(run: Run | RemoteRun | undefined, fn: () => Result): Result {
  if (run === undefined) return fn();
  if (is(run, Run)) return run.sink === undefined ? withoutRuns(fn) : enterContext(run.context, fn);
  if (is(run, RemoteRun)) {
    const sink = sinkBeside(currentContext());
    if (sink === undefined) return fn();
    const { fields } = currentContext() ?? {};
    const context = run.contextFor(sink);
    return enterContext(fields === undefined ? context : contextWith(fields, context), fn);
  }
  diagnostics.warnOnce(
    'withRun',
    'withRun(run, fn): expected `run` to be a Run; the function was called without a run.',
  );
  return fn();
}

/**
 * Calls `fn` and returns its result. Runs that start in `fn`, or in asynchronous work that `fn` starts, record the
 * given conversation, user, tags and metadata. The current run does not change. An option of a run takes precedence
 * over the metadata of the context, and an inner call of `withContext` over an outer call.
 */
export function withContext<Result>(fields: ContextFields, fn: () => Result): Result {
  return enterContext(contextWith(usableOptions('withContext', fields, contextChecks), currentContext()), fn);
}

/**
 * Calls `fn` and returns its result. Runs that start in `fn`, or in asynchronous work that `fn` starts, are sent to
 * `exporter`. A run's own `exporter` option takes precedence.
 */
export function withExporter<Result>(exporter: RunSink, fn: () => Result): Result {
  if (isSink(exporter)) {
    return exporter.isOff === true ? withoutRuns(fn) : enterContext(contextTo(exporter, currentContext()), fn);
  }
  diagnostics.warnOnce(
    'withExporter',
    'withExporter(exporter, fn): expected `exporter` to be the result of createExporter(); the function was called without the exporter.',
  );
  return fn();
}

function withoutRuns<Result>(fn: () => Result): Result {
  const off = offToEnter();
  return off === undefined ? fn() : enterContext(off, fn);
}

/** Returns the current run, or undefined if there is none. */
export function currentRun(): Run | undefined {
  const owner = enteredContext()?.owner;
  return owner instanceof Run ? owner : undefined;
}

/**
 * Returns the address of a run's page, for example for a log line. `run` defaults to the current run. The address
 * contains only the address of the endpoint and ids. If `run` is not the first run of its trace, the page selects it.
 *
 * Every service other than LangSmith is taken to be a receiver of runspan. Behind a gateway without the receiver's page,
 * the address leads to no page. For LangSmith, the address needs `workspaceId` and a `project` with an id.
 *
 * Returns undefined if there is no run, if tracing is off, if the trace is left out, or if the page is unknown. Never
 * throws.
 */
export function traceUrl(run?: Run): string | undefined {
  if (run === undefined) return guard('traceUrl', () => urlOf(currentContext()));
  if (is(run, Run)) return run.url;
  diagnostics.warnOnce('traceUrl', 'traceUrl(run): expected `run` to be a Run; there is no link.');
  return undefined;
}

function is<Instance>(value: unknown, of: abstract new (...args: never[]) => Instance): value is Instance {
  // `instanceof` throws for a revoked proxy.
  return ignoreErrors(() => value instanceof of) ?? false;
}
