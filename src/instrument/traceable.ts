import { types } from 'node:util';
import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { currentContext, enterContext } from '../run/context.ts';
import { Run, sinkOf } from '../run/run.ts';
import { followGenerator } from './generator.ts';
import { followResult } from './outcome.ts';
import {
  type ArgumentsOf,
  type CallDescription,
  describeCall,
  inputsJson,
  type OutcomeOf,
  type Plan,
  planOf,
  type TraceableOptions,
} from './plan.ts';

type Callable = (...args: unknown[]) => unknown;

/**
 * Wraps a function so that each call becomes a run, below the run that is current when it is called. The wrapped
 * function has the same type and behaves as the same kind: a synchronous one stays synchronous, a generator lazy; `this`,
 * results, errors and own properties are those of the function. With tracing off it is called directly.
 *
 * Anything but a function, and a class, is given back unchanged, with one line that says so.
 */
export function traceable<Fn extends CallableFunction>(
  fn: Fn,
  options?: TraceableOptions<ArgumentsOf<Fn>, OutcomeOf<Fn>>,
): Fn {
  const mistake = typeof fn !== 'function' ? `got ${fn === null ? 'null' : typeof fn}` : isClass(fn) && 'got a class';
  if (mistake) {
    diagnostics.warnOnce(`traceable ${mistake}`, `traceable(fn): expected a function, ${mistake}; it is not traced.`);
    return fn;
  }
  const plan = planOf('traceable', options, nameOf(fn));
  if (plan.enabled === false) return fn;
  return tracedBy(plan, fn as unknown as Callable) as unknown as Fn;
}

/** The function, traced by a plan that has been checked. */
export function tracedBy(plan: Plan, fn: Callable): Callable {
  const wrapper = types.isGeneratorFunction(fn) ? tracedGenerator(fn, plan) : tracedFunction(fn, plan);
  return disguised(wrapper, fn);
}

function tracedFunction(fn: Callable, plan: Plan): Callable {
  if (isConstructor(fn)) {
    return function traced(this: unknown, ...args: unknown[]): unknown {
      if (new.target !== undefined) return Reflect.construct(fn, args, new.target === traced ? fn : new.target);
      return call(fn, plan, this, args);
    };
  }
  // Written as a method it cannot be constructed and has no `prototype`, just as its function.
  const wrapper = {
    traced(this: unknown, ...args: unknown[]): unknown {
      return call(fn, plan, this, args);
    },
  };
  return wrapper.traced;
}

function call(fn: Callable, plan: Plan, self: unknown, args: unknown[]): unknown {
  const run = prepare(plan, args)?.();
  if (run === undefined) return Reflect.apply(fn, self, args);
  let result: unknown;
  try {
    result = enterContext(run.context, Reflect.apply, fn, self, args);
  } catch (thrown) {
    run.fail(thrown);
    throw thrown;
  }
  return followResult(result, run, plan);
}

/** Inputs and parent are those of the call; the run starts when the first chunk is asked for. */
function tracedGenerator(fn: Callable, plan: Plan): Callable {
  const wrapper = {
    traced(this: unknown, ...args: unknown[]): unknown {
      const start = prepare(plan, args);
      if (start === undefined) return Reflect.apply(fn, this, args);
      let generator: unknown;
      try {
        generator = Reflect.apply(fn, this, args);
      } catch (thrown) {
        // The default value of a parameter threw: there is no generator, and the call is all there was.
        start()?.fail(thrown);
        throw thrown;
      }
      return followGenerator(generator as Generator | AsyncGenerator, start, plan);
    },
  };
  return wrapper.traced;
}

/** Takes inputs and parent as they are now; the answer starts the run. Undefined while tracing is off. */
function prepare(plan: Plan, args: unknown[]): (() => Run | undefined) | undefined {
  return guard('traceable', () => {
    const parent = plan.root === true ? undefined : currentContext();
    const sink = plan.exporter ?? sinkOf(parent);
    if (sink === undefined) return undefined;
    const description = plan.describe && describeCall(plan.describe, args);
    if (plan.describe !== undefined && description === undefined) return undefined;
    const inputs = parent?.refused === true ? undefined : inputsJson(plan, args, sink, description);
    const options = description === undefined ? plan : described(plan, description);
    return () => guard('traceable', () => new Run(options, parent, sink, inputs));
  });
}

function described(plan: Plan, { name = plan.name, metadata }: CallDescription): Plan {
  return { ...plan, name, metadata: { ...plan.metadata, ...metadata } };
}

/** Gives the wrapper everything by which code tells functions apart: name, length, prototype and own properties. */
export function disguised(wrapper: Callable, fn: Callable): Callable {
  return (
    guard('traceable', () => {
      Object.setPrototypeOf(wrapper, Object.getPrototypeOf(fn));
      for (const key of Reflect.ownKeys(fn)) {
        Reflect.defineProperty(wrapper, key, Object.getOwnPropertyDescriptor(fn, key) as PropertyDescriptor);
      }
      // A bound function can be constructed and has no prototype; our wrapper's own cannot be deleted.
      if (Object.hasOwn(wrapper, 'prototype') && !Object.hasOwn(fn, 'prototype')) wrapper.prototype = undefined;
      return wrapper;
    }) ?? fn
  );
}

/** A function may have been given a name that is no text, or one that cannot be read. */
function nameOf(fn: CallableFunction): string {
  const name: unknown = guard('traceable', () => fn.name);
  return typeof name === 'string' ? name : '';
}

function isClass(fn: CallableFunction): boolean {
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
