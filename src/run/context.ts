import { AsyncLocalStorage } from 'node:async_hooks';
import { callReplacementsBy } from '../payload/redact.ts';
import type { EncodedRun, Project } from './encoded-run.ts';
import type { RunType } from './record.ts';
import { currentSink, noopSink, type RunSink } from './sink.ts';

/**
 * The position in the run tree where nested runs start. The context is a plain frozen object, stored under a global
 * symbol, so that all copies of the package in a process build one tree. A copy ignores the `owner` of a context that
 * another copy created.
 */
export interface RunContext {
  /** Undefined if the context only sets an exporter. A run that starts in this context then starts a new trace. */
  readonly id: string | undefined;
  readonly traceId: string | undefined;
  readonly dottedOrder: string | undefined;
  readonly project: Project | undefined;
  /** Tags and metadata that nested runs inherit. Metadata values are JSON text. */
  readonly tags: readonly string[] | undefined;
  readonly metadata: ReadonlyMap<string, string> | undefined;
  /** Whether the sink refused the run. The sink then refuses nested runs too. */
  readonly refused: boolean;
  /** False if sampling left out the trace. */
  readonly sampled: boolean;
  /** The sink of nested runs, if it differs from the sink of this run. */
  readonly exporter: RunSink | undefined;
  /** The OpenTelemetry span that was active when this context became current. */
  readonly span: object | undefined;
  /** The run id of the framework step that was active when this context became current. */
  readonly step: string | undefined;
  /** The `RunOwner` that records the run. Ignored if the owner belongs to another copy of the package. */
  readonly owner: object | undefined;
}

/** Identifies this copy of the package. */
export const PACKAGE_COPY: object = Object.freeze({});

/** The object that records a run, for example a `Run`, an OpenTelemetry span or a run of another process. */
export interface RunOwner {
  /** The `PACKAGE_COPY` of the package copy that created this owner. */
  readonly packageCopy: object;
  readonly sink: RunSink | undefined;
  /** The model call that the run records. Undefined if the run has ended or is not a model call. */
  readonly modelCall: ModelCall | undefined;
}

/** Identifies a model call by facts that are known when the call starts. */
export interface ModelCall {
  readonly runType: RunType;
  /** The requested model. */
  readonly model: string;
  /** The instrumentation scope of the span that records the call. Undefined if no span records the call. */
  readonly scope?: string | undefined;
}

/** Whether a run is sent, was refused by its sink, or was left out by sampling. */
export type RunStatus = 'kept' | 'refused' | 'sampledOut';

/** Returns the context of a run. `from` contains the tags and metadata that nested runs inherit. */
export function contextOf(
  run: EncodedRun,
  from: Pick<RunContext, 'tags' | 'metadata'>,
  status: RunStatus,
  span: object | undefined,
  owner: RunOwner,
): RunContext {
  return Object.freeze({
    id: run.id,
    traceId: run.traceId,
    dottedOrder: run.dottedOrder,
    project: run.project,
    tags: from.tags,
    metadata: from.metadata,
    refused: status === 'refused',
    sampled: status !== 'sampledOut',
    exporter: undefined,
    span,
    step: activeStep?.()?.id,
    owner,
  });
}

/** Returns the context of a run of another process. Nested runs go to `sink`. */
export function remoteContext(
  fields: Pick<RunContext, 'id' | 'traceId' | 'dottedOrder' | 'project' | 'tags' | 'metadata' | 'sampled'>,
  sink: RunSink,
): RunContext {
  const owner: RunOwner = { packageCopy: PACKAGE_COPY, sink, modelCall: undefined };
  return Object.freeze({ ...rootContext, ...fields, span: activeSpan(), owner });
}

/** Returns a copy of `context` whose nested runs go to `exporter`. */
export function contextTo(exporter: RunSink, context: RunContext | undefined): RunContext {
  return Object.freeze({ ...(context ?? rootContext), exporter });
}

/** The context outside any run. */
const rootContext: RunContext = {
  id: undefined,
  traceId: undefined,
  dottedOrder: undefined,
  project: undefined,
  tags: undefined,
  metadata: undefined,
  refused: false,
  sampled: true,
  exporter: undefined,
  span: undefined,
  step: undefined,
  owner: undefined,
};

function ownerOf(context: RunContext): RunOwner | undefined {
  const owner = context.owner as Partial<RunOwner> | undefined;
  return owner?.packageCopy === PACKAGE_COPY ? (owner as RunOwner) : undefined;
}

/** Returns the sink of `parent`, or the current sink if `parent` is undefined or belongs to another package copy. */
export function sinkOf(parent: RunContext | undefined): RunSink | undefined {
  if (parent === undefined) return currentSink();
  if (parent.exporter !== undefined) return parent.exporter;
  const owner = ownerOf(parent);
  return owner === undefined ? currentSink() : owner.sink;
}

/** Returns the tags and metadata that a run inherits. Returns none if `sink` differs from the sink of the parent. */
export function inheritedFrom(
  parent: RunContext | undefined,
  sink: RunSink | undefined,
): Pick<RunContext, 'tags' | 'metadata'> {
  if (parent === undefined) return rootContext;
  const owner = ownerOf(parent);
  return owner !== undefined && owner.sink !== sink ? rootContext : parent;
}

