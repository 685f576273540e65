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
  if (isPlainPromise(result)) return followPromise(result, run, plan);
  if (isGenerator(result)) return followGenerator(result, () => run, plan);
  if (!followThenable(result, run, plan)) endWith(run, plan, result);
  return result;
}

function isPlainPromise(value: object): value is Promise<unknown> {
  return types.isPromise(value) && Object.getPrototypeOf(value) === Promise.prototype && !Object.hasOwn(value, 'then');
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
  if (Reflect.ownKeys(promise).length > 0) {
    Object.defineProperties(derived, Object.getOwnPropertyDescriptors(promise));
  }
  return derived;
}

type Then = (onFulfilled?: unknown, onRejected?: unknown) => unknown;

/**
 * A subclass of Promise or another thenable stays itself, with helpers and laziness: its `then` is replaced on the
 * instance, and we never call it on our own account. False when the value is no thenable, or cannot be changed.
 */
function followThenable(value: object, run: Run, plan: Plan): boolean {
  let then: Then;
  try {
    then = (value as { then: Then }).then;
    if (typeof then !== 'function') return false;
  } catch {
    return false;
  }
  return Reflect.defineProperty(value, 'then', {
    configurable: true,
    writable: true,
    value: function (this: unknown, onFulfilled?: unknown, onRejected?: unknown): unknown {
      const fulfilled = (settled: unknown): unknown => {
        endWith(run, plan, settled);
        return typeof onFulfilled === 'function' ? onFulfilled(settled) : settled;
      };
      const rejected = (error: unknown): unknown => {
        run.fail(error);
        if (typeof onRejected === 'function') return onRejected(error);
        throw error;
      };
      return Reflect.apply(then, this, [fulfilled, rejected]);
    },
  });
}
