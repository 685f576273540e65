import { types } from 'node:util';
import { guard } from '../base/guard.ts';
import { type Method, replaceOwn } from './own-method.ts';
import { followWaiting, type Settlement, thenOf } from './promise.ts';
import type { Reading } from './reading.ts';

/** Begins the reading of a generator at its first `next()`; undefined when there is no run after all. */
export type Begin = () => Reading | undefined;

/**
 * Follows an iterator of either kind without changing it: the same object, its methods replaced on the instance. Every
 * step is taken in the context of the run, which ends when the iterator does: by running out, by `return` (a `break`), or
 * by an error. False when its methods cannot be replaced.
 */
export function followIterator(iterator: object, reading: Reading): boolean {
  return replaceSteps(iterator, new Walk(types.isGeneratorObject(iterator), reading));
}

/** The same for a generator whose run has not begun. */
export function followLazyGenerator(generator: object, begin: Begin): void {
  replaceSteps(generator, new Walk(true, undefined, begin));
}

type Step = 'next' | 'return' | 'throw';

function replaceSteps(iterator: object, walk: Walk): boolean {
  if (!Object.isExtensible(iterator) || !replaceStep(iterator, 'next', walk)) return false;
  replaceStep(iterator, 'return', walk);
  replaceStep(iterator, 'throw', walk);
  return true;
}

function replaceStep(iterator: object, step: Step, walk: Walk): boolean {
  return replaceOwn(iterator, step, (method) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      return walk.step(step, method, this, args);
    };
  });
}

/** The way of one iterator to its end. */
class Walk {
  readonly #isGenerator: boolean;
  #reading: Reading | undefined;
  #begin: Begin | undefined;
  #wasReturned = false;

  constructor(isGenerator: boolean, reading: Reading | undefined, begin?: Begin) {
    this.#isGenerator = isGenerator;
    this.#reading = reading;
    this.#begin = begin;
  }

  step(step: Step, method: Method, iterator: unknown, args: unknown[]): unknown {
    if (this.#begin !== undefined) this.#beginAt(step, iterator, this.#begin);
    const reading = this.#reading;
    if (reading === undefined || reading.isStepping) return Reflect.apply(method, iterator, args);
    let result: unknown;
    try {
      result = reading.step(method, iterator, args);
    } catch (thrown) {
      reading.fail(thrown);
      throw thrown;
    }
    if (step === 'return') this.#wasReturned = true;
    if (this.#isGenerator) {
      return types.isPromise(result) ? this.#afterwards(reading, result) : this.#took(reading, result);
    }
    const then = typeof result === 'object' && result !== null ? thenOf(result) : undefined;
    if (then === undefined) return this.#took(reading, result);
    return followWaiting(result as object, then, this.#settlement(reading)) ?? result;
  }

  /** A generator that is returned or thrown into before its first step never runs at all. */
  #beginAt(step: Step, generator: unknown, begin: Begin): void {
    this.#begin = undefined;
    if (step !== 'next') return;
    this.#reading = begin();
    // Taken apart by `next` alone it is nothing that could be watched, and the step will throw.
    if (typeof generator === 'object' && generator !== null) this.#reading?.watch(generator);
  }

  /** Steps of a generator are native promises without anything of anybody's own. */
  #afterwards(reading: Reading, promise: Promise<unknown>): Promise<unknown> {
    return promise.then(
      (result) => this.#took(reading, result),
      (error) => {
        reading.fail(error);
        throw error;
      },
    );
  }

  #settlement(reading: Reading): Settlement {
    return {
      fulfilled: (result) => void this.#took(reading, result),
      rejected: (error) => reading.fail(error),
      abandoned: () => {},
    };
  }

  #took(reading: Reading, result: unknown): unknown {
    // `yield*` hands on the results of any iterator as they are, getters included.
    guard('traceable', () => {
      const { done, value } = result as IteratorResult<unknown>;
      // A generator may yield in its `finally` block; any other iterator has been told and is left alone.
      if (this.#wasReturned && (done === true || !this.#isGenerator)) reading.cancel();
      else if (done === true) reading.end();
      else reading.took(value);
    });
    return result;
  }
}
