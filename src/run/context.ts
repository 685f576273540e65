import { AsyncLocalStorage } from 'node:async_hooks';
import { callReplacementsBy } from '../payload/redact.ts';
import type { EncodedRun, Project } from './encoded-run.ts';
import type { RunType } from './record.ts';
import { currentSink, noopSink, type RunSink } from './sink.ts';

/**
 * The position in the run tree that nested runs start from. It is stored under a global symbol, in a plain frozen shape, so
 * that two copies of the package in one process build one tree. A copy reads the ids of another copy's context and ignores
 * its `owner`.
 */
export interface RunContext {
  /** Undefined if there is no run, only an exporter. A run that starts here is the first of a trace. */
  readonly id: string | undefined;
  readonly traceId: string | undefined;
  readonly dottedOrder: string | undefined;
  readonly project: Project | undefined;
  /** Tags and metadata that nested runs inherit. The values of the metadata are JSON text. */
  readonly tags: readonly string[] | undefined;
  readonly metadata: ReadonlyMap<string, string> | undefined;
  /** The sink refused the run. Nested runs are refused too. */
  readonly refused: boolean;
  /** False if sampling left out the trace. */
  readonly sampled: boolean;
  /** The sink of nested runs, if it is not that of the run. */
  readonly exporter: RunSink | undefined;
  /** The OpenTelemetry span that was active when this context was entered. */
  readonly span: object | undefined;
  /** The run id of the framework step that was active when this context was entered. */
  readonly step: string | undefined;
  /** A `RunOwner`, if this copy of the package created the context. */
  readonly owner: object | undefined;
}

/** Identifies this copy of the package. */
export const PACKAGE_COPY: object = Object.freeze({});

/** The object that records a run: a `Run`, a span or a run of another process. */
export interface RunOwner {
  /** `PACKAGE_COPY` of the copy that created the owner. */
  readonly packageCopy: object;
  readonly sink: RunSink | undefined;
  /** The model call that the run records, while the run is open. */
  readonly modelCall: ModelCall | undefined;
}

/** Identifies a model call by the facts that are known when it starts. */
export interface ModelCall {
  readonly runType: RunType;
  /** The requested model. */
  readonly model: string;
  /** The instrumentation scope, if a span records the call. */
  readonly scope?: string | undefined;
}

/** Whether a run is sent, was refused by its sink, or was left out by sampling. */
export type RunStatus = 'kept' | 'refused' | 'sampledOut';

/** Returns the context of a run. `from` has the tags and the metadata that nested runs inherit. */
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

/** Returns the context of a run of another process, for nested runs that go to `sink`. */
export function remoteContext(
  fields: Pick<RunContext, 'id' | 'traceId' | 'dottedOrder' | 'project' | 'tags' | 'metadata' | 'sampled'>,
  sink: RunSink,
): RunContext {
  const owner: RunOwner = { packageCopy: PACKAGE_COPY, sink, modelCall: undefined };
  return Object.freeze({ ...rootContext, ...fields, span: activeSpan(), owner });
}

/** Returns the same position in the tree, with another sink for nested runs. */
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

/** Returns the sink of a run below `parent`: the sink of the parent, unless another copy of the package created it. */
export function sinkOf(parent: RunContext | undefined): RunSink | undefined {
  if (parent === undefined) return currentSink();
  if (parent.exporter !== undefined) return parent.exporter;
  const owner = ownerOf(parent);
  return owner === undefined ? currentSink() : owner.sink;
}

/** Tags and metadata that a run inherits: none if its sink is not that of the parent, because its readers may differ. */
export function inheritedFrom(
  parent: RunContext | undefined,
  sink: RunSink | undefined,
): Pick<RunContext, 'tags' | 'metadata'> {
  if (parent === undefined) return rootContext;
  const owner = ownerOf(parent);
  return owner !== undefined && owner.sink !== sink ? rootContext : parent;
}

