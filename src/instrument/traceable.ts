import { diagnostics } from '../base/diagnostics.ts';
import { guard, reportFailure } from '../base/guard.ts';
import { types } from '../base/node.ts';
import type { EncodedPayload } from '../payload/serialize.ts';
import {
  applyIn,
  contextTo,
  currentContext,
  enclosingModelCall,
  isSameCall,
  type ModelCall,
  modelCall,
  type RunContext,
  replaceSpan,
  sinkOf,
} from '../run/context.ts';
import { Run } from '../run/run.ts';
import { type SamplingResult, sample } from '../run/sampling.ts';
import type { RunSink } from '../run/sink.ts';
import { followPromise, followResult, RunObserver } from './follow.ts';
import { followIterator, followLazyGenerator } from './iterator.ts';
import type { Method, StreamObserver } from './observer.ts';
import {
  type ArgumentsOf,
  type CallDescription,
  type CallOptions,
  callOptions,
  describeCall,
  type OutcomeOf,
  Plan,
  type PlanOptions,
  type TraceableOptions,
  traceableOptions,
} from './plan.ts';

type Callable = (...args: unknown[]) => unknown;

/** A wrapped function with an additional method `with`. */
export type Traceable<Fn> = Fn & {
  /**
   * Returns the same function with other options for single calls, for example `answer.with({ id, metadata: { user }
   * })(question)`. Tags and metadata are added to the tags and metadata of the function. The original is not changed.
   * If the function already has a `with`, that property is kept.
   */
  with(options: CallOptions): Fn;
};

interface Wrapped {
  readonly fn: Callable;
  readonly plan: Plan;
}

/** Original functions by wrapper, so that no call is traced twice. */
const wrapped = new WeakMap<object, Wrapped>();

/**
 * Wraps a function so that each call becomes a run. The parent is the run that is current at the time of the call. The
 * wrapper has the type and behavior of the function. A synchronous function stays synchronous, and a generator stays
 * lazy. `this`, results, errors and own properties are preserved. If tracing is off, the function is called directly.
 *
 * If the function is already wrapped, the new options replace or extend its options. If `fn` is a class or not a
 * function, `fn` is returned unchanged and one line is logged.
 */
export function traceable<Fn extends CallableFunction>(
  fn: Fn,
  options?: TraceableOptions<ArgumentsOf<Fn>, OutcomeOf<Fn>>,
): Traceable<Fn> {
  const mistake = typeof fn !== 'function' ? `got ${fn === null ? 'null' : typeof fn}` : isClass(fn) && 'got a class';
  if (mistake) {
    diagnostics.warnOnce(`traceable ${mistake}`, `traceable(fn): expected a function, ${mistake}; it is not traced.`);
    return fn as Traceable<Fn>;
  }
  const known = wrapped.get(fn);
  const checked = traceableOptions(options);
  const plan = known?.plan.with(checked) ?? new Plan({ ...checked, name: checked.name ?? nameOf(fn) });
  const original = fn as unknown as Callable;
  return wrap(plan, known?.fn ?? original, original) as unknown as Traceable<Fn>;
}

/** Wraps a function for an integration. Does not check the options. */
export function tracedBy(options: PlanOptions, fn: Callable): Callable {
  return wrap(new Plan(options), fn, fn);
}

/** The wrapper copies the properties of `shown`, which is `fn` or an earlier wrapper with additional properties. */
function wrap(plan: Plan, fn: Callable, shown: Callable): Callable {
  const wrapper = disguised(
    types.isGeneratorFunction(fn) ? tracedGenerator(fn, plan) : tracedFunction(fn, plan),
    shown,
  );
  if (wrapper === shown) return shown;
  wrapped.set(wrapper, { fn, plan });
  guard('traceable', () => {
    if ('with' in fn) return;
    const value = (options: unknown): Callable => wrap(plan.with(callOptions(options)), fn, wrapper);
    Object.defineProperty(wrapper, 'with', { configurable: true, writable: true, value });
  });
  return wrapper;
}

const AsyncFunctionPrototype: unknown = Object.getPrototypeOf(async () => {});

