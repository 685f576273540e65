import { AsyncLocalStorage } from 'node:async_hooks';
import type { EncodedRun } from './encoded-run.ts';
import type { RunSink } from './sink.ts';

/**
 * What a run tells those that start below it. It is kept under a global symbol, in a plain frozen shape, so that two
 * copies of the package in one process build one tree: a copy reads the ids of another's context and leaves its
 * `handle` alone.
 */
export interface RunContext {
  readonly id: string;
  readonly traceId: string;
  readonly dottedOrder: string;
  readonly project: string;
  /** The run was refused by its sink; what starts below it is refused too. */
  readonly refused: boolean;
  /** The OpenTelemetry span that was active when this context was entered. */
  readonly span: object | undefined;
  /** The run of the framework's step that was active when this context was entered. */
  readonly step?: string | undefined;
  /** The `Run`, or what stands for it, of the package copy that made this context. */
  readonly handle: object | undefined;
}

/** Stands as `handle` for a run that has no `Run`: one that `otel/` makes of a span. */
export class SpanHandle {
  readonly sink: RunSink;

  constructor(sink: RunSink) {
    this.sink = sink;
  }
}

/** The context of the run of a record. */
export function contextOf(
  { id, traceId, dottedOrder, project }: EncodedRun,
  refused: boolean,
  span: object | undefined,
  handle: object,
): RunContext {
  return Object.freeze({ id, traceId, dottedOrder, project, refused, span, step: activeStep?.()?.id, handle });
}

/** How `otel/` tells of the active span. */
export interface SpanSource {
  /** The span that is active now, whichever library started it. */
  activeSpan(): object | undefined;
  /** The context of the run that a span became, if it became one. */
  contextOf(span: object): RunContext | undefined;
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
  const span = spans?.activeSpan();
  const step = activeStep?.()?.id;
  const isSame = span === context.span && step === context.step;
  const entered = isSame ? context : Object.freeze({ ...context, span, step });
  return storage.run(entered, fn, ...args);
}
