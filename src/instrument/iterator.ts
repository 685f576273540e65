import { reportFailure } from '../base/guard.ts';
import { types } from '../base/node.ts';
import {
  isFollowed,
  isObjectOrFunction,
  type Method,
  replaceOwn,
  type Settlement,
  type StreamObserver,
} from './observer.ts';
import { deriveOne, followThenable, thenOf } from './promise.ts';

/**
 * Follows a synchronous or async iterator by replacing methods on the instance. The iteration ends with the last
 * result, a call of `return` (for example by `break`) or an error. Returns false if the methods cannot be replaced.
 */
export function followIterator(iterator: object, observer: StreamObserver): boolean {
  return replaceSteps(iterator, new Steps(types.isGeneratorObject(iterator), observer));
}

/** Follows a generator whose run starts with the first `next()`. `begin` returns undefined if no run was started. */
export function followLazyGenerator(generator: object, begin: () => StreamObserver | undefined): void {
  replaceSteps(generator, new Steps(true, undefined, begin));
}

/** Follows the first iteration of an async iterable. Later iterations are not traced. */
export function followAsyncIterable(iterable: object, observer: StreamObserver): boolean {
  const isIterator = followIterator(iterable, observer);
  let isTaken = false;
  const isReplaced = replaceOwn(iterable, Symbol.asyncIterator, (iterate) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      if (isTaken || observer.isStepping) return Reflect.apply(iterate, this, args);
      let iterator: unknown;
      try {
        iterator = observer.step(iterate, this, args);
      } catch (thrown) {
        isTaken = true;
        observer.fail(thrown);
        throw thrown;
      }
      if (!isObjectOrFunction(iterator) || (isIterator && iterator === this)) return iterator;
      isTaken = true;
      const opened = iterator;
      if (isFollowed(opened, () => followIterator(opened, observer))) observer.watch(opened);
      else observer.end();
      return iterator;
    };
  });
  return isReplaced || isIterator;
}

type Step = 'next' | 'return' | 'throw';

function replaceSteps(iterator: object, steps: Steps): boolean {
  if (!Object.isExtensible(iterator) || !replaceStep(iterator, 'next', steps)) return false;
  replaceStep(iterator, 'return', steps);
  replaceStep(iterator, 'throw', steps);
  return true;
}

function replaceStep(iterator: object, step: Step, steps: Steps): boolean {
  return replaceOwn(iterator, step, (method) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      return steps.take(step, method, this, args);
    };
  });
}

/** Observes every step of one iterator. Also receives the outcome of a step that returns a promise. */
class Steps implements Settlement {
  readonly #isGenerator: boolean;
  #observer: StreamObserver | undefined;
  #begin: (() => StreamObserver | undefined) | undefined;
  #wasReturned = false;

  constructor(isGenerator: boolean, observer: StreamObserver | undefined, begin?: () => StreamObserver | undefined) {
    this.#isGenerator = isGenerator;
    this.#observer = observer;
    this.#begin = begin;
  }

  take(step: Step, method: Method, iterator: unknown, args: unknown[]): unknown {
    if (this.#begin !== undefined) this.#beginWith(step, iterator, this.#begin);
    const observer = this.#observer;
    if (observer === undefined || observer.isStepping) return Reflect.apply(method, iterator, args);
    let result: unknown;
    try {
      result = observer.step(method, iterator, args);
    } catch (thrown) {
      observer.fail(thrown);
      throw thrown;
    }
    if (step === 'return') this.#wasReturned = true;
    // An async generator returns native promises that no other code has changed.
    if (this.#isGenerator && types.isPromise(result)) return deriveOne(result, this);
    const then = this.#isGenerator || typeof result !== 'object' || result === null ? undefined : thenOf(result);
    if (then !== undefined) return followThenable(result as object, then, this) ?? result;
    this.fulfilled(result);
    return result;
  }

  fulfilled(result: unknown): void {
    const observer = this.#observer as StreamObserver;
    try {
      // `yield*` passes on result objects unchanged, so `done` and `value` may be getters that throw.
      const { done, value } = result as IteratorResult<unknown>;
      // A generator may still yield in its `finally` block. Any other iterator ends when `return` is called.
      if (this.#wasReturned && (done === true || !this.#isGenerator)) observer.cancel();
      else if (done === true) observer.end();
      else observer.chunk(value);
    } catch (thrown) {
      reportFailure('traceable', thrown);
    }
  }

  fail(error: unknown): void {
    this.#observer?.fail(error);
  }

  /** If `return` or `throw` is called before the first `next`, the generator never runs its body and no run starts. */
  #beginWith(step: Step, generator: unknown, begin: () => StreamObserver | undefined): void {
    this.#begin = undefined;
    if (step !== 'next') return;
    this.#observer = begin();
    // If `next` is called without its generator, `next` throws and there is no object to watch.
    if (isObjectOrFunction(generator)) this.#observer?.watch(generator);
  }
}
