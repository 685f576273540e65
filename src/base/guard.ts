import { types } from '../platform/node.ts';
import { diagnostics } from './diagnostics.ts';
import { messageOf } from './text.ts';

/**
 * Calls `work` and returns its result. Returns undefined if `work` throws, so that errors in tracing code never reach
 * the application. Only the first error per `place` is logged.
 */
export function guard<Result>(place: string, work: () => Result): Result | undefined {
  try {
    return work();
  } catch (thrown) {
    reportFailure(place, thrown);
    return undefined;
  }
}

export function ignoreErrors<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch {
    return undefined;
  }
}

/**
 * Logs an error like `guard`. Used in performance-critical code, where creating a closure for `guard` would be too
 * slow.
 */
export function reportFailure(place: string, thrown: unknown): void {
  diagnostics.warnOnce(place, `${place} failed, the application is not affected: ${messageOf(thrown)}`);
}

/** Ignores the rejection if a callback returned a promise. An unhandled rejection would crash the process. */
export function ignoreRejection(result: unknown): void {
  if (types.isPromise(result)) result.catch(() => {});
}
