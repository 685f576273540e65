import { guard } from '../base/guard.ts';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { makeSlot, type Slot } from '../base/slot.ts';
import { clearTimer, outside, setSoon, setTimer } from '../base/timers.ts';

export type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Receives the chunks that a consumer reads from a result, and the end, error or cancellation of the result. */
export interface StreamObserver {
  /** True while `step` runs. Calls that the step makes on the same result are not observed separately. */
  readonly isStepping: boolean;
  /** Calls a method of the result on behalf of the consumer, for example `next`. */
  step(method: Method, self: unknown, args: unknown[]): unknown;
  chunk(value: unknown): void;
  end(): void;
  fail(error: unknown): void;
  /** Called when the consumer stops reading before the end of the result. */
  cancel(): void;
  /** Starts to watch a result that the consumer may abandon before the end. */
  watch(object: object): void;
  /** Called when the engine starts to read the result internally. Only the end is reported after this call. */
  detach(): void;
}

/** Receives the outcome of a promise or thenable. */
export interface Settlement {
  /** Called when a method of the thenable is called. The outcome may arrive after the thenable is garbage-collected. */
  asked?(): void;
  fulfilled(value: unknown): void;
  fail(error: unknown): void;
}

/** State of a watched result. Must not reference the result, because a reference would prevent garbage collection. */
export interface Watched {
  /** Set when the consumer uses the result. Cleared by each check for an unused result. */
  wasTouched: boolean;
  readonly idleMaxMs: number;
  /** Called once if the result is abandoned before its end. */
  abandon(reason: string): void;
}

/** Reports results that are garbage-collected before their end, or not used for one to two times `idleMaxMs`. */
class Abandonment {
  /** Results of the current turn of the event loop. Most generators end before the turn ends, and need no timer. */
  readonly #fresh = new Map<Watched, object>();
  readonly #timers = new Map<Watched, NodeJS.Timeout>();
  readonly #collected = new FinalizationRegistry<Watched>((watched) =>
    this.#abandon(watched, 'the result was collected before its end'),
  );

  /** Starts to watch a result, and stops watching the previous result of `watched`. */
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

/** Watches all results of the process. */
export const abandonment: Abandonment = new Abandonment();

/**
 * Replaces a method on the object itself. A new property is not enumerable. Intended for results, which belong to one
 * call. Use `replaceMethod` for long-lived objects. Returns false and changes nothing if the method does not exist or
 * cannot be replaced.
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

/** Sets a method on the object itself. A new property is not enumerable. Returns false if the object refuses. */
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

/** Maximum number of calls that follow the same object. Further calls do not follow the object. */
const CALLS_MAX = 16;

/** Follows an object, unless `CALLS_MAX` calls already do. Each call wraps the methods of the object again. */
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
