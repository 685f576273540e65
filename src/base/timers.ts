import { AsyncResource } from 'node:async_hooks';
import { DELAY_MAX_MS } from './limits.ts';

// Read once, so that fake timers installed by a test of the application do not stop delivery.
const { setTimeout: setTimeoutOfNode, setImmediate: setImmediateOfNode } = globalThis;
export const clearTimer: (timer: NodeJS.Timeout | undefined) => void = globalThis.clearTimeout;

/**
 * A resource without async context. A new resource inherits the current context, and the library may be imported within
 * a request. Node has no function that exits all contexts at once, so the context is removed from the resource itself.
 * Depending on the Node version, the context is stored there in one property per AsyncLocalStorage or in a single
 * property shared by all of them.
 */
const root = new AsyncResource('runspan');
for (const key of Object.getOwnPropertySymbols(root)) {
  if (key.description === 'kResourceStore' || key.description === 'context_frame') Reflect.set(root, key, undefined);
}

/**
 * Calls a function outside any async context. Whichever call the application makes first starts the background work. In
 * the context of that call, the work would retain the data of its request and be traced as part of it.
 */
export function outside<Result, Args extends unknown[]>(fn: (...args: Args) => Result, ...args: Args): Result {
  return root.runInAsyncScope(fn, undefined, ...args);
}

/** `setTimeout`, outside any async context. The timer keeps the process alive until `unref` is called on it. */
export function setTimer(callback: () => void, ms: number): NodeJS.Timeout {
  return root.runInAsyncScope(setTimeoutOfNode<[]>, undefined, callback, ms);
}

/** `setImmediate`, outside any async context. It keeps the process alive until `unref` is called on it. */
export function setSoon(callback: () => void): NodeJS.Immediate {
  return root.runInAsyncScope(setImmediateOfNode<[]>, undefined, callback);
}

/** Waits, without keeping the process alive unless `holdsProcess`. Rejects with the signal's reason if it is aborted. */
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

/** The part of OpenTelemetry's registered context manager that `withoutTracing` uses. */
interface ContextManager {
  active(): { setValue(key: symbol, value: unknown): object };
  with<Result>(context: object, fn: () => Result): Result;
}

// All copies of OpenTelemetry's API 1.x share this registry, and its SDK keeps the flag of suppressTracing() under this key.
// Reading both here needs no OpenTelemetry package.
const API = Symbol.for('opentelemetry.js.api.1');
export const SUPPRESS_TRACING: symbol = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING');

/** Calls `fn` so that no OpenTelemetry instrumentation traces its requests. Our own HTTP never becomes a span. */
export function withoutTracing<Result>(fn: () => Result): Result {
  const manager = (globalThis as { [API]?: { context?: ContextManager } })[API]?.context;
  if (manager === undefined) return fn();
  return manager.with(manager.active().setValue(SUPPRESS_TRACING, true), fn);
}