/**
 * Returns the model call of the parent run if that run is open and has the same sink. A nested call of the same type
 * and model is assumed to be the same call, recorded by a second instrumentation. This happens if a wrapped client
 * calls a patched method, or if a patched function calls a wrapped model. The outer record is kept, because it has the
 * application's request and result. Siblings are never compared, because two overlapping calls of one model look alike
 * but are separate calls.
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

/** Nested spans of one instrumentation are different calls: `embedMany` of the AI SDK has a span for each request. */
export function isSameCall(one: ModelCall | undefined, other: ModelCall | undefined): boolean {
  if (one === undefined || one.runType !== other?.runType || one.model !== other.model) return false;
  return one.scope === undefined || one.scope !== other.scope;
}

/** Gives access to OpenTelemetry spans. Implemented by `otel/`. */
export interface SpanSource {
  /** Returns the active span, whichever library started it. */
  activeSpan(): object | undefined;
  /** Returns the context of the run that records the span, if there is one. */
  contextOf(span: object): RunContext | undefined;
  /** Uses the run of this context in place of a span that has just started. */
  replace?(span: object, context: RunContext): void;
}

const KEY = Symbol.for('runspan.context.v1');
const holder = globalThis as { [KEY]?: AsyncLocalStorage<RunContext> };
holder[KEY] ??= new AsyncLocalStorage<RunContext>();
const storage: AsyncLocalStorage<RunContext> = holder[KEY];

let spans: SpanSource | undefined;

/** Called by `otel/` when its first processor is created. */
export function setSpanSource(source: SpanSource | undefined): void {
  spans = source;
}

/** Replaces the span that an SDK started for a call with the run that records the call. */
export function replaceSpan(span: object, context: RunContext): void {
  spans?.replace?.(span, context);
}

let activeStep: (() => RunContext | undefined) | undefined;

/** Sets the function that returns the context of the active framework step, for example a tool. Called by an integration. */
export function setStepSource(source: typeof activeStep): void {
  activeStep = source;
}

/** Returns the active OpenTelemetry span, if `otel/` is in use. */
export function activeSpan(): object | undefined {
  return spans?.activeSpan();
}

/** Returns the context last entered by a run or a framework step, regardless of spans. */
export function enteredContext(): RunContext | undefined {
  const entered = storage.getStore();
  return activeStep === undefined ? entered : insideStep(entered, activeStep());
}

/** Returns the inner one of the two. A step that was already active when the run was entered is outside of the run. */
export function insideStep(entered: RunContext | undefined, step: RunContext | undefined): RunContext | undefined {
  return step === undefined || step.id === entered?.step ? entered : step;
}

/**
 * Returns the innermost context, of a run or of a span. A span that was already active when the run was entered is outside
 * of the run; any other active span is inside.
 */
export function currentContext(): RunContext | undefined {
  const entered = enteredContext();
  return spans === undefined ? entered : innermostContext(entered, spans.activeSpan());
}

/** Like `currentContext`, for a span that is about to start below `parentSpan`. */
export function innermostContext(
  entered: RunContext | undefined,
  parentSpan: object | undefined,
): RunContext | undefined {
  if (parentSpan === undefined || parentSpan === entered?.span) return entered;
  return spans?.contextOf(parentSpan) ?? entered;
}

/** Calls `fn` with `context` as the current context, also for everything that `fn` starts. */
export function enterContext<Result>(context: RunContext, fn: () => Result): Result {
  return storage.run(asEntered(context), fn);
}

/** Like `enterContext`, for a call that passes `this` and arguments. */
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

/** The context without tracing. A run that has its own exporter is left out by sampling. */
const untracedContext: RunContext = Object.freeze({ ...contextTo(noopSink, undefined), sampled: false });

/**
 * Calls a callback that only serves tracing, with tracing off for the callback and everything that it starts. A run of the
 * callback would be sampled, redacted or dropped, which would call the callback again without end.
 */
export function untraced<Args extends unknown[], Result>(fn: (...args: Args) => Result, ...args: Args): Result {
  return enterContext(untracedContext, () => fn(...args));
}

callReplacementsBy(untraced);
