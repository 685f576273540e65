import { types } from 'node:util';
import { bare, bareDescriptor } from '../base/bare.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import {
  applyInContext,
  currentContext,
  enclosingModelCall,
  isSameCall,
  modelCall,
  replaceSpan,
  sinkOf,
} from '../run/context.ts';
import { Run } from '../run/run.ts';
import { sample } from '../run/sampling.ts';
import { Consumption } from './consumption.ts';
import { followLazyGenerator } from './iterator.ts';
import { callWithoutRun } from './off-call.ts';
import { followResult } from './outcome.ts';
import {
  type ArgumentsOf,
  type CallOptions,
  describeCall,
  encodedInputs,
  type OutcomeOf,
  type Plan,
  planAgain,
  planOf,
  planWith,
  type TraceableOptions,
} from './plan.ts';

type Callable = (...args: unknown[]) => unknown;

/** A wrapped function: the function itself, and `with`. */
export type Traceable<Fn> = Fn & {
  /**
   * The same function for calls with options of their own: `answer.with({ id, metadata: { user } })(question)`. Tags and
   * metadata are added to those of the function. Nothing is remembered; keep what it gives back to call it again. A
   * function that has a `with` of its own keeps that.
   */
  with(options: CallOptions): Fn;
};

interface Wrapped {
  readonly fn: Callable;
  readonly plan: Plan;
}

/** Functions that are wrapped already, so that none is traced twice. */
const wrapped = new WeakMap<object, Wrapped>();

/**
 * Wraps a function so that each call becomes a run, below the run that is current when it is called. The wrapped
 * function has the same type and behaves as the same kind: a synchronous one stays synchronous, a generator lazy; `this`,
 * results, errors and own properties are those of the function. With tracing off it is called directly.
 *
 * A function that is wrapped already is not traced twice: the options are put over those that it has. Anything but a
 * function, and a class, is given back unchanged, with one line that says so.
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
  const plan =
    known === undefined ? planOf('traceable', options, nameOf(fn)) : planAgain('traceable', known.plan, options);
  const original = fn as unknown as Callable;
  return tracedBy(plan, known?.fn ?? original, original) as unknown as Traceable<Fn>;
}

/**
 * Wraps a function according to a validated plan. `shown` is the function that the wrapper replaces. It differs from `fn` if
 * it is an earlier wrapper of `fn`, which may have properties and metadata that `fn` lacks.
 */
export function tracedBy(given: Plan, fn: Callable, shown: Callable = fn): Callable {
  const plan = bare(given);
  const wrapper = disguised(
    types.isGeneratorFunction(fn) ? tracedGenerator(fn, plan) : tracedFunction(fn, plan),
    shown,
  );
  if (wrapper === shown) return shown;
  wrapped.set(wrapper, { fn, plan });
  guard('traceable', () => {
    if ('with' in fn) return;
    const value = (options: unknown): Callable => tracedBy(planWith(plan, options), fn, wrapper);
    Object.defineProperty(wrapper, 'with', bare({ configurable: true, writable: true, value }));
  });
  return wrapper;
}

function tracedFunction(fn: Callable, plan: Plan): Callable {
  const isAsync = types.isAsyncFunction(fn);
  if (isConstructor(fn)) {
    return function traced(this: unknown, ...args: unknown[]): unknown {
      if (new.target !== undefined) return Reflect.construct(fn, args, new.target === traced ? fn : new.target);
      return call(fn, plan, this, args, isAsync);
    };
  }
  // Written as a method it cannot be constructed and has no `prototype`, just as its function.
  const wrapper = {
    traced(this: unknown, ...args: unknown[]): unknown {
      return call(fn, plan, this, args, isAsync);
    },
  };
  return wrapper.traced;
}

function call(fn: Callable, plan: Plan, self: unknown, args: unknown[], isAsync: boolean): unknown {
  const run = prepare(plan, args)?.();
  if (run === undefined) return callWithoutRun(fn, plan, self, args);
  let result: unknown;
  try {
    result = applyInContext(run.context, fn, self, args);
  } catch (thrown) {
    run.fail(thrown);
    throw thrown;
  }
  // A generator that is left out still has its context to enter.
  return run.isOpen || types.isGeneratorObject(result) ? followResult(result, run, plan, isAsync) : result;
}

