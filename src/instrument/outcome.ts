import { types } from 'node:util';
import type { Run } from '../run/run.ts';
import { followGenerator, isGenerator } from './generator.ts';
import { endWith, type Plan } from './plan.ts';

/** Ends the run when the result has come to its end, and gives back what the caller gets in place of the result. */
export function followResult(result: unknown, run: Run, plan: Plan): unknown {
  if ((typeof result !== 'object' || result === null) && typeof result !== 'function') {
    endWith(run, plan, result);
    return result;
  }
  if (plan.follow?.(result, run, plan) === true) return result;
  if (isPlainPromise(result)) return followPromise(result, run, plan);
  if (isGenerator(result)) return followGenerator(result, run, plan);
  if (!followThenable(result, run, plan)) endWith(run, plan, result);
  return result;
}

function isPlainPromise(value: object): value is Promise<unknown> {
  if (!types.isPromise(value) || Object.getPrototypeOf(value) !== Promise.prototype) return false;
  return !Object.hasOwn(value, 'then') && !Object.hasOwn(value, 'constructor');
}

/**
 * One derived promise stands for the function's own: whoever leaves its rejection unhandled leaves one rejection
 * unhandled, as without us. Properties that the application put on its promise go along.
 */
function followPromise(promise: Promise<unknown>, run: Run, plan: Plan): Promise<unknown> {
  const derived = promise.then(
    (value) => {
      endWith(run, plan, value);
      return value;
    },
    (error) => {
      run.fail(error);
      throw error;
    },
  );
  // Once an AsyncLocalStorage has been entered, Node keeps symbols of its own on every promise, and listing those takes
  // longer than all else that is done here; names are what applications put there.
  if (Object.getOwnPropertyNames(promise).length === 0) return derived;
  for (const key of Reflect.ownKeys(promise)) {
    // Under async_hooks every promise has ids and a context of its own, which have to stay with it.
    if (Object.hasOwn(derived, key)) continue;
    Object.defineProperty(derived, key, Object.getOwnPropertyDescriptor(promise, key) as PropertyDescriptor);
  }
  return derived;
}

type Then = (...callbacks: unknown[]) => unknown;

/** The runs that end with a thenable. One that comes again, from a cache, is changed only once. */
const waiting = new WeakMap<object, { run: Run; plan: Plan }[]>();

/**
 * A subclass of Promise or another thenable stays itself, with helpers and laziness: its `then` is replaced on the
 * instance, and we never call it on our own account. False when the value is no thenable, or cannot be changed.
 */
function followThenable(value: object, run: Run, plan: Plan): boolean {
  const known = waiting.get(value);
  if (known !== undefined) {
    known.push({ run, plan });
    return true;
  }
  const runs = [{ run, plan }];
  try {
    const { then } = value as { then: Then };
    if (typeof then !== 'function') return false;
    if (!Reflect.defineProperty(value, 'then', { configurable: true, writable: true, value: following(then, runs) })) {
      return false;
    }
  } catch {
    return false;
  }
  waiting.set(value, runs);
  return true;
}

function following(then: Then, runs: { run: Run; plan: Plan }[]): Then {
  return function (this: unknown, onFulfilled?: unknown, onRejected?: unknown, ...more: unknown[]): unknown {
    const fulfilled = function (this: unknown, ...settled: unknown[]): unknown {
      for (const { run, plan } of runs.splice(0)) endWith(run, plan, settled[0]);
      return typeof onFulfilled === 'function' ? Reflect.apply(onFulfilled, this, settled) : settled[0];
    };
    const rejected = function (this: unknown, ...settled: unknown[]): unknown {
      for (const { run } of runs.splice(0)) run.fail(settled[0]);
      if (typeof onRejected === 'function') return Reflect.apply(onRejected, this, settled);
      throw settled[0];
    };
    return Reflect.apply(then, this, [fulfilled, rejected, ...more]);
  };
}