function tracedFunction(fn: Callable, plan: Plan): Callable {
  // An async function of this realm returns a native promise.
  const isAsync = types.isAsyncFunction(fn) && Object.getPrototypeOf(fn) === AsyncFunctionPrototype;
  if (isConstructor(fn)) {
    return function traced(this: unknown, ...args: unknown[]): unknown {
      if (new.target !== undefined) return Reflect.construct(fn, args, new.target === traced ? fn : new.target);
      return call(fn, plan, this, args, isAsync);
    };
  }
  // A method is not a constructor and has no `prototype`, like `fn`.
  const wrapper = {
    traced(this: unknown, ...args: unknown[]): unknown {
      return call(fn, plan, this, args, isAsync);
    },
  };
  return wrapper.traced;
}

function call(fn: Callable, plan: Plan, self: unknown, args: unknown[], isAsync: boolean): unknown {
  const prepared = prepare(plan, args);
  const run = prepared && start(prepared);
  if (run === undefined) return callWithoutRun(fn, plan, self, args);
  let result: unknown;
  try {
    result = applyIn(run.context, fn, self, args);
  } catch (thrown) {
    run.fail(thrown);
    throw thrown;
  }
  if (!run.isOpen) {
    // Each step of a generator enters the context of the run, even if the run is not recorded.
    return types.isGeneratorObject(result) ? followResult(result, run, plan) : result;
  }
  return isAsync ? followPromise(result as Promise<unknown>, run, plan) : followResult(result, run, plan);
}

/** Records the inputs and the parent at the call, and starts the run at the first step. */
function tracedGenerator(fn: Callable, plan: Plan): Callable {
  const wrapper = {
    traced(this: unknown, ...args: unknown[]): unknown {
      const prepared = prepare(plan, args);
      if (prepared === undefined) return callWithoutRun(fn, plan, this, args);
      let generator: object;
      try {
        generator = Reflect.apply(fn, this, args) as object;
      } catch (thrown) {
        // The default value of a parameter threw, so there is no generator.
        start(prepared)?.fail(thrown);
        throw thrown;
      }
      followLazyGenerator(generator, () => {
        const run = start(prepared);
        return run && new RunObserver(run, plan);
      });
      return generator;
    },
  };
  return wrapper.traced;
}

/** The data of a run that has not started, collected when the function was called. */
interface PreparedRun {
  readonly plan: Plan;
  readonly parent: RunContext | undefined;
  readonly sink: RunSink;
  readonly verdict: SamplingResult;
  inputs: EncodedPayload | undefined;
  description: CallDescription | undefined;
  modelCall: ModelCall | undefined;
}

/** Collects the inputs, parent and sampling result of a call. Returns undefined if the call is not traced. */
function prepare(given: Plan, args: unknown[]): PreparedRun | undefined {
  if (given.enabled === false) return undefined;
  try {
    const parent = given.root === true ? undefined : currentContext();
    const sink = given.exporter ?? sinkOf(parent);
    if (sink === undefined || sink.isOff === true) return undefined;
    const plan = given.id === undefined ? given : given.forCall();
    const verdict = sample(plan, parent, sink);
    if (!verdict.isKept && parent?.sampled === false) {
      sink.skip();
      return undefined;
    }
    const prepared: PreparedRun = {
      plan,
      parent,
      sink,
      verdict,
      inputs: undefined,
      description: undefined,
      modelCall: undefined,
    };
    // The root run of an unsampled trace is created too, because its context excludes nested runs.
    if (!verdict.isKept) return prepared;
    if (plan.describe !== undefined && !isDescribed(prepared, args)) return undefined;
    if (parent?.refused !== true) prepared.inputs = plan.encodeInputs(args, sink, prepared.description);
    return prepared;
  } catch (thrown) {
    reportFailure('traceable', thrown);
    return undefined;
  }
}

/** Adds the integration's description of the call. Returns false if the call is not traced. */
function isDescribed(prepared: PreparedRun, args: unknown[]): boolean {
  const { plan, parent, sink } = prepared;
  const description = describeCall(plan, args);
  if (description === undefined) return false;
  prepared.description = description;
  prepared.modelCall = plan.isModelCall && modelCall(plan.runType, description.metadata);
  return prepared.modelCall === undefined || !isSameCall(enclosingModelCall(parent, sink), prepared.modelCall);
}

