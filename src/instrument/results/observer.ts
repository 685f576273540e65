import { guard } from '../../base/guard.ts';
import { shared } from '../../base/shared.ts';
import { makeSlot, type Slot } from '../../base/slot.ts';
import { clearTimer, DELAY_MAX_MS, runInRootContext, setSoon, setTimer } from '../../platform/timers.ts';
import type { Run } from '../../run/run.ts';
import { STREAM_IDLE_MS } from '../../run/sink.ts';

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
  /** Watches a result that the consumer may never read to its end. */
  watch(object: object): void;
  /**
   * Called if the runtime bypasses the observed methods, for example in `pipeTo`. After `detach`, the observer receives
   * no more chunks, only the end or an error.
   */
  detach(): void;
}

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
  readonly run?: Run;
  /** Whether the consumer has used `result` since the last call. Undefined if only garbage collection ends the run. */
  wasUsed?(result: object | undefined): boolean;
  /** Ends the run as interrupted. If the client of the request has left, `reason` is undefined: the run is cancelled. */
  abandon(reason: string | undefined): void;
}

/** Time without a read after which a result is abandoned if the client of its request has left, in milliseconds. */
const LEFT_IDLE_MS = 60_000;

/**
 * Reports results that are garbage-collected before they end, or not used for `STREAM_IDLE_MS`. Unused results are
 * reported within twice that time.
 */
class Abandonment {
  /** Results created in the current turn of the event loop. Most generators end in this turn and need no timer. */
  readonly #fresh = new Map<Watched, object>();
  readonly #watches = new Map<Watched, { result: WeakRef<object>; hasClientLeft: boolean; timer: NodeJS.Timeout }>();
  /** Dotted orders of requests that their clients have left. Their handlers may still return results. */
  readonly #left = new Set<string>();
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
    const watch = this.#watches.get(watched);
    if (watch === undefined) return;
    clearTimer(watch.timer);
    this.#watches.delete(watched);
    this.#collected.unregister(watched);
  }

  /** Called when the client of a request has left. Cancels the runs of results below that are not read any more. */
  leave(dottedOrder: string): void {
    this.#left.add(dottedOrder);
    setTimer(() => this.#left.delete(dottedOrder), LEFT_IDLE_MS).unref();
    for (const [watched, { result, timer }] of this.#watches) {
      if (!watched.run?.dottedOrder.startsWith(`${dottedOrder}.`)) continue;
      clearTimer(timer);
      watched.wasUsed?.(result.deref());
      this.#start(watched, result, true);
    }
  }

  #register(): void {
    for (const [watched, result] of this.#fresh) {
      this.#collected.register(result, watched, watched);
      this.#start(watched, new WeakRef(result), this.#hasClientLeft(watched));
    }
    this.#fresh.clear();
  }

  #hasClientLeft({ run }: Watched): boolean {
    if (this.#left.size === 0 || run === undefined) return false;
    const path = run.dottedOrder.split('.');
    return path.some((_, end) => this.#left.has(path.slice(0, end).join('.')));
  }

  #start(watched: Watched, result: WeakRef<object>, hasClientLeft: boolean): void {
    const idleMaxMs = Math.min(hasClientLeft ? LEFT_IDLE_MS : DELAY_MAX_MS, idleMaxMsOf(watched));
    const timer = setTimer(() => this.#check(watched, result), idleMaxMs).unref();
    this.#watches.set(watched, { result, hasClientLeft, timer });
  }

  #check(watched: Watched, result: WeakRef<object>): void {
    if (watched.wasUsed?.(result.deref()) !== false) this.#watches.get(watched)?.timer.refresh();
    else this.#abandon(watched, `the result was not read for ${idleMaxMsOf(watched) / 1_000} s`);
  }

  #abandon(watched: Watched, reason: string): void {
    const hasClientLeft = this.#watches.get(watched)?.hasClientLeft === true;
    this.unwatch(watched);
    runInRootContext(() => watched.abandon(hasClientLeft ? undefined : reason));
  }
}

const idleMaxMsOf = ({ run }: Watched): number => run?.capture.streamIdleMs ?? STREAM_IDLE_MS;

export const abandonment: Abandonment = shared('abandonment', () => new Abandonment());

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
