import { AsyncResource, clearTimeout, setImmediate, setTimeout } from './node.ts';
import { suppressed } from './suppress-tracing.ts';

// Saves the clock functions at load time, so that an application's fake timers do not affect the library.
export const wallNowMs: () => number = Date.now;
export const monotonicNowMs: () => number = performance.now.bind(performance);

export const clearTimer: (timer: NodeJS.Timeout | undefined) => void = clearTimeout;

/**
 * An `AsyncResource` without an async context. A new `AsyncResource` captures the current context, and Node has no
 * function that leaves all contexts. The loop below therefore removes the captured context. The property names depend
 * on the Node version.
 */
const root = new AsyncResource('runspan');
for (const key of Object.getOwnPropertySymbols(root)) {
  if (key.description === 'kResourceStore' || key.description === 'context_frame') Reflect.set(root, key, undefined);
}

/** Maximum delay for `setTimeout`. Timers with a longer delay fire immediately. */
export const DELAY_MAX_MS: number = 2 ** 31 - 1;

/**
 * Calls a function outside any async context, with tracing suppressed. Delivery often starts inside an application's
 * call. In the call's async context, the call's data would stay in memory. Delivery's background work starts here or in
 * one of the timers below, so other tracers record none of its requests, files and modules.
 */
export function runInRootContext<Result, Args extends unknown[]>(fn: (...args: Args) => Result, ...args: Args): Result {
  return root.runInAsyncScope(suppressed<Result>, undefined, () => fn(...args));
}

/**
 * Like `setTimeout`, but the callback runs as in `runInRootContext`. The timer keeps the process alive until `unref` is called. A
 * negative `ms` counts as 0, because Node 24 warns about negative delays.
 */
export function setTimer(callback: () => void, ms: number): NodeJS.Timeout {
  return runInRootContext(() => setTimeout(callback, Math.max(0, ms)));
}

/**
 * Like `setImmediate`, but the callback runs as in `runInRootContext`. The process stays alive until the callback has run, unless
 * `unref` is called.
 */
export function setSoon(callback: () => void): NodeJS.Immediate {
  return runInRootContext(() => setImmediate(callback));
}

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