/** Inputs and parent are those of the call; the run starts when the first chunk is asked for. */
function tracedGenerator(fn: Callable, plan: Plan): Callable {
  const wrapper = {
    traced(this: unknown, ...args: unknown[]): unknown {
      const start = prepare(plan, args);
      if (start === undefined) return callWithoutRun(fn, plan, this, args);
      let generator: object;
      try {
        generator = Reflect.apply(fn, this, args) as object;
      } catch (thrown) {
        // The default value of a parameter threw: there is no generator, and the call is all there was.
        start()?.fail(thrown);
        throw thrown;
      }
      followLazyGenerator(generator, () => {
        const run = start();
        return run && new Consumption(run, plan);
      });
      return generator;
    },
  };
  return wrapper.traced;
}

/** Takes inputs and parent as they are now; the answer starts the run. Undefined while tracing is off. */
function prepare(given: Plan, args: unknown[]): (() => Run | undefined) | undefined {
  if (given.enabled === false) return undefined;
  return guard('traceable', () => {
    const parent = given.root === true ? undefined : currentContext();
    const sink = given.exporter ?? sinkOf(parent);
    if (sink === undefined || sink.isOff === true) return undefined;
    const plan = given.id === undefined ? given : planOfOneId(given);
    const verdict = sample(plan, parent, sink);
    if (!verdict.isKept) {
      if (parent?.sampled !== false)
        return () => guard('traceable', () => new Run(plan, parent, sink, undefined, verdict));
      sink.skip();
      return undefined;
    }
    const description = plan.describe && describeCall(plan.describe, args);
    if (plan.describe !== undefined && description === undefined) return undefined;
    const call = plan.isModelCall && modelCall(plan.runType, description?.metadata);
    if (call !== undefined && isSameCall(enclosingModelCall(parent, sink), call)) return undefined;
    const inputs = parent?.refused === true ? undefined : encodedInputs(plan, args, sink, description);
    return () =>
      guard('traceable', () => {
        const named = description?.name === undefined ? plan : bare(plan, { name: description.name });
        const run = new Run(named, parent, sink, inputs, verdict);
        // Set on the run itself, and not an option: what runs below take over is what the application gave.
        if (description?.metadata !== undefined) run.set({ metadata: { ...description.metadata, ...plan.metadata } });
        run.modelCall = call;
        if (description?.span !== undefined) replaceSpan(description.span, run.context);
        return run;
      });
  });
}

/** Plans whose id a run has. */
const used = new WeakSet<Plan>();

/** An id names one run: a later one of it would take the place of the first at the service, or be refused there. */
function planOfOneId(plan: Plan): Plan {
  if (!used.has(plan)) {
    used.add(plan);
    return plan;
  }
  diagnostics.warnOnce(
    'traceable id again',
    `traceable: expected a function with an \`id\` to be called once, got another call of "${plan.name}"; its run gets a new id. Give each call its own: fn.with({ id })(…).`,
  );
  const others = bare(plan);
  delete others.id;
  return others;
}

/** Copies everything that other code may read from a function: name, length, prototype, own properties and metadata. */
export function disguised(wrapper: Callable, fn: Callable): Callable {
  return (
    guard('traceable', () => {
      Object.setPrototypeOf(wrapper, Object.getPrototypeOf(fn));
      for (const key of Reflect.ownKeys(fn)) {
        Reflect.defineProperty(wrapper, key, bareDescriptor(fn, key) as PropertyDescriptor);
      }
      // A bound function can be constructed and has no prototype; our wrapper's own cannot be deleted.
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

/** A function may have been given a name that is no text, or one that cannot be read. */
function nameOf(fn: CallableFunction): string {
  const name: unknown = guard('traceable', () => fn.name);
  return typeof name === 'string' ? name : '';
}

/** Whether it is one that cannot be called, but by `new`. */
export function isClass(fn: CallableFunction): boolean {
  // A method may be named `class`; it has no prototype.
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
