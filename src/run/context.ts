import type { AsyncLocalStorage } from 'node:async_hooks';
import type { Channel } from 'node:diagnostics_channel';
import { guard } from '../base/guard.ts';
import { shared } from '../base/shared.ts';
import { callReplacementsBy } from '../payload/redaction/redact.ts';
import { createStorage } from '../platform/node.ts';
import { isOwnWork } from '../platform/suppress-tracing.ts';
import type { RecordedCall } from './calls.ts';
import type { EncodedRun, HeldTrace, Project } from './encoded-run.ts';
import { withMetadata, withTags } from './fields.ts';
import { type ContextFields, type Hiding, hiddenByEither } from './run-options.ts';
import { currentSink, type EncodedFields, mayRecord, noopSink, type RunSink } from './sink.ts';

/**
 * Determines the parent of new runs and the fields that new runs inherit. A context is a plain frozen object. All
 * copies of the package in a process share contexts, so runs from different copies form one tree.
 */
export interface RunContext {
  /**
   * The id of the parent run. Undefined if the context only selects an exporter. A run in such a context starts a new
   * trace.
   */
  readonly id: string | undefined;
  readonly traceId: string | undefined;
  readonly dottedOrder: string | undefined;
  readonly project: Project | undefined;
  readonly tags: readonly string[] | undefined;
  /** Metadata values are JSON text. */
  readonly metadata: ReadonlyMap<string, string> | undefined;
  /** Fields from `withContext`. A run that inherits nothing from a parent run records all of these fields. */
  readonly fields: ContextFields | undefined;
  /** The part of `fields` that `tags` and `metadata` do not contain yet. */
  readonly added: ContextFields | undefined;
  /** Whether the sink refused the parent run. The sink also refuses all runs below a refused run. */
  readonly refused: boolean;
  readonly sampled: boolean;
  /** The trace of the run, if this process holds it. */
  readonly held?: HeldTrace | undefined;
  /** The rate by which the caller drops the trace, if it holds its part. NaN if the rate is not known. */
  readonly heldRate?: number | undefined;
  /** The sink for nested runs. If undefined, nested runs use the parent's sink, `owner.sink`. */
  readonly exporter: RunSink | undefined;
  /** The OpenTelemetry span that was active when this context became current. */
  readonly span: object | undefined;
  /** The run id of the framework step that was active when this context became current. */
  readonly step: string | undefined;
  /** Payloads that calls below do not record, because the source of a call above was asked not to record them. */
  readonly hiding?: Hiding | undefined;
  /** The parent's `RunOwner`. Ignored if another version of the package created the owner. */
  readonly owner: object | undefined;
}

/** Identifies this version of the package, because a process may load several versions. */
export const PACKAGE_COPY: object = shared('packageCopy', () => Object.freeze({}));

/** The object that records a run, for example a `Run` or an OpenTelemetry span. */
export interface RunOwner {
  readonly packageCopy: object;
  readonly sink: RunSink | undefined;
  /** The call that this run records. Undefined if the run has ended or records no call. */
  readonly call: Pick<RecordedCall, 'type' | 'source'> | undefined;
  /** OpenTelemetry's ids of the run, if it is a span or belongs to a caller's trace. */
  readonly spanIds?: Omit<SpanIds, 'traceFlags'> | undefined;
  /** Whether the run below that has started or ended last has failed because of a timeout. */
  hasTimedOut?: true | undefined;
  /** Called when a record of a call has started inside the open run. */
  callStarted?(call: RecordedCall): void;
  /** Called when a record of a call has ended inside the run. */
  callEnded?(call: RecordedCall): void;
}

/** A run is `off` if it has no sink. */
export type RunStatus = 'kept' | 'refused' | 'sampledOut' | 'off';

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
 * Returns the context for a run that another process records. Nested runs are sent to `sink`. `spanIds` are the caller's
 * ids in OpenTelemetry.
 */
export function remoteContext(fields: Partial<RunContext>, sink: RunSink, spanIds?: RunOwner['spanIds']): RunContext {
  const owner: RunOwner = { packageCopy: PACKAGE_COPY, sink, call: undefined, spanIds };
  // Without the span, whose attributes would stay in memory. It is set when the context becomes current.
  return Object.freeze({ ...rootContext, ...fields, span: undefined, owner });
}

/** Returns a copy of `context` that sends nested runs to `exporter`. Below "off", the context stays off. */
export function contextTo(exporter: RunSink, context: RunContext | undefined): RunContext {
  if (exporter.isOff === true) return OFF;
  return context !== undefined && isOff(context) ? context : Object.freeze({ ...(context ?? rootContext), exporter });
}

