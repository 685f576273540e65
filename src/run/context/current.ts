import type { AsyncLocalStorage } from 'node:async_hooks';
import type { Channel } from 'node:diagnostics_channel';
import { guard } from '../../base/guard.ts';
import { shared } from '../../base/shared.ts';
import { callReplacementsBy } from '../../payload/redaction/redact.ts';
import { createStorage } from '../../platform/node.ts';
import type { EncodedRun } from '../encoded-run.ts';
import { type Hiding, hiddenByEither, type RunOptions } from '../run-options.ts';
import { type EncodedFields, mayRecord, type RunSink } from '../sink.ts';
import {
  heldRateOf,
  isOff,
  leftOutContext,
  OFF,
  offSink,
  type RunContext,
  type RunOwner,
  type RunStatus,
  rootContext,
  SAMPLED,
  type SpanIds,
  startsTrace,
  untracedContext,
} from './context.ts';
import { sinkOf } from './inherited.ts';

/**
 * Returns the context that makes `run` the parent of new runs. Nested runs inherit the tags and metadata in `from`, and
 * nested calls the hiding.
 */
export function contextOf(
  run: Pick<EncodedRun, 'id' | 'traceId' | 'dottedOrder' | 'project'> & Partial<Pick<EncodedRun, 'held'>>,
  from: EncodedFields,
  status: RunStatus,
  span: object | undefined,
  owner: RunOwner,
  parent: RunContext | undefined,
  hiding?: Hiding,
): RunContext {
  // Not frozen, because freezing takes longer than creating the object.
  return {
    id: run.id,
    traceId: run.traceId,
    dottedOrder: run.dottedOrder,
    project: run.project,
    tags: from.tags,
    metadata: from.metadata,
    fields: parent?.fields,
    added: undefined,
    refused: status === 'refused',
    sampled: status === 'kept' || status === 'refused',
    held: run.held,
    exporter: status === 'off' ? offSink : undefined,
    span,
    step: activeStep()?.id,
    hiding: hiddenByEither(parent?.hiding, hiding),
    owner,
  };
}

/**
 * Returns the context to enter so that nothing is recorded. Undefined if nothing would be recorded anyway, because
 * entering a context is slow on Node 20.
 */
export function offToEnter(): RunContext | undefined {
  const around = currentContext();
  return (around === undefined ? mayRecord() : !isOff(around)) ? OFF : undefined;
}

/** Gives access to OpenTelemetry spans, without importing `otel/`. */
export interface SpanSource {
  /**
   * Returns the active OpenTelemetry span, regardless of which library created the span. Returns `SUPPRESSED` if the
   * active context suppresses tracing.
   */
  activeSpan(): object | undefined;
  /** Returns the trace of a span, or undefined if the span belongs to no OpenTelemetry trace. */
  traceOf(span: object): SpanIds | undefined;
  /** Returns the context of the run that records `span`, or undefined if no run does. */
  contextOf(span: object): RunContext | undefined;
}

/** The first call of an incoming request. The request's run is recorded in the project of this call. */
export type FirstCall = Readonly<Pick<RunOptions, 'project'>>;

/** Gives access to the runs of incoming requests, without importing `register/`. */
export interface RequestSource {
  /** Returns `around` below the run of the current request. Undefined if the request has no run. */
  contextIn(around: RunContext | undefined): RunContext | undefined;
  /** Like `contextIn`, but starts the run of an open request. `call` is the first call of the request. */
  begin(around: RunContext | undefined, sink: RunSink, call: FirstCall): RunContext | undefined;
  /** Called when a run has started or ended. */
  observe(run: EncodedRun, sink: RunSink | undefined): void;
}

/** Stands for the active span while OpenTelemetry suppresses tracing. */
export const SUPPRESSED: object = shared('suppressed', () => Object.freeze({}));

const KEY = Symbol.for('runspan.context.v1');
const holder = globalThis as { [KEY]?: AsyncLocalStorage<RunContext> };
holder[KEY] ??= createStorage<RunContext>();
const storage: AsyncLocalStorage<RunContext> = holder[KEY];

/** Returns the context of the innermost open framework step, or undefined if there is none. */
type StepSource = () => RunContext | undefined;

interface Sources {
  spans: SpanSource | undefined;
  requests: RequestSource | undefined;
  readonly steps: Set<StepSource>;
}

const sources: Sources = shared('contextSources', () => ({ spans: undefined, requests: undefined, steps: new Set() }));

export function setSpanSource(source: SpanSource | undefined): void {
  sources.spans = source;
}

/** Whether this process has a `RunSpanProcessor` or a `RunSampler`. */
export function areSpansRecorded(): boolean {
  return sources.spans !== undefined;
}

export function setRequestSource(source: RequestSource): void {
  sources.requests = source;
}

/** Passes a run that has started or ended to the run of its request. */
export function observeRun(run: EncodedRun, sink: RunSink | undefined): void {
  if (sources.requests !== undefined) sources.requests.observe(run, sink);
}

/** Undefined if incoming requests are not recorded. */
export function requestSource(): RequestSource | undefined {
  return sources.requests;
}

