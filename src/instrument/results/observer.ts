import { guard } from '../../base/guard.ts';
import { makeSlot, type Slot } from '../../base/slot.ts';
import { clearTimer, DELAY_MAX_MS, runInRootContext, setSoon, setTimer } from '../../platform/timers.ts';

export type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Receives each chunk that a consumer reads from a stream or iterator, then the end, error or cancellation. */
export interface StreamObserver {
  /** True while `step` runs, so that a result's calls to its own methods are not observed. */
  readonly isStepping: boolean;
  /** Whether the observer receives a transform stream's input chunks instead of its output chunks. */
  readonly observesSource?: boolean;
  /** Calls the original method when the consumer calls its replacement, for example `next`. */
  step(method: Method, self: unknown, args: unknown[]): unknown;
  chunk(value: unknown): void;
  end(): void;
  fail(error: unknown): void;
  /** Called when the consumer stops reading before the stream or iterator ends. */
  cancel(): void;
  /**
   * If it is defined, called instead of cancelling a web stream. Reads the stream on and cancels it later. Returns false if
   * the stream is to be cancelled.
   */
  readonly takeRest?: ((open: () => ReadableStreamDefaultReader) => boolean) | undefined;
  /** Watches a result that the consumer may never read to its end. */
  watch(object: object): void;
  /**
   * Called if the runtime bypasses the observed methods, for example in `pipeTo`. After `detach`, the observer receives
   * no more chunks, only the end or an error.
   */
  detach(): void;
}

/** Observes nothing. */
export const noObserver: StreamObserver = {
  isStepping: false,
  step: (method, self, args) => Reflect.apply(method, self, args),
  chunk() {},
  end() {},
  fail() {},
  cancel() {},
  watch() {},
  detach() {},
};

/** Receives the outcome of a promise or thenable. */
export interface Settlement {
  /** Called when the application calls a method of the thenable, which then needs no watching. */
  asked?(): void;
  fulfilled(value: unknown): void;
  fail(error: unknown): void;
}

/** A `Watched` object must not reference its result, because a reference would keep the result in memory. */
export interface Watched {
  readonly idleMaxMs: number;
  /** Whether the consumer has used the result since the last call to this method. */
  wasUsed(): boolean;
  abandon(reason: string): void;
}

/**
 * Reports results that are garbage-collected before they end, or not used for `idleMaxMs`. Unused results are reported
 * within twice that time.
 */
class Abandonment {
  /** Results created in the current turn of the event loop. Most generators end in this turn and need no timer. */
  readonly #fresh = new Map<Watched, object>();
  readonly #timers = new Map<Watched, NodeJS.Timeout>();
  readonly #collected = new FinalizationRegistry<Watched>((watched) =>
    this.#abandon(watched, 'the result was garbage-collected before it ended'),
  );

  /** Watches `result`. If `watched` belonged to another result, that result is no longer watched. */
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
    else this.#abandon(watched, `the result was not read for ${watched.idleMaxMs / 1_000} s`);
  }

  #abandon(watched: Watched, reason: string): void {
    this.unwatch(watched);
    runInRootContext(() => watched.abandon(reason));
  }
}

export const abandonment: Abandonment = new Abandonment();

/** Called in place of a replaced method, with the original method as `method`. */
export type Interceptor = (method: Method, self: unknown, args: unknown[]) => unknown;

export function interceptOwn(object: object, key: PropertyKey, intercept: Interceptor): boolean {
  return replaceOwn(object, key, (method) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      return intercept(method, this, args);
    };
  });
}

/**
 * Replaces a method on the object itself. Use `replaceOwn` for short-lived objects, such as the result of one call. For
 * long-lived objects, use `replaceMethod`, which stores the original method.
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
 * Defines a method on the object itself. An existing property keeps its enumerability. A new property is not
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

/** Maximum number of runs that observe one object. Each run wraps the object's methods again. */
const CALLS_MAX = 16;

/**
 * Calls `follow`, unless `CALLS_MAX` runs already observe the object. Returns whether the run now observes the object.
 */
export function tryFollow(object: object, follow: () => boolean): boolean {
  const isDone = guard('traceable', () => {
    const calls = callCounts.get(object) ?? 0;
    if (calls >= CALLS_MAX || !Object.isExtensible(object) || !follow()) return false;
    callCounts.set(object, calls + 1);
    return true;
  });
  return isDone === true;
}

const callCounts: Slot<number> = makeSlot();
