import { DELAY_MAX_MS } from './limits.ts';
import { AsyncResource, clearTimeout, setImmediate, setTimeout } from './node.ts';

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

/**
 * Calls a function outside any async context. Delivery often starts inside an application's call. In the call's async
 * context, delivery requests would be traced, and the call's data would stay in memory.
 */
export function outside<Result, Args extends unknown[]>(fn: (...args: Args) => Result, ...args: Args): Result {
  return root.runInAsyncScope(fn, undefined, ...args);
}

/**
 * Like `setTimeout`, but outside any async context. The timer keeps the process alive until `unref` is called. A
 * negative `ms` counts as 0, because Node 24 warns about negative delays.
 */
export function setTimer(callback: () => void, ms: number): NodeJS.Timeout {
  return root.runInAsyncScope(setTimeout<[]>, undefined, callback, Math.max(0, ms));
}

/**
 * Like `setImmediate`, but outside any async context. The process stays alive until the callback has run, unless
 * `unref` is called.
 */
export function setSoon(callback: () => void): NodeJS.Immediate {
  return root.runInAsyncScope(setImmediate<[]>, undefined, callback);
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

/** The methods of OpenTelemetry's context manager that this file uses. */
interface ContextManager {
  active(): { setValue(key: symbol, value: unknown): object };
  with<Result>(context: object, fn: () => Result): Result;
}

/** The global symbol under which all copies of the OpenTelemetry API 1.x share their state. */
export const OPENTELEMETRY: unique symbol = Symbol.for('opentelemetry.js.api.1');

export const SUPPRESS_TRACING: symbol = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING');

/** The global registry that all copies of Sentry's packages share. `acs` is Sentry's async context strategy. */
interface SentryRegistry {
  readonly version: string;
  readonly [version: string]: unknown;
}

interface SentryStrategy {
  readonly acs?: { withScope?<Result>(fn: (scope: SentryScope) => Result): Result };
}

interface SentryScope {
  setSDKProcessingMetadata?(metadata: object): void;
}

/** Calls `fn` with OpenTelemetry and Sentry tracing suppressed. Used for the library's own requests. */
export function withoutTracing<Result>(fn: () => Result): Result {
  const manager = (globalThis as { [OPENTELEMETRY]?: { context?: ContextManager } })[OPENTELEMETRY]?.context;
  if (manager === undefined) return withoutSentry(fn);
  return manager.with(manager.active().setValue(SUPPRESS_TRACING, true), () => withoutSentry(fn));
}

/** Suppresses Sentry tracing through Sentry's registry. Sentry 11 ignores OpenTelemetry's context. */
function withoutSentry<Result>(fn: () => Result): Result {
  const registry = (globalThis as { __SENTRY__?: SentryRegistry }).__SENTRY__;
  const { acs } = (registry?.[registry.version] ?? {}) as SentryStrategy;
  if (acs?.withScope === undefined) return fn();
  return acs.withScope((scope) => {
    scope.setSDKProcessingMetadata?.({ __SENTRY_SUPPRESS_TRACING__: true });
    return fn();
  });
}
