import { AsyncLocalStorage } from 'node:async_hooks';
import { DELAY_MAX_MS } from './limits.ts';

// Taken once, so that fake timers installed by a test of the application do not stop delivery.
const { setTimeout: setTimeoutOfNode, clearTimeout: clearTimeoutOfNode, setImmediate: setImmediateOfNode } = globalThis;

/**
 * Calls a function outside of any async context. What works in the background is started by whichever call of the
 * application comes first; in its context it would hold on to that call's request, and count what it calls as part of it.
 */
export const outside: <Result, Args extends unknown[]>(fn: (...args: Args) => Result, ...args: Args) => Result =
  AsyncLocalStorage.snapshot();

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
