import { AsyncResource } from 'node:async_hooks';
import { DELAY_MAX_MS } from './limits.ts';

// Taken once, so that fake timers installed by a test of the application do not stop delivery.
const { setTimeout: setTimeoutOfNode, clearTimeout: clearTimeoutOfNode, setImmediate: setImmediateOfNode } = globalThis;

/**
 * A resource without async context. The library may be imported within a request, whose context a new resource inherits, and
 * Node has no call that leaves all contexts: the context is a property for each AsyncLocalStorage, or one for all of them.
 */
const root = new AsyncResource('runspan');
for (const key of Object.getOwnPropertySymbols(root)) {
  if (key.description === 'kResourceStore' || key.description === 'context_frame') Reflect.set(root, key, undefined);
}

/**
 * Calls a function outside of any async context. Background work is started by whichever call of the application comes
 * first; in its context the work would hold on to the data of that request, and be traced as a part of it.
 */
export function outside<Result, Args extends unknown[]>(fn: (...args: Args) => Result, ...args: Args): Result {
  return root.runInAsyncScope(fn, undefined, ...args);
}

/** `setTimeout`, outside of any async context. The timer holds the process until `unref` is called on it. */
export function setTimer(callback: () => void, ms: number): NodeJS.Timeout {
  return outside(() => setTimeoutOfNode(callback, ms));
}

export function clearTimer(timer: NodeJS.Timeout | undefined): void {
  clearTimeoutOfNode(timer);
}

/** `setImmediate`, outside of any async context. It holds the process until `unref` is called on it. */
export function setSoon(callback: () => void): NodeJS.Immediate {
  return outside(() => setImmediateOfNode(callback));
}

/** Waits, without keeping the process alive unless `holdsProcess`; rejects with the signal's reason when it is aborted. */
export function delay(ms: number, signal: AbortSignal | undefined, holdsProcess = false): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimer(timer);
      reject(signal?.reason);
    };
    const over = (): void => {
      signal?.removeEventListener('abort', abort);
      resolve();
    };
    const timer = setTimer(over, Math.min(ms, DELAY_MAX_MS));
    if (!holdsProcess) timer.unref();
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}
