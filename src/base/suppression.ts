/** What we use of the context manager that an OpenTelemetry set-up has registered. */
interface ContextManager {
  active(): { setValue(key: symbol, value: unknown): object };
  with<Result>(context: object, fn: () => Result): Result;
}

// Both are shared by every copy and version of OpenTelemetry's API 1.x: its global registry, and the key under which the
// SDK's suppressTracing() keeps its flag. Reading them here needs no OpenTelemetry package to be installed.
const API = Symbol.for('opentelemetry.js.api.1');
export const SUPPRESS_TRACING: symbol = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING');

/** Calls `fn` so that no OpenTelemetry instrumentation traces what it sends: our own HTTP never becomes a span. */
export function withoutTracing<Result>(fn: () => Result): Result {
  const manager = (globalThis as { [API]?: { context?: ContextManager } })[API]?.context;
  if (manager === undefined) return fn();
  return manager.with(manager.active().setValue(SUPPRESS_TRACING, true), fn);
}