export const rootContext: RunContext = {
  id: undefined,
  traceId: undefined,
  dottedOrder: undefined,
  project: undefined,
  tags: undefined,
  metadata: undefined,
  fields: undefined,
  added: undefined,
  refused: false,
  sampled: true,
  exporter: undefined,
  span: undefined,
  step: undefined,
  hiding: undefined,
  owner: undefined,
};

/** The sink of the contexts that are off. A sink of its own, so that headers tell other programs that they are off. */
const offSink: RunSink = { ...noopSink };

/**
 * The context below a call that is off, for example with `enabled: false`. Nothing is recorded in it, also not with an
 * `exporter` option. Only an explicit parent run leads out of it.
 */
const OFF: RunContext = Object.freeze({ ...rootContext, exporter: offSink, sampled: false });

/**
 * Whether a context is off. Contexts that sampling has left out are not off: they count as `sampledOut`, and a run with
 * `root: true` gets a decision of its own. In both, `sampled` is false, and nothing is recorded.
 */
export function isOff(context: RunContext | undefined): boolean {
  return context?.sampled === false && context.exporter?.isOff === true;
}

/**
 * Returns the context to enter so that nothing is recorded. Undefined if nothing would be recorded anyway, because
 * entering a context is slow on Node 20.
 */
export function offToEnter(): RunContext | undefined {
  const around = currentContext();
  return (around === undefined ? mayRecord() : !isOff(around)) ? OFF : undefined;
}

/** Returns a copy of `context` in which new runs also record `fields`. */
export function contextWith(fields: ContextFields, context: RunContext = rootContext): RunContext {
  return Object.freeze({ ...context, fields: joined(context.fields, fields), added: joined(context.added, fields) });
}

function joined(one: ContextFields | undefined, other: ContextFields): ContextFields {
  return {
    tags: one?.tags && other.tags ? [...one.tags, ...other.tags] : (other.tags ?? one?.tags),
    metadata: (other.metadata && guard('metadata', () => ({ ...one?.metadata, ...other.metadata }))) ?? one?.metadata,
  };
}

/** Returns the context for a run that starts a new trace. It keeps the fields from `withContext`, and what is hidden. */
export function contextOfRoot(around: RunContext | undefined): RunContext | undefined {
  if (isOff(around)) return around;
  const { fields, hiding } = around ?? rootContext;
  const outer = fields && contextWith(fields);
  return hiding === undefined ? outer : Object.freeze({ ...(outer ?? rootContext), hiding });
}

/** Returns the exporter and the fields of a context, without its run. */
export function outsideOfRuns(context: RunContext | undefined): RunContext | undefined {
  const outer = contextOfRoot(context);
  return context?.exporter === undefined ? outer : contextTo(context.exporter, outer);
}

function ownerOf(context: RunContext): RunOwner | undefined {
  const owner = context.owner as Partial<RunOwner> | undefined;
  return owner?.packageCopy === PACKAGE_COPY ? (owner as RunOwner) : undefined;
}

/** Returns the sink of a run in `parent`. `exporter` is that of the run. Undefined if the run is recorded nowhere. */
export function sinkOf(parent: RunContext | undefined, exporter?: RunSink): RunSink | undefined {
  if (isOff(parent)) return undefined;
  const sink = exporter ?? inheritedSink(parent);
  return sink?.isOff === true ? undefined : sink;
}

function inheritedSink(parent: RunContext | undefined): RunSink | undefined {
  if (parent === undefined || isOwnWork()) return currentSink();
  if (parent.exporter !== undefined) return parent.exporter;
  const owner = ownerOf(parent);
  return owner === undefined ? currentSink() : owner.sink;
}

/**
 * Returns the sink of runs below a parent from another process, and of headers for other processes. They lead out of
 * "off", but not out of the library's own callbacks.
 */
export function sinkBeside(context: RunContext | undefined): RunSink | undefined {
  return isOff(context) && context?.exporter !== noopSink ? currentSink() : sinkOf(context);
}

/** Returns the sample rate that drops a held trace. Undefined if the trace is not held. */
export function heldRateOf(context: RunContext | undefined): number | undefined {
  return context?.held?.rate ?? context?.heldRate;
}

