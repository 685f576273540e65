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

/** A wrapped function: the function itself, and `with`. */
export type Traceable<Fn> = Fn & {
  /**
   * Returns the same function with other options, for single calls: `answer.with({ id, metadata: { user } })(question)`. Tags
   * and metadata are added to those of the function. The original is not changed. A function that already has a `with`
   * keeps its own.
   */
  with(options: CallOptions): Fn;
};

interface Wrapped {
  readonly fn: Callable;
  readonly plan: Plan;
}

/** The functions behind the wrappers, so that no call is traced twice. */
const wrapped = new WeakMap<object, Wrapped>();

/**
 * Wraps a function so that each call becomes a run, below the run that is current when it is called. The wrapped
 * function has the same type and behaves as the same kind: a synchronous one stays synchronous, a generator lazy; `this`,
 * results, errors and own properties are those of the function. With tracing off it is called directly.
 *
 * A function that is already wrapped is not traced twice: the new options replace or extend its options. Anything but a
 * function, and a class, is returned unchanged, and one log line reports it.
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

/** Wraps a function for an integration, whose options need no check. */
export function tracedBy(options: PlanOptions, fn: Callable): Callable {
  return wrap(new Plan(options), fn, fn);
}

/** `shown` is the function that the wrapper replaces: `fn`, or an earlier wrapper with properties that `fn` lacks. */
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
  // Each call of an async function of this realm makes a plain promise.
  const isAsync = types.isAsyncFunction(fn) && Object.getPrototypeOf(fn) === AsyncFunctionPrototype;
  if (isConstructor(fn)) {
    return function traced(this: unknown, ...args: unknown[]): unknown {
      if (new.target !== undefined) return Reflect.construct(fn, args, new.target === traced ? fn : new.target);
      return call(fn, plan, this, args, isAsync);
    };
  }
  // A method cannot be constructed and has no `prototype`, like its function.
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
    // The steps of a generator enter the context of a run that is left out, too.
    return types.isGeneratorObject(result) ? followResult(result, run, plan) : result;
  }
  return isAsync ? followPromise(result as Promise<unknown>, run, plan) : followResult(result, run, plan);
}

/** Takes inputs and parent at the call, and starts the run with the first step. */
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

/** A call whose run has not started: what was known when the function was called. */
interface PreparedRun {
  readonly plan: Plan;
  readonly parent: RunContext | undefined;
  readonly sink: RunSink;
  readonly verdict: SamplingResult;
  inputs: EncodedPayload | undefined;
  description: CallDescription | undefined;
  modelCall: ModelCall | undefined;
}

/** Prepares the run of a call: inputs, parent and sampling. Returns undefined if the call is not traced. */
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
    // The first run of a trace that is left out is made all the same: its context excludes nested runs.
    if (!verdict.isKept) return prepared;
    if (plan.describe !== undefined && !isDescribed(prepared, args)) return undefined;
    if (parent?.refused !== true) prepared.inputs = plan.encodeInputs(args, sink, prepared.description);
    return prepared;
  } catch (thrown) {
    reportFailure('traceable', thrown);
    return undefined;
  }
}

/** Adds what the integration records of the call. Returns false if the call is not traced. */
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
    // Set on the run, and not an option: nested runs inherit only the metadata that the application gave.
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
 * Calls a function that has no run. Runs below it are recorded as without the wrapper, unless the plan names an exporter
 * with tracing off: then they are recorded nowhere.
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
 * Returns the context in which runs go to an exporter with tracing off. It is entered only where runs would be recorded
 * otherwise: on Node 20, entering a context slows down every later `await` of the process.
 */
function hidingContext({ exporter: off, enabled }: Plan): RunContext | undefined {
  if (off?.isOff !== true || enabled === false) return undefined;
  const around = sinkOf(currentContext());
  if (around === undefined || around.isOff === true) return undefined;
  const context = hidingContexts.get(off) ?? contextTo(off, undefined);
  hidingContexts.set(off, context);
  return context;
}

/** Takes the steps of a generator in a context, and records nothing. */
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

/** Copies everything that other code may read from a function: name, length, prototype, own properties, metadata. */
export function disguised(wrapper: Callable, fn: Callable): Callable {
  return (
    guard('traceable', () => {
      Object.setPrototypeOf(wrapper, Object.getPrototypeOf(fn));
      for (const key of Reflect.ownKeys(fn)) {
        Reflect.defineProperty(wrapper, key, Object.getOwnPropertyDescriptor(fn, key) as PropertyDescriptor);
      }
      // A bound function can be constructed and has no prototype. The property of our wrapper cannot be deleted.
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

/**
 * Copies the metadata of a method. Frameworks such as NestJS look up routes, guards and status codes by function
 * identity.
 */
function copyMetadata(from: Callable, to: Callable): void {
  const reflect = Reflect as unknown as ReflectMetadata;
  for (const key of reflect.getOwnMetadataKeys?.(from) ?? []) {
    reflect.defineMetadata(key, reflect.getOwnMetadata(key, from), to);
  }
}

/** The name of a function may have been set to any value, or may be unreadable. */
function nameOf(fn: CallableFunction): string {
  const name: unknown = guard('traceable', () => fn.name);
  return typeof name === 'string' && name !== '' ? name : 'anonymous';
}

/** Whether the function can only be called with `new`. */
export function isClass(fn: CallableFunction): boolean {
  // A method may be named `class`. It has no prototype.
  return /^class\b/.test(Function.prototype.toString.call(fn)) && Object.hasOwn(fn, 'prototype');
}

function isConstructor(fn: Callable): boolean {
  try {
    // Asks whether `fn` can be a `new.target`, without calling it.
    Reflect.construct(Object, [], fn);
    return true;
  } catch {
    return false;
  }
}
