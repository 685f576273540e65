import { reportFailure } from '../base/guard.ts';
import { types } from '../base/node.ts';
import { isFollowed, isObject, type Method, replaceOwn, type Settlement, type StreamObserver } from './observer.ts';
import { deriveOne, followThenable, thenOf } from './promise.ts';

/**
 * Follows an iterator or generator of either kind. It stays the same object; its methods are replaced on the instance. The
 * end is the last result, `return` (a `break`) or an error. Returns false if the methods cannot be replaced.
 */
export function followIterator(iterator: object, observer: StreamObserver): boolean {
  return replaceSteps(iterator, new Steps(types.isGeneratorObject(iterator), observer));
}

/** Follows a generator whose run starts with the first `next()`. `begin` returns undefined if there is no run after all. */
export function followLazyGenerator(generator: object, begin: () => StreamObserver | undefined): void {
  replaceSteps(generator, new Steps(true, undefined, begin));
}

/** Follows the first iteration of an async iterable. A second one is as without tracing. */
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
      if (!isObject(iterator) || (isIterator && iterator === this)) return iterator;
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

/** The steps of one iterator, from the first to the end. Also receives the outcome of a step that is a promise. */
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
    // The steps of a generator are native promises that nobody else has changed.
    if (this.#isGenerator && types.isPromise(result)) return deriveOne(result, this);
    const then = this.#isGenerator || typeof result !== 'object' || result === null ? undefined : thenOf(result);
    if (then !== undefined) return followThenable(result as object, then, this) ?? result;
    this.fulfilled(result);
    return result;
  }

  fulfilled(result: unknown): void {
    const observer = this.#observer as StreamObserver;
    try {
      // `yield*` passes on the results of any iterator as they are, getters included.
      const { done, value } = result as IteratorResult<unknown>;
      // A generator may yield in its `finally` block. Any other iterator is over once `return` is called.
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

  /** A generator that is returned or thrown into before its first step never runs its body. */
  #beginWith(step: Step, generator: unknown, begin: () => StreamObserver | undefined): void {
    this.#begin = undefined;
    if (step !== 'next') return;
    this.#observer = begin();
    // A `next` that was detached from its generator throws, and there is nothing to watch.
    if (isObject(generator)) this.#observer?.watch(generator);
  }
}
