import { shared } from '../base/shared.ts';

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
  readonly acs?: { withScope?<Result>(fn: (scope: { setSDKProcessingMetadata?(_: object): void }) => Result): Result };
}

const ownWork = shared('ownWork', () => ({ depth: 0 }));

/** Whether the library's own work is on the call stack. A span or run that starts now is not the application's. */
export function isOwnWork(): boolean {
  return ownWork.depth > 0;
}

/**
 * Calls `fn`, which is the library's own work, for example a request or a write to disk. OpenTelemetry and Sentry record
 * nothing of `fn`, nor of the asynchronous work that `fn` starts. Runs and spans that start before `fn` returns are also
 * not recorded as runs, even if OpenTelemetry has no context manager and cannot suppress them. Otherwise, writing the
 * run of a traced file operation to disk would start the next run, without end.
 */
export function withoutTracing<Result>(fn: () => Result): Result {
  ownWork.depth++;
  try {
    return suppressed(fn);
  } finally {
    ownWork.depth--;
  }
}

/** Calls `fn` in a context in which OpenTelemetry and Sentry record nothing. */
export function suppressed<Result>(fn: () => Result): Result {
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
