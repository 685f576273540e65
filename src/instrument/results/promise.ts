import { ignoreErrors } from '../../base/guard.ts';
import { makeSlot, type Slot } from '../../base/slot.ts';
import { nodeModule, types } from '../../platform/node.ts';
import { defineOwn, type Method, replaceOwn, type Settlement, tryFollow } from './observer.ts';

type Result = Promise<unknown>;

const { then: thenOfPromise, catch: catchOfPromise, finally: finallyOfPromise } = Promise.prototype;

/** Returns a thenable's `then` method. Reads the property only once, because it may be a getter. */
export function thenOf(value: object): Method | undefined {
  try {
    const { then } = value as { then?: unknown };
    return typeof then === 'function' ? (then as Method) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Reports the outcome of a promise or thenable. Returns the object to pass to the caller: a derived promise, or the
 * thenable itself. Returns undefined if the thenable is frozen. Set `mayRepeat` if several calls may return the same
 * promise, for example from a cache. With `mayRepeat`, all callers receive the same derived promise.
 */
export function followThenable(
  value: object,
  then: Method,
  settlement: Settlement,
  mayRepeat = false,
): object | undefined {
  if (isPlainPromise(value)) return mayRepeat ? sharedDerivative(value, settlement) : derivedFrom(value, settlement);
  return tryFollow(value, () => followThen(value, then, settlement)) ? value : undefined;
}

export function followIfThenable(result: unknown, settlement: Settlement): unknown {
  if (typeof result !== 'object' || result === null) return result;
  const then = thenOf(result);
  return (then && followThenable(result, then, settlement)) ?? result;
}

/**
 * Returns a new promise with the same outcome. If the caller does not handle a rejection, Node reports one unhandled
 * rejection, as it does without tracing.
 */
export function deriveOne(promise: Result, settlement: Settlement): Result {
  return deriveWith(promise, reactionsFor(settlement));
}

/** Functions for `then` that report the outcome of a promise and do not change it. */
export interface Reactions {
  fulfilled(value: unknown): unknown;
  rejected(error: unknown): never;
}

export function reactionsFor(settlement: Settlement): Reactions {
  return {
    fulfilled: (value) => {
      settlement.fulfilled(value);
      return value;
    },
    rejected: (error) => {
      settlement.fail(error);
      throw error;
    },
  };
}

/** Like `deriveOne`, for callers that observe many promises with the same functions. */
export function deriveWith(promise: Result, { fulfilled, rejected }: Reactions): Result {
  return thenOfPromise.call(promise, fulfilled, rejected);
}

export function isPlainPromise(value: object): value is Result {
  if (!types.isPromise(value) || Object.getPrototypeOf(value) !== Promise.prototype) return false;
  return !Object.hasOwn(value, 'constructor');
}

/**
 * Calls `fulfilled` with the value of a promise that is already fulfilled. Returns undefined for another promise: a
 * handler would hide that the application does not handle its rejection. Only `inspect` tells the state without one.
 */
export function whenFulfilled(promise: Result, fulfilled: (value: unknown) => void): Result | undefined {
  const options = { depth: 0, customInspect: false, maxStringLength: 0 };
  const text = ignoreErrors(() => nodeModule('node:util').inspect(promise, options)) ?? '';
  // The text of a pending or rejected promise starts with `Promise { <pending>` or `Promise { <rejected>`.
  return /^Promise \{\s+[^<\s]/.test(text) ? thenOfPromise.call(promise, fulfilled) : undefined;
}

const derivatives: Slot<Result> = makeSlot();

function sharedDerivative(promise: Result, settlement: Settlement): Result {
  const known = derivatives.get(promise);
  if (known === undefined) {
    const derived = derivedFrom(promise, settlement);
    derivatives.set(promise, derived);
    return derived;
  }
  // Handling the rejection here hides nothing: Node still reports an unhandled rejection of the derived promise.
  thenOfPromise.call(
    promise,
    (value) => settlement.fulfilled(value),
    (error) => settlement.fail(error),
  );
  return known;
}

/** Like `deriveOne`, but also copies the properties that the application added to the promise. */
function derivedFrom(promise: Result, settlement: Settlement): Result {
  const derived = deriveOne(promise, settlement);
  // Checks only string keys, because Node adds symbols to every promise while an `AsyncLocalStorage` is in use.
  if (Object.getOwnPropertyNames(promise).length === 0) return derived;
  for (const key of Reflect.ownKeys(promise)) {
    // Skips properties that the derived promise already has, for example Node's symbols.
    if (METHODS.has(key) || Object.hasOwn(derived, key)) continue;
    Object.defineProperty(derived, key, Object.getOwnPropertyDescriptor(promise, key) as PropertyDescriptor);
  }
  return derived;
}

/** Names of methods that are not copied, because they work only on the original promise. */
const METHODS: ReadonlySet<PropertyKey> = new Set(['then', 'catch', 'finally']);

/**
 * Observes a thenable by replacing its `then` method. A lazy thenable stays lazy, because only the application calls
 * `then`. `catch` and `finally` are also replaced, because some thenables do not call `then` in these methods.
 */
function followThen(value: object, then: Method, settlement: Settlement): boolean {
  if (!defineOwn(value, 'then', followingThen(then, settlement))) return false;
  replaceOwn(value, 'catch', (method) => (method === catchOfPromise ? method : followingCatch(method, settlement)));
  replaceOwn(value, 'finally', (method) =>
    method === finallyOfPromise ? method : followingFinally(method, settlement),
  );
  return true;
}

function followingThen(then: Method, settlement: Settlement): Method {
  return function (this: unknown, onFulfilled?: unknown, onRejected?: unknown, ...more: unknown[]): unknown {
    settlement.asked?.();
    const fulfilled = function (this: unknown, ...settled: unknown[]): unknown {
      settlement.fulfilled(settled[0]);
      return typeof onFulfilled === 'function' ? Reflect.apply(onFulfilled, this, settled) : settled[0];
    };
    const rejected = function (this: unknown, ...settled: unknown[]): unknown {
      settlement.fail(settled[0]);
      if (typeof onRejected === 'function') return Reflect.apply(onRejected, this, settled);
      throw settled[0];
    };
    return Reflect.apply(then, this, [fulfilled, rejected, ...more]);
  };
}

/**
 * Observes `catch`. The wrapped callback reports a rejection. The promise that `catch` returns reports a value.
 * Arguments that are not callbacks, for example Bluebird's error filters, are passed unchanged.
 */
function followingCatch(method: Method, settlement: Settlement): Method {
  const following = followingFinally(method, settlement);
  return function (this: unknown, ...args: unknown[]): unknown {
    const onRejected = args.at(-1);
    if (typeof onRejected === 'function') {
      args[args.length - 1] = function (this: unknown, ...settled: unknown[]): unknown {
        settlement.fail(settled[0]);
        return Reflect.apply(onRejected, this, settled);
      };
    }
    return Reflect.apply(following, this, args);
  };
}

/** Observes the promise that `finally` returns. The promise has the thenable's outcome unless the callback throws. */
function followingFinally(method: Method, settlement: Settlement): Method {
  return function (this: unknown, ...args: unknown[]): unknown {
    settlement.asked?.();
    return followIfThenable(Reflect.apply(method, this, args), settlement);
  };
}
