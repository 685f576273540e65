import { diagnostics } from './diagnostics.ts';
import { types } from './node.ts';
import { messageOf } from './text.ts';

/**
 * Calls `work` and returns its result. If `work` throws, returns undefined, so that an error in tracing code or in a
 * tracing callback does not reach the application. Only the first error for each `place` is logged.
 */
export function guard<Result>(place: string, work: () => Result): Result | undefined {
  try {
    return work();
  } catch (thrown) {
    reportFailure(place, thrown);
    return undefined;
  }
}

/**
 * Logs an error like `guard`. Called from `catch` blocks in hot code, where a closure for `guard` would be too slow.
 */
export function reportFailure(place: string, thrown: unknown): void {
  diagnostics.warnOnce(place, `${place} failed, the application is not affected: ${messageOf(thrown)}`);
}

/** Ignores the rejection of a promise that a callback returned. An unhandled rejection would end the process. */
export function ignoreRejection(result: unknown): void {
  if (types.isPromise(result)) result.catch(() => {});
}
