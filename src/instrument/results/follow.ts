import { types } from '../../platform/node.ts';
import type { Run } from '../../run/run.ts';
import { endWith, followedValue, type Plan } from '../plan.ts';
import { followAsyncIterable, followIterator } from './iterator.ts';
import { followObservable, isObservable } from './observable.ts';
import { abandonment, isObjectOrFunction, type Settlement, type StreamObserver, tryFollow } from './observer.ts';
import { deriveOne, followThenable, thenOf } from './promise.ts';
import { Chunks, type Collector, StreamRecorder } from './recorder.ts';
import {
  followHelperStream,
  followNodeReadable,
  followReadableStream,
  isHelperStream,
  isNodeReadable,
  isReadableStream,
} from './stream.ts';

/**
 * Ends the run when the function's result is complete. Returns the value to pass to the caller instead of the result.
 */
export function followResult(result: unknown, run: Run, plan: Plan): unknown {
  if (!isObjectOrFunction(result)) {
    endWith(run, plan, result);
    return result;
  }
  if (plan.follow?.(result, run, plan) === true) return result;
  const then = thenOf(result);
  if (then === undefined && plan.stream === undefined && adapterFor(result) === undefined) {
    endWith(run, plan, result);
    return result;
  }
  const observer = new RunObserver(run, plan);
  const followed = then && followThenable(result, then, observer, true);
  if (followed === undefined) observer.fulfilled(result);
  else if (followed === result) observer.watch(result);
  return followed ?? result;
}

/**
 * Like `followResult`, but for `async` functions. An `async` function returns a new promise on each call, so no other
 * code has cached or changed the promise.
 */
export function followPromise(promise: Promise<unknown>, run: Run, plan: Plan): unknown {
  if (plan.follow?.(promise, run, plan) === true) return promise;
  return deriveOne(promise, new RunObserver(run, plan));
}

/**
 * Calls the methods of an iterator or stream through `observer`, also of one that a promise resolves to. Returns the value
 * to pass to the caller instead of the result.
 */
export function followSteps(result: unknown, observer: StreamObserver): unknown {
  const fulfilled = (value: unknown): void => {
    const follow = isObjectOrFunction(value) ? adapterFor(value) : undefined;
    if (follow !== undefined) tryFollow(value as object, () => follow(value as object, observer));
  };
  const then = isObjectOrFunction(result) ? thenOf(result) : undefined;
  if (then !== undefined) return followThenable(result as object, then, { fulfilled, fail() {} }, true) ?? result;
  fulfilled(result);
  return result;
}

/** Ends a run when the function's returned promise, iterator or stream completes. */
export class RunObserver extends StreamRecorder implements Settlement {
  readonly #plan: Plan;
  #isFollowed = false;

  constructor(run: Run, plan: Plan) {
    super(run);
    this.#plan = plan;
  }

  asked(): void {
    abandonment.unwatch(this);
  }

  fulfilled(value: unknown): void {
    if (this.#isFollowed) return;
    const { follow: followValue } = this.#plan;
    this.#isFollowed = isObjectOrFunction(value) && followValue?.(value, this.run, this.#plan) === true;
    if (this.#isFollowed) return;
    const source = this.run.isOpen ? followedValue(this.#plan, value) : value;
    const follow = isObjectOrFunction(source) ? adapterFor(source) : undefined;
    if (follow === undefined) endWith(this.run, this.#plan, value);
    else if (tryFollow(source as object, () => follow(source as object, this))) this.watch(source as object);
    else this.run.end();
  }

  protected override collect(): Collector {
    return new Chunks(this.#plan, this.run);
  }
}

/** Returns the function that observes a stream or an iterator. Undefined for other values. */
export function adapterFor(value: object): ((value: object, observer: StreamObserver) => boolean) | undefined {
  try {
    // Arrays are recorded as plain values, not as iterators.
    if (Array.isArray(value)) return undefined;
    const { next, [Symbol.asyncIterator]: iterate } = value as Partial<AsyncIterableIterator<unknown>>;
    if (typeof iterate === 'function') {
      if (types.isGeneratorObject(value)) return followIterator;
      if (isReadableStream(value)) return followReadableStream;
      if (isNodeReadable(value)) return followNodeReadable;
      return isHelperStream(value) ? followHelperStream : followAsyncIterable;
    }
    const { [Symbol.iterator]: iterateNow } = value as Partial<Iterable<unknown>>;
    if (typeof next === 'function' && typeof iterateNow === 'function') return followIterator;
    return isObservable(value) ? followObservable : undefined;
  } catch {
    return undefined;
  }
}