/** Returns a function that removes the step source. */
export function addStepSource(source: StepSource): () => void {
  sources.steps.add(source);
  return () => sources.steps.delete(source);
}

function activeStep(): RunContext | undefined {
  for (const source of sources.steps) {
    const step = source();
    if (step !== undefined) return step;
  }
  return undefined;
}

export function activeSpan(): object | undefined {
  return sources.spans?.activeSpan();
}

/** Returns the context of the current run. Unlike `currentContext`, ignores the active span. */
export function enteredContext(): RunContext | undefined {
  const stored = storage.getStore();
  const entered = sources.steps.size === 0 ? stored : insideStep(stored, activeStep());
  return sources.requests !== undefined && startsTrace(entered)
    ? (sources.requests.contextIn(entered) ?? entered)
    : entered;
}

/**
 * Returns the innermost of the current context and the context of a framework's step. A context that is not recorded counts
 * as the innermost.
 */
export function insideStep(entered: RunContext | undefined, step: RunContext | undefined): RunContext | undefined {
  if (entered === undefined || step?.id === undefined) return entered ?? step;
  const isInside = entered.sampled === false || entered.id === step.id || entered.step === step.id;
  return isInside || entered.dottedOrder?.startsWith(`${step.dottedOrder}.`) ? entered : step;
}

/** Returns the ids of the active span, if `context` is the context of its run. */
export function spanOf(context: RunContext): SpanIds | undefined {
  const span = sources.spans?.activeSpan();
  if (span === undefined || sources.spans?.contextOf(span)?.id !== context.id) return undefined;
  return sources.spans?.traceOf(span);
}

export function spanTraceId(): string | undefined {
  const span = sources.spans?.activeSpan();
  return span && sources.spans?.traceOf(span)?.traceId;
}

/**
 * Returns the innermost context of the current run, the active framework step and the active span. `exporter` is the
 * exporter of the run that starts in the context, if the run does not use the context's exporter.
 */
export function currentContext(exporter?: RunSink): RunContext | undefined {
  const entered = enteredContext();
  if (sources.spans === undefined) return entered;
  const span = sources.spans.activeSpan();
  if (span === SUPPRESSED) return untracedContext;
  if (span === undefined || span === entered?.span) return entered;
  return sampledBy(span, innermostContext(entered, span), exporter);
}

/**
 * Returns `context`, or a context in which no run is recorded if OpenTelemetry's sampler has left out `span`. The first
 * run below such a span starts a trace that is left out, like the first run of a trace that our sampler leaves out. A
 * trace that is held contains all of its runs.
 */
export function sampledBy(span: object, context: RunContext | undefined, exporter?: RunSink): RunContext | undefined {
  const { traceFlags = SAMPLED } = sources.spans?.traceOf(span) ?? {};
  if ((traceFlags & SAMPLED) !== 0 || heldRateOf(context) !== undefined) return context;
  const sink = sinkOf(context, exporter);
  if (sink === undefined) return context;
  // If a recorded span has no run, a filter or a missing span processor is the cause. Traces inside the span are held.
  const isBelowHeld = sink.hold && startsTrace(context) && (span as { isRecording?(): boolean }).isRecording?.();
  return isBelowHeld === true ? { ...(context ?? rootContext), heldRate: Number.NaN } : leftOutContext(context);
}

/** Spans that were active before the run became current are outside the run. */
export function innermostContext(entered: RunContext | undefined, parentSpan?: object): RunContext | undefined {
  if (parentSpan === undefined || parentSpan === entered?.span) return entered;
  return sources.spans?.contextOf(parentSpan) ?? entered;
}

export function enterContext<Result>(context: RunContext, fn: () => Result): Result {
  return storage.run(asEntered(context), fn);
}

export function applyIn<Self, Args extends unknown[], Result>(
  context: RunContext,
  fn: (this: Self, ...args: Args) => Result,
  self: Self,
  args: Args,
): Result {
  return storage.run(asEntered(context), Reflect.apply, fn, self, args) as Result;
}

function asEntered(context: RunContext): RunContext {
  if (sources.spans === undefined && sources.steps.size === 0) return context;
  const span = sources.spans?.activeSpan();
  const step = activeStep()?.id;
  return span === context.span && step === context.step ? context : Object.freeze({ ...context, span, step });
}

/**
 * Enters the context that `contextOf` returns for a message, in the code that publishes the message with `runStores`. If
 * `contextOf` returns undefined, the context does not change.
 */
export function bindContext(channel: Channel, contextOf: (message: unknown) => RunContext | undefined): void {
  channel.bindStore(storage, (message) => {
    const context = guard(channel.name.toString(), () => contextOf(message));
    return context === undefined ? storage.getStore() : asEntered(context);
  });
}

/**
 * Calls a tracing callback, for example `sampler`, with tracing off. If the callback were traced, its run would call
 * the callback again in an endless loop.
 */
export function untraced<Args extends unknown[], Result>(fn: (...args: Args) => Result, ...args: Args): Result {
  return enterContext(untracedContext, () => fn(...args));
}

callReplacementsBy(untraced);
