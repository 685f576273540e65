import { types } from 'node:util';
import { bareDescriptor } from '../base/bare.ts';
import { defaultLimits } from '../base/limits.ts';
import { abandonment, type Watched } from './abandonment.ts';
import { type Method, putOwn, replaceOwn } from './own-method.ts';

/** What is told of a promise or another thenable. */
export interface Settlement {
  fulfilled(value: unknown): void;
  rejected(error: unknown): void;
  /** The thenable is gone, and nobody has asked it for anything. */
  abandoned(reason: string): void;
}

type Result = Promise<unknown>;

const { then: thenOfPromise, catch: catchOfPromise, finally: finallyOfPromise } = Promise.prototype;

/** The `then` of what may be waited for. Reading it is all that is done, and it is done once. */
export function thenOf(value: object): Method | undefined {
  try {
    const { then } = value as { then?: unknown };
    // One that the host has put on all objects makes none of them a promise of ours to follow.
    return typeof then === 'function' && then !== (Object.prototype as { then?: unknown }).then
      ? (then as Method)
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Follows what has such a `then`, and gives what the caller gets in its place; undefined when it cannot be followed. A
 * promise that may come again, from a cache, has one that stands for it every time.
 */
export function followWaiting(
  value: object,
  then: Method,
  settlement: Settlement,
  idleMaxMs?: number,
  mayComeAgain = false,
): object | undefined {
  if (isPlainPromise(value)) return (mayComeAgain ? standingFor : derivedFrom)(value, settlement);
  return followThenable(value, then, settlement, idleMaxMs) ? value : undefined;
}

/** What a method answered with, or what stands for it when it is something that may be waited for. */
export function followAnswer(answer: unknown, settlement: Settlement): unknown {
  if (typeof answer !== 'object' || answer === null) return answer;
  const then = thenOf(answer);
  return (then && followWaiting(answer, then, settlement)) ?? answer;
}

function isPlainPromise(value: object): value is Result {
  if (!types.isPromise(value) || Object.getPrototypeOf(value) !== Promise.prototype) return false;
  return !Object.hasOwn(value, 'constructor');
}

/** To remember a promise takes several times as long as to derive one, so it is done only where it may come again. */
const derivatives = new WeakMap<Result, Result>();

function standingFor(promise: Result, settlement: Settlement): Result {
  const known = derivatives.get(promise);
  if (known === undefined) {
    const derived = derivedFrom(promise, settlement);
    derivatives.set(promise, derived);
    return derived;
  }
  // A rejection is handled or not by those who were given the one that stands for it.
  thenOfPromise.call(
    promise,
    (value) => settlement.fulfilled(value),
    (error) => settlement.rejected(error),
  );
  return known;
}

/**
 * One derived promise stands for a native one: whoever leaves its rejection unhandled leaves one rejection unhandled, as
 * without us. Properties that the application put on its promise go along.
 */
function derivedFrom(promise: Result, settlement: Settlement): Result {
  const derived = thenOfPromise.call(
    promise,
    (value) => {
      settlement.fulfilled(value);
      return value;
    },
    (error) => {
      settlement.rejected(error);
      throw error;
    },
  );
  // Once an AsyncLocalStorage has been entered, Node keeps symbols of its own on every promise, and listing those takes
  // longer than all else that is done here; names are what applications put there.
  if (Object.getOwnPropertyNames(promise).length > 0) takeProperties(derived, promise);
  return derived;
}

function takeProperties(derived: Result, promise: Result): void {
  for (const key of Reflect.ownKeys(promise)) {
    // Under async_hooks every promise has ids and a context of its own, which have to stay with it.
    if (Object.hasOwn(derived, key)) continue;
    const property = bareDescriptor(promise, key) as PropertyDescriptor;
    if ((key === 'then' || key === 'catch' || key === 'finally') && typeof property.value === 'function') {
      property.value = asOf(promise, derived, property.value);
    }
    Object.defineProperty(derived, key, property);
  }
}

/**
 * A `then` of the promise's own is called on the promise that it was made for. What comes of the rejection there is all
 * that comes of it, so the derived one has none of its own to leave unhandled.
 */
function asOf(promise: Result, derived: Result, method: Method): Method {
  return function (this: unknown, ...args: unknown[]): unknown {
    if (this !== derived) return Reflect.apply(method, this, args);
    thenOfPromise.call(derived, undefined, () => {});
    return Reflect.apply(method, promise, args);
  };
}

/** A thenable that comes again, from a cache, is changed only once. */
const followed = new WeakMap<object, Waiting>();

/**
 * A subclass of Promise or another thenable stays itself, with helpers and laziness: its `then` is replaced on the
 * instance, and we never call it on our own account. So are `catch` and `finally` of its own, which may not go through
 * `then`. False when the value cannot be changed.
 */
function followThenable(value: object, then: Method, settlement: Settlement, idleMaxMs: number | undefined): boolean {
  const known = followed.get(value);
  if (known !== undefined) return known.add(value, settlement);
  const waiting = new Waiting(idleMaxMs);
  if (!putOwn(value, 'then', followingThen(then, waiting))) return false;
  replaceOwn(value, 'catch', (method) => (method === catchOfPromise ? method : followingCatch(method, waiting)));
  replaceOwn(value, 'finally', (method) => (method === finallyOfPromise ? method : followingFinally(method, waiting)));
  followed.set(value, waiting);
  return waiting.add(value, settlement);
}

/** As many as there are open runs by default. What more calls hand out, with nobody asking it, is a value of theirs. */
const SETTLEMENTS_MAX = 10_000;

/** Those who wait for one thenable. */
class Waiting implements Settlement, Watched {
  wasTouched = true;
  readonly idleMaxMs: number;
  #settlements: Settlement[] = [];

  constructor(idleMaxMs: number = defaultLimits.streamIdleMs) {
    this.idleMaxMs = idleMaxMs;
  }

  add(thenable: object, settlement: Settlement): boolean {
    if (this.#settlements.length >= SETTLEMENTS_MAX) return false;
    this.#settlements.push(settlement);
    this.wasTouched = true;
    if (this.#settlements.length === 1) abandonment.watch(thenable, this);
    return true;
  }

  /** Somebody has asked for the outcome: the answer may come when the thenable itself is long forgotten. */
  asked(): void {
    abandonment.unwatch(this);
  }

  fulfilled(value: unknown): void {
    for (const settlement of this.#taken()) settlement.fulfilled(value);
  }

  rejected(error: unknown): void {
    for (const settlement of this.#taken()) settlement.rejected(error);
  }

  abandoned(reason: string): void {
    for (const settlement of this.#taken()) settlement.abandoned(reason);
  }

  abandon(reason: string): void {
    this.abandoned(reason);
  }

  #taken(): Settlement[] {
    abandonment.unwatch(this);
    return this.#settlements.splice(0);
  }
}

function followingThen(then: Method, waiting: Waiting): Method {
  return function (this: unknown, onFulfilled?: unknown, onRejected?: unknown, ...more: unknown[]): unknown {
    waiting.asked();
    const fulfilled = function (this: unknown, ...settled: unknown[]): unknown {
      waiting.fulfilled(settled[0]);
      return typeof onFulfilled === 'function' ? Reflect.apply(onFulfilled, this, settled) : settled[0];
    };
    const rejected = function (this: unknown, ...settled: unknown[]): unknown {
      waiting.rejected(settled[0]);
      if (typeof onRejected === 'function') return Reflect.apply(onRejected, this, settled);
      throw settled[0];
    };
    return Reflect.apply(then, this, [fulfilled, rejected, ...more]);
  };
}

/**
 * Wraps `catch`. A rejection is observed in the callback, a fulfilled value through the promise that `catch` returns.
 * Arguments before the callback, such as Bluebird's error filters, are passed on unchanged.
 */
function followingCatch(method: Method, waiting: Waiting): Method {
  return function (this: unknown, ...args: unknown[]): unknown {
    waiting.asked();
    const onRejected = args.at(-1);
    if (typeof onRejected === 'function') {
      args[args.length - 1] = function (this: unknown, ...settled: unknown[]): unknown {
        waiting.rejected(settled[0]);
        return Reflect.apply(onRejected, this, settled);
      };
    }
    return followAnswer(Reflect.apply(method, this, args), waiting);
  };
}

/** `finally` tells its callback nothing; its answer settles as the thenable does, unless the callback itself throws. */
function followingFinally(method: Method, waiting: Waiting): Method {
  return function (this: unknown, onFinally?: unknown, ...more: unknown[]): unknown {
    waiting.asked();
    if (typeof onFinally !== 'function') {
      return followAnswer(Reflect.apply(method, this, [onFinally, ...more]), waiting);
    }
    const settled = function (this: unknown, ...args: unknown[]): unknown {
      let hasReturned = false;
      try {
        const answer = Reflect.apply(onFinally, this, args);
        hasReturned = true;
        return answer;
      } finally {
        if (!hasReturned) waiting.abandoned('the callback of `finally` threw, and hid what it was called for');
      }
    };
    return followAnswer(Reflect.apply(method, this, [settled, ...more]), waiting);
  };
}
