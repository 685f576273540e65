import { AsyncLocalStorage } from 'node:async_hooks';
import type { EncodedRun, Project } from './encoded-run.ts';
import type { RunType } from './record.ts';
import type { RunSink } from './sink.ts';

/**
 * What a run tells those that start below it. It is kept under a global symbol, in a plain frozen shape, so that two
 * copies of the package in one process build one tree: a copy reads the ids of another's context and leaves its
 * `handle` alone.
 */
export interface RunContext {
  /** Undefined where there is no run, only an exporter: what starts here is the first run of a trace. */
  readonly id: string | undefined;
  readonly traceId: string | undefined;
  readonly dottedOrder: string | undefined;
  readonly project: Project | undefined;
  /** What runs below take over; the values of the metadata are JSON text. */
  readonly tags: readonly string[] | undefined;
  readonly metadata: ReadonlyMap<string, string> | undefined;
  /** The run was refused by its sink; what starts below it is refused too. */
  readonly refused: boolean;
  /** Whether sampling has kept the trace; what starts below is left out with it. */
  readonly sampled: boolean;
  /** Where what starts here goes, when that is not where the run went. */
  readonly exporter: RunSink | undefined;
  /** The OpenTelemetry span that was active when this context was entered. */
  readonly span: object | undefined;
  /** The run of the framework's step that was active when this context was entered. */
  readonly step: string | undefined;
  /** The `Run`, or what stands for it, of the package copy that made this context. */
  readonly handle: object | undefined;
}

/** Which call of a model a run is, as far as one who sees the same call can tell when it begins. */
export interface ModelCall {
  readonly runType: RunType;
  /** The model that is asked for. */
  readonly model: string;
  /** The instrumentation scope, if a span records the call. */
  readonly scope?: string | undefined;
}

/** Stands as `handle` for a run that has no `Run`: one that `otel/` makes of a span, or one of another process. */
export class SinkHandle {
  readonly sink: RunSink;

  constructor(sink: RunSink) {
    this.sink = sink;
  }

  /** The model call that the run records, or undefined if the run has ended. */
  get modelCall(): ModelCall | undefined {
    return undefined;
  }
}

/** What becomes of a run: it is sent, its sink has refused it, or sampling has left its trace out. */
export type Fate = 'kept' | 'refused' | 'sampledOut';

/** What runs below take over from one. */
export type Inherited = Pick<RunContext, 'tags' | 'metadata'>;

/** The context of the run of a record. */
export function contextOf(
  { id, traceId, dottedOrder, project }: EncodedRun,
  { tags, metadata }: Inherited,
  fate: Fate,
  span: object | undefined,
  handle: object,
): RunContext {
  const refused = fate === 'refused';
  const sampled = fate !== 'sampledOut';
  return Object.freeze({
    id,
    traceId,
    dottedOrder,
    project,
    tags,
    metadata,
    refused,
    sampled,
    exporter: undefined,
    span,
    step: activeStep?.()?.id,
    handle,
  });
}

/** The context of a run of another process, for runs that go to `sink`. */
export function remoteContext(
  { id, traceId, dottedOrder }: { id: string; traceId: string; dottedOrder: string },
  told: Pick<RunContext, 'project' | 'tags' | 'metadata' | 'sampled'>,
  sink: RunSink,
): RunContext {
  const handle = new SinkHandle(sink);
  return Object.freeze({ ...nowhere, id, traceId, dottedOrder, ...told, span: activeSpan(), handle });
}

/** The same place in the tree, from which runs go to another exporter. */
export function contextTo(exporter: RunSink, context: RunContext | undefined): RunContext {
  return Object.freeze({ ...(context ?? nowhere), exporter });
}

/** Outside of any run. */
const nowhere: RunContext = {
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
  handle: undefined,
};

/** How `otel/` tells of the active span. */
export interface SpanSource {
  /** The span that is active now, whichever library started it. */
  activeSpan(): object | undefined;
  /** The context of the run that a span became, if it became one. */
  contextOf(span: object): RunContext | undefined;
  /** Uses the run of this context in place of a span that has just started. */
  replace?(span: object, context: RunContext): void;
}

const KEY = Symbol.for('runspan.context.v1');
const holder = globalThis as { [KEY]?: AsyncLocalStorage<RunContext> };
holder[KEY] ??= new AsyncLocalStorage<RunContext>();
const storage: AsyncLocalStorage<RunContext> = holder[KEY];

let spans: SpanSource | undefined;

/** Called by `otel/` when its first processor is made. */
export function setSpanSource(source: SpanSource | undefined): void {
  spans = source;
}

/** Replaces the span that an SDK started for a call with the run that records the call. */
export function replaceSpan(span: object, context: RunContext): void {
  spans?.replace?.(span, context);
}

/** How an integration tells of the step of a framework, a tool for example, that this code runs in. */
export type StepSource = () => RunContext | undefined;

let activeStep: StepSource | undefined;

/** Called by an integration when its framework is first traced. */
export function setStepSource(source: StepSource | undefined): void {
  activeStep = source;
}

/** The OpenTelemetry span that is active now, when `otel/` is in use. */
export function activeSpan(): object | undefined {
  return spans?.activeSpan();
}

/** The context last entered through a run or a step, whatever spans have become active since. */
export function enteredContext(): RunContext | undefined {
  const entered = storage.getStore();
  return activeStep === undefined ? entered : insideStep(entered, activeStep());
}

/** The inner one of both: a step that was active already when the run was entered lies outside of it. */
export function insideStep(entered: RunContext | undefined, step: RunContext | undefined): RunContext | undefined {
  return step === undefined || step.id === entered?.step ? entered : step;
}

/**
 * The innermost context, of a run or of a span. A span that was active already when the run was entered lies outside of
 * it; any other active span lies inside.
 */
export function currentContext(): RunContext | undefined {
  const entered = enteredContext();
  if (spans === undefined) return entered;
  return innermostContext(entered, spans.activeSpan());
}

/** The same for a span that is about to start below `parentSpan`. */
export function innermostContext(
  entered: RunContext | undefined,
  parentSpan: object | undefined,
): RunContext | undefined {
  if (parentSpan === undefined || parentSpan === entered?.span) return entered;
  return spans?.contextOf(parentSpan) ?? entered;
}

/** Calls `fn` with `context` as the current one, for `fn` and all that it starts. */
export function enterContext<Args extends unknown[], Result>(
  context: RunContext,
  fn: (...args: Args) => Result,
  ...args: Args
): Result {
  return storage.run(enterable(context), fn, ...args);
}

/** Calls a method with `context` as the current context. Like `enterContext`, without rest arguments. */
export function applyIn(
  context: RunContext,
  method: (this: unknown, ...args: unknown[]) => unknown,
  self: unknown,
  args: unknown[],
): unknown {
  return storage.run(enterable(context), Reflect.apply<unknown, unknown[], unknown>, method, self, args);
}

/** The context with the span and the step that are active now. */
function enterable(context: RunContext): RunContext {
  const span = spans?.activeSpan();
  const step = activeStep?.()?.id;
  if (span === context.span && step === context.step) return context;
  return Object.freeze({ ...context, span, step });
}