/**
 * Returns the model call of the parent run if the parent run is open and has the same sink. A nested call of the same
 * type and model is assumed to be the same call, recorded by a second instrumentation. For example, a wrapped client
 * may call a patched method. The outer record is kept, because it has the application's request and result. Sibling
 * runs are never compared, because concurrent calls of one model look alike.
 */
export function enclosingModelCall(parent: RunContext | undefined, sink: RunSink): ModelCall | undefined {
  const owner = parent && ownerOf(parent);
  return owner?.sink === sink ? owner.modelCall : undefined;
}

/** Returns the model call of a run with this type and metadata, or undefined if the metadata has no model. */
export function modelCall(runType: RunType | undefined, metadata: object | undefined): ModelCall | undefined {
  const model: unknown = metadata && Reflect.get(metadata, 'ls_model_name');
  return runType !== undefined && typeof model === 'string' && model !== '' ? { runType, model } : undefined;
}

/** Whether two records describe one model call. Nested spans of one instrumentation scope describe different calls. */
export function isSameCall(one: ModelCall | undefined, other: ModelCall | undefined): boolean {
  if (one === undefined || one.runType !== other?.runType || one.model !== other.model) return false;
  return one.scope === undefined || one.scope !== other.scope;
}

/** Gives access to OpenTelemetry spans. Implemented by `otel/`. */
export interface SpanSource {
  /** Returns the active span of any library. */
  activeSpan(): object | undefined;
  /** Returns the context of the run that records the span, or undefined if no run records the span. */
  contextOf(span: object): RunContext | undefined;
  /** Records the run of `context` instead of a span that has just started. */
  replace?(span: object, context: RunContext): void;
}

const KEY = Symbol.for('runspan.context.v1');
const holder = globalThis as { [KEY]?: AsyncLocalStorage<RunContext> };
holder[KEY] ??= new AsyncLocalStorage<RunContext>();
const storage: AsyncLocalStorage<RunContext> = holder[KEY];

let spans: SpanSource | undefined;

/** Called when the first span processor of `otel/` is created. */
export function setSpanSource(source: SpanSource | undefined): void {
  spans = source;
}

/** Replaces the span that an SDK started for a call with the run that records the call. */
export function replaceSpan(span: object, context: RunContext): void {
  spans?.replace?.(span, context);
}

let activeStep: (() => RunContext | undefined) | undefined;

/** Sets the function that returns the context of the active framework step. Called by integrations. */
export function setStepSource(source: typeof activeStep): void {
  activeStep = source;
}

/** Returns the active OpenTelemetry span, or undefined if `otel/` is not in use. */
export function activeSpan(): object | undefined {
  return spans?.activeSpan();
}

/** Returns the innermost context of a run or a framework step, ignoring spans. */
export function enteredContext(): RunContext | undefined {
  const entered = storage.getStore();
  return activeStep === undefined ? entered : insideStep(entered, activeStep());
}

/** Returns the inner context. A step that was active before the run became current is outside the run. */
export function insideStep(entered: RunContext | undefined, step: RunContext | undefined): RunContext | undefined {
  return step === undefined || step.id === entered?.step ? entered : step;
}

/**
 * Returns the innermost context of a run or a span. A span that was active before the run became current is outside the
 * run. Any other active span is inside the run.
 */
export function currentContext(): RunContext | undefined {
  const entered = enteredContext();
  return spans === undefined ? entered : innermostContext(entered, spans.activeSpan());
}

/** Like `currentContext`, but uses `parentSpan` as the active span. */
export function innermostContext(
  entered: RunContext | undefined,
  parentSpan: object | undefined,
): RunContext | undefined {
  if (parentSpan === undefined || parentSpan === entered?.span) return entered;
  return spans?.contextOf(parentSpan) ?? entered;
}

/** Calls `fn` with `context` as the current context. Asynchronous work that `fn` starts has the same context. */
export function enterContext<Result>(context: RunContext, fn: () => Result): Result {
  return storage.run(asEntered(context), fn);
}

/** Like `enterContext`, but calls `fn` with `self` as `this` and with the arguments `args`. */
export function applyIn<Self, Args extends unknown[], Result>(
  context: RunContext,
  fn: (this: Self, ...args: Args) => Result,
  self: Self,
  args: Args,
): Result {
  return storage.run(asEntered(context), Reflect.apply, fn, self, args) as Result;
}

function asEntered(context: RunContext): RunContext {
  if (spans === undefined && activeStep === undefined) return context;
  const span = spans?.activeSpan();
  const step = activeStep?.()?.id;
  return span === context.span && step === context.step ? context : Object.freeze({ ...context, span, step });
}

/** The context with tracing off. `sampled` is false, so runs with their own exporter are not recorded either. */
const untracedContext: RunContext = Object.freeze({ ...contextTo(noopSink, undefined), sampled: false });

/**
 * Calls a tracing callback, for example `sampler`, with tracing off in the callback and in all work that the callback
 * starts. If the callback were traced, its run would call the callback again, endlessly.
 */
export function untraced<Args extends unknown[], Result>(fn: (...args: Args) => Result, ...args: Args): Result {
  return enterContext(untracedContext, () => fn(...args));
}

callReplacementsBy(untraced);
