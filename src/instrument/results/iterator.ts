import { reportFailure } from '../../base/guard.ts';
import { types } from '../../platform/node.ts';
import {
  interceptOwn,
  isObjectOrFunction,
  type Method,
  type Settlement,
  type StreamObserver,
  tryFollow,
} from './observer.ts';
import { deriveWith, followThenable, type Reactions, reactionsFor, thenOf } from './promise.ts';

/**
 * Observes a synchronous or asynchronous iterator by replacing its methods. The iteration ends when the iterator is
 * done or throws, or when the consumer calls `return()`.
 */
export function followIterator(iterator: object, observer: StreamObserver): boolean {
  return replaceSteps(iterator, new Steps(types.isGeneratorObject(iterator), observer));
}

/**
 * Observes a generator that has not started. The first `next()` calls `begin` to start a run. `begin` returns undefined
 * if no run is recorded.
 */
export function followLazyGenerator(generator: object, begin: () => StreamObserver | undefined): void {
  replaceSteps(generator, new Steps(true, undefined, begin));
}

/** Observes the iterators that an async iterable returns. Only the iterator that is read first is traced. */
export function followAsyncIterable(
  iterable: object,
  observer: StreamObserver,
  key: PropertyKey = Symbol.asyncIterator,
): boolean {
  const isIterator = followIterator(iterable, observer);
  let isTaken = false;
  const isReplaced = interceptOwn(iterable, key, (iterate, self, args) => {
    if (isTaken || observer.isStepping) return Reflect.apply(iterate, self, args);
    let iterator: unknown;
    try {
      iterator = observer.step(iterate, self, args);
    } catch (thrown) {
      isTaken = true;
      observer.fail(thrown);
      throw thrown;
    }
    if (!isObjectOrFunction(iterator) || (isIterator && iterator === self)) return iterator;
    const opened = iterator;
    const begin = (): StreamObserver | undefined => {
      if (isTaken) return undefined;
      isTaken = true;
      return observer;
    };
    const steps = new Steps(types.isGeneratorObject(opened), undefined, begin);
    if (tryFollow(opened, () => replaceSteps(opened, steps))) observer.watch(opened);
    else observer.end();
    return iterator;
  });
  return isReplaced || isIterator;
}

type Step = 'next' | 'return' | 'throw';

function replaceSteps(iterator: object, steps: Steps): boolean {
  const replace = (step: Step): boolean =>
    interceptOwn(iterator, step, (method, self, args) => steps.take(step, method, self, args));
  if (!Object.isExtensible(iterator) || !replace('next')) return false;
  replace('return');
  replace('throw');
  return true;
}

/** Observes the calls to one iterator's `next`, `return` and `throw`. */
class Steps implements Settlement {
  readonly #isGenerator: boolean;
  #observer: StreamObserver | undefined;
  #begin: (() => StreamObserver | undefined) | undefined;
  /** Created for the first promise and reused for each step, because functions are slow to create. */
  #reactions: Reactions | undefined;
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
    // An async generator returns a new native promise for each step, so no other code has changed the promise.
    if (this.#isGenerator && types.isPromise(result)) {
      this.#reactions ??= reactionsFor(this);
      return deriveWith(result, this.#reactions);
    }
    const then = this.#isGenerator || typeof result !== 'object' || result === null ? undefined : thenOf(result);
    if (then !== undefined) return followThenable(result as object, then, this) ?? result;
    this.fulfilled(result);
    return result;
  }

  fulfilled(result: unknown): void {
    const observer = this.#observer as StreamObserver;
    try {
      // `yield*` forwards result objects unchanged, so `done` and `value` may be getters that throw.
      const { done, value } = result as IteratorResult<unknown>;
      // After `return` is called, a generator may still yield from a `finally` block. Other iterators end when `return`
      // is called.
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

  /** If `return` or `throw` is called before `next`, no run starts. */
  #beginWith(step: Step, generator: unknown, begin: () => StreamObserver | undefined): void {
    this.#begin = undefined;
    if (step !== 'next') return;
    this.#observer = begin();
    // If `this` is not the generator, `next` throws and there is nothing to watch.
    if (isObjectOrFunction(generator)) this.#observer?.watch(generator);
  }
}