function start({ plan, parent, sink, verdict, inputs, description, modelCall }: PreparedRun): Run | undefined {
  try {
    if (description === undefined) return new Run(plan, parent, sink, inputs, verdict);
    const { name, metadata, span } = description;
    const run = new Run(name === undefined ? plan : plan.with({ name }), parent, sink, inputs, verdict);
    // The plan does not get this metadata, because nested runs inherit the metadata of the plan.
    if (metadata !== undefined) run.set({ metadata: { ...metadata, ...plan.metadata } });
    run.modelCall = modelCall;
    if (span !== undefined) replaceSpan(span, run.context);
    return run;
  } catch (thrown) {
    reportFailure('traceable', thrown);
    return undefined;
  }
}

/**
 * Calls a function without a run. Nested runs are recorded as usual, unless the plan has an exporter with tracing off.
 */
function callWithoutRun(fn: Callable, plan: Plan, self: unknown, args: unknown[]): unknown {
  const context = plan.exporter && guard('traceable', () => hidingContext(plan));
  if (context === undefined) return Reflect.apply(fn, self, args);
  const result = applyIn(context, fn, self, args);
  if (types.isGeneratorObject(result)) followIterator(result, hiddenSteps(context));
  return result;
}

const hidingContexts = new WeakMap<RunSink, RunContext>();

/**
 * Returns the context that prevents the recording of nested runs. Returns undefined if no context is needed, because
 * entering a context on Node 20 slows down every later `await` of the process.
 */
function hidingContext({ exporter: off, enabled }: Plan): RunContext | undefined {
  if (off?.isOff !== true || enabled === false) return undefined;
  const around = sinkOf(currentContext());
  if (around === undefined || around.isOff === true) return undefined;
  const context = hidingContexts.get(off) ?? contextTo(off, undefined);
  hidingContexts.set(off, context);
  return context;
}

/** Runs the steps of a generator in a context without recording the generator. */
function hiddenSteps(context: RunContext): StreamObserver {
  const ignore = (): void => {};
  const step = (method: Method, self: unknown, args: unknown[]): unknown => applyIn(context, method, self, args);
  return {
    isStepping: false,
    step,
    chunk: ignore,
    end: ignore,
    fail: ignore,
    cancel: ignore,
    watch: ignore,
    detach: ignore,
  };
}

/** Copies name, length, prototype, own properties and metadata to the wrapper. Returns `fn` if copying fails. */
export function disguised(wrapper: Callable, fn: Callable): Callable {
  return (
    guard('traceable', () => {
      Object.setPrototypeOf(wrapper, Object.getPrototypeOf(fn));
      for (const key of Reflect.ownKeys(fn)) {
        Reflect.defineProperty(wrapper, key, Object.getOwnPropertyDescriptor(fn, key) as PropertyDescriptor);
      }
      // A bound function is a constructor without `prototype`. The `prototype` of our wrapper cannot be deleted.
      if (Object.hasOwn(wrapper, 'prototype') && !Object.hasOwn(fn, 'prototype')) wrapper.prototype = undefined;
      copyMetadata(fn, wrapper);
      return wrapper;
    }) ?? fn
  );
}

/** Functions that `reflect-metadata` adds to `Reflect`. */
interface ReflectMetadata {
  getOwnMetadataKeys?(target: object): Iterable<unknown>;
  getOwnMetadata(key: unknown, target: object): unknown;
  defineMetadata(key: unknown, value: unknown, target: object): void;
}

/** Copies the metadata of a function. Frameworks such as NestJS find routes, guards and status codes by function. */
function copyMetadata(from: Callable, to: Callable): void {
  const reflect = Reflect as unknown as ReflectMetadata;
  for (const key of reflect.getOwnMetadataKeys?.(from) ?? []) {
    reflect.defineMetadata(key, reflect.getOwnMetadata(key, from), to);
  }
}

/** Returns the name of a function, or 'anonymous' if the name is empty, not text or unreadable. */
function nameOf(fn: CallableFunction): string {
  const name: unknown = guard('traceable', () => fn.name);
  return typeof name === 'string' && name !== '' ? name : 'anonymous';
}

/** Whether the function can only be called with `new`. */
export function isClass(fn: CallableFunction): boolean {
  // A method named `class` also matches, but has no `prototype`.
  return /^class\b/.test(Function.prototype.toString.call(fn)) && Object.hasOwn(fn, 'prototype');
}

function isConstructor(fn: Callable): boolean {
  try {
    // `Reflect.construct` checks that `fn` is a constructor without calling `fn`.
    Reflect.construct(Object, [], fn);
    return true;
  } catch {
    return false;
  }
}
