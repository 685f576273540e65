import { guard } from '../base/guard.ts';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { makeSlot, type Slot } from '../base/slot.ts';
import { clearTimer, outside, setSoon, setTimer } from '../base/timers.ts';

export type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Receives the chunks that a consumer reads from a stream or iterator, and then its end, error or cancellation. */
export interface StreamObserver {
  /** True during `step`. While true, calls between methods of the result are not observed. */
  readonly isStepping: boolean;
  /** Calls the original method, for example `next`, when the consumer calls the method that replaces it. */
  step(method: Method, self: unknown, args: unknown[]): unknown;
  chunk(value: unknown): void;
  end(): void;
  fail(error: unknown): void;
  /** Called when the consumer stops reading before the end. */
  cancel(): void;
  /** Starts to watch a result, because the consumer may never read the result to the end. */
  watch(object: object): void;
  /**
   * Called if the runtime bypasses the observed methods, for example in `pipeTo`. From then on, only the end or the
   * error is observed, and no chunks.
   */
  detach(): void;
}

/** Receives the outcome of a promise or thenable. */
export interface Settlement {
  /** Called when the application calls a method of the thenable, so that the thenable is no longer watched. */
  asked?(): void;
  fulfilled(value: unknown): void;
  fail(error: unknown): void;
}

/** The state of a watched result. A reference to the result would prevent garbage collection of the result. */
export interface Watched {
  readonly idleMaxMs: number;
  /** Returns whether the consumer has used the result since the last call. */
  wasUsed(): boolean;
  abandon(reason: string): void;
}

/** Reports a result that is garbage-collected before its end, or unused for `idleMaxMs` to twice `idleMaxMs`. */
class Abandonment {
  /** Holds the results of this turn of the event loop. Most generators end in the same turn and need no timer. */
  readonly #fresh = new Map<Watched, object>();
  readonly #timers = new Map<Watched, NodeJS.Timeout>();
  readonly #collected = new FinalizationRegistry<Watched>((watched) =>
    this.#abandon(watched, 'the result was collected before its end'),
  );

  /** If `watched` already belongs to another result, that result is no longer watched. */
  watch(result: object, watched: Watched): void {
    this.unwatch(watched);
    if (this.#fresh.size === 0) setSoon(() => this.#register()).unref();
    this.#fresh.set(watched, result);
  }

  unwatch(watched: Watched): void {
    if (this.#fresh.delete(watched)) return;
    const timer = this.#timers.get(watched);
    if (timer === undefined) return;
    clearTimer(timer);
    this.#timers.delete(watched);
    this.#collected.unregister(watched);
  }

  #register(): void {
    for (const [watched, result] of this.#fresh) {
      this.#collected.register(result, watched, watched);
      const delayMs = Math.min(DELAY_MAX_MS, watched.idleMaxMs);
      this.#timers.set(watched, setTimer(() => this.#check(watched), delayMs).unref());
    }
    this.#fresh.clear();
  }

  #check(watched: Watched): void {
    if (watched.wasUsed()) this.#timers.get(watched)?.refresh();
    else this.#abandon(watched, `the result was not used for ${watched.idleMaxMs / 1_000} s`);
  }

  #abandon(watched: Watched, reason: string): void {
    this.unwatch(watched);
    outside(() => watched.abandon(reason));
  }
}

export const abandonment: Abandonment = new Abandonment();

/** Runs instead of a replaced method, which is passed as `method`. */
export type Interceptor = (method: Method, self: unknown, args: unknown[]) => unknown;

export function interceptOwn(object: object, key: PropertyKey, intercept: Interceptor): boolean {
  return replaceOwn(object, key, (method) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      return intercept(method, this, args);
    };
  });
}

/**
 * Replaces a method on the object itself, for the result of one call. A long-lived object needs `replaceMethod`, which
 * remembers each replaced method.
 */
export function replaceOwn(object: object, key: PropertyKey, make: (method: Method) => Method): boolean {
  try {
    const method = (object as Record<PropertyKey, unknown>)[key];
    if (typeof method !== 'function') return false;
    return defineOwn(object, key, make(method as Method));
  } catch {
    return false;
  }
}

/**
 * Defines a method on the object itself. An existing property stays enumerable or not enumerable. A new property is not
 * enumerable.
 */
export function defineOwn(object: object, key: PropertyKey, method: Method): boolean {
  try {
    return Reflect.defineProperty(object, key, { configurable: true, writable: true, value: method });
  } catch {
    return false;
  }
}

export function isObjectOrFunction(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** Maximum number of runs that observe the same object. Each run wraps the methods of the object once more. */
const CALLS_MAX = 16;

/** Calls `follow`, unless `CALLS_MAX` runs already follow the object. Returns true if the run follows the object. */
export function isFollowed(object: object, follow: () => boolean): boolean {
  const isDone = guard('traceable', () => {
    const calls = callCounts.get(object) ?? 0;
    if (calls >= CALLS_MAX || !Object.isExtensible(object) || !follow()) return false;
    callCounts.set(object, calls + 1);
    return true;
  });
  return isDone === true;
}

const callCounts: Slot<number> = makeSlot();