/** Returns the address of the page of the run in `context`. Runs that are not sent have no page. */
export function urlOf(context: RunContext | undefined): string | undefined {
  const { id, traceId, project, sampled, refused, held } = context ?? rootContext;
  const isSent = sampled && !refused && (held === undefined || held.state === 'kept');
  if (id === undefined || traceId === undefined || !isSent) return undefined;
  return sinkOf(context)?.urlOf?.({ id, traceId, project });
}

/**
 * Returns the tags and metadata that a run inherits. Runs inherit nothing from a parent run with a different sink, but
 * keep the fields from `withContext`.
 */
export function inheritedFrom(parent: RunContext | undefined, sink: RunSink | undefined): EncodedFields {
  const defaults = sink?.capture.defaults ?? rootContext;
  if (parent === undefined) return defaults;
  const owner = ownerOf(parent);
  const isInherited = parent.id !== undefined && (owner === undefined || owner.sink === sink);
  const inherited = isInherited ? parent : defaults;
  const added = isInherited ? parent.added : parent.fields;
  if (added === undefined || sink === undefined) return inherited;
  const { payload } = sink.capture;
  return {
    tags: withTags(inherited.tags, added.tags, payload),
    metadata: added.metadata ? withMetadata(inherited.metadata, added.metadata, payload) : inherited.metadata,
  };
}

/** Returns OpenTelemetry's ids of the parent run, if it is a span. */
export function spanIdsOf(parent: RunContext | undefined): RunOwner['spanIds'] {
  return parent && ownerOf(parent)?.spanIds;
}

const OTEL_IDS = /^\{"trace_id":"([\da-f]{32})","enclosing_span_id":"([\da-f]{16})"\}$/;

/** Returns the JSON text in `metadata.otel` of a run that is below a span, but is no span. Runs below inherit it. */
export function otelIdsBelow({ traceId, spanId }: NonNullable<RunOwner['spanIds']>): string {
  return JSON.stringify({ trace_id: traceId, enclosing_span_id: spanId });
}

/** Returns the ids of the nearest span. Undefined if the run is no span and below none. */
export function enclosingSpanIds(context: RunContext): RunOwner['spanIds'] {
  const own = spanIdsOf(context);
  const json = own === undefined ? context.metadata?.get('otel') : undefined;
  if (json === undefined) return own;
  const [, traceId, spanId] = OTEL_IDS.exec(json) ?? [];
  return traceId && spanId ? { traceId, spanId } : undefined;
}

/**
 * Returns the id that the trace of `parent` has in OpenTelemetry: that of a span, or the digits of our own. Undefined if
 * there is no parent run.
 */
export function otelTraceIdOf(parent: RunContext | undefined): string | undefined {
  if (parent?.traceId === undefined) return undefined;
  return enclosingSpanIds(parent)?.traceId ?? parent.traceId.replaceAll('-', '');
}

/** Returns the owner of the enclosing run, if that run has the same sink. */
export function ownerWith(sink: RunSink, parent: RunContext | undefined): RunOwner | undefined {
  const owner = parent && ownerOf(parent);
  return owner?.sink === sink ? owner : undefined;
}

export const SAMPLED = 1;

export interface SpanIds {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
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
export type FirstCall = Readonly<Partial<Record<'project' | 'projectId', string | undefined>>>;

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

/** Whether the first run in a context starts a trace that may be recorded. */
export function startsTrace(context: RunContext | undefined): boolean {
  return context?.id === undefined && context?.sampled !== false;
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
  if (sink === undefined || sink.capture.otelSampling === false) return context;
  // If a recorded span has no run, a filter or a missing span processor is the cause. Traces inside the span are held.
  const isBelowHeld = sink.hold && startsTrace(context) && (span as { isRecording?(): boolean }).isRecording?.();
  return isBelowHeld === true ? { ...(context ?? rootContext), heldRate: Number.NaN } : leftOutContext(context);
}

/** Returns a context in which the first run starts a trace that is left out. */
export function leftOutContext(context: RunContext | undefined): RunContext {
  return { ...(context ?? rootContext), id: undefined, traceId: undefined, dottedOrder: undefined, sampled: false };
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

/** The context of the library's own callbacks. Unlike "off", it says nothing to other programs. */
const untracedContext: RunContext = Object.freeze({ ...OFF, exporter: noopSink });

/**
 * Calls a tracing callback, for example `sampler`, with tracing off. If the callback were traced, its run would call
 * the callback again in an endless loop.
 */
export function untraced<Args extends unknown[], Result>(fn: (...args: Args) => Result, ...args: Args): Result {
  return enterContext(untracedContext, () => fn(...args));
}

callReplacementsBy(untraced);
