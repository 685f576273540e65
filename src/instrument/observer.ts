import { guard } from '../base/guard.ts';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { makeSlot, type Slot } from '../base/slot.ts';
import { clearTimer, outside, setSoon, setTimer } from '../base/timers.ts';

export type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Receives the chunks that a consumer reads from a result, and the end of the reading. */
export interface StreamObserver {
  /** True during a step. A method that the step calls on the same result belongs to that step. */
  readonly isStepping: boolean;
  /** Calls a method of the result on behalf of the consumer, for example `next`. */
  step(method: Method, self: unknown, args: unknown[]): unknown;
  chunk(value: unknown): void;
  end(): void;
  fail(error: unknown): void;
  /** The consumer stopped before the end of the result. */
  cancel(): void;
  /** Watches this object from now on: no end will follow once it is collected. */
  watch(object: object): void;
  /** The engine reads the rest internally. No more chunks are reported, but the end is. */
  detach(): void;
}

/** Receives the outcome of a promise or of another thenable. */
export interface Settlement {
  /** Somebody called a method of the thenable. Its outcome may follow after the thenable itself is collected. */
  asked?(): void;
  fulfilled(value: unknown): void;
  fail(error: unknown): void;
}

/** The end of a run that depends on the consumer of a result. It must not reference that result. */
export interface Watched {
  /** Set whenever the consumer uses the result, and cleared by the watch. */
  wasTouched: boolean;
  readonly idleMaxMs: number;
  /** Called once, if no end will follow. */
  abandon(reason: string): void;
}

/** Reports results that are collected before their end, or that nobody uses for one to two times `idleMaxMs`. */
class Abandonment {
  /** Results of this turn of the event loop. Most generators end within it, and registering costs more than reading them. */
  readonly #fresh = new Map<Watched, object>();
  readonly #timers = new Map<Watched, NodeJS.Timeout>();
  readonly #collected = new FinalizationRegistry<Watched>((watched) =>
    this.#abandon(watched, 'the result was collected before its end'),
  );

  /** Starts to watch a result, in place of an earlier result of the same run. */
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
    if (!watched.wasTouched) {
      this.#abandon(watched, `the result was not used for ${watched.idleMaxMs / 1_000} s`);
      return;
    }
    watched.wasTouched = false;
    this.#timers.get(watched)?.refresh();
  }

  #abandon(watched: Watched, reason: string): void {
    this.unwatch(watched);
    outside(() => watched.abandon(reason));
  }
}

/** The watch of the process. */
export const abandonment: Abandonment = new Abandonment();

/**
 * Replaces a method on the object itself; a new property is not enumerable. For results, which belong to one call;
 * `replaceMethod` is for objects that live longer. Returns false if there is no such method or the object refuses; nothing
 * has changed then.
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

/** Like `replaceOwn`, if the method has already been read. */
export function defineOwn(object: object, key: PropertyKey, method: Method): boolean {
  try {
    return Reflect.defineProperty(object, key, { configurable: true, writable: true, value: method });
  } catch {
    return false;
  }
}

export function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** Calls whose runs follow one object. For further calls the object is a value. */
const CALLS_MAX = 16;

/** Follows an object, unless too many calls have. Each call replaces the methods of the object once more. */
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
