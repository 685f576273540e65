import { diagnostics } from './diagnostics.ts';
import { types } from './node.ts';
import { messageOf } from './text.ts';

/**
 * Calls `work` and returns the result. If `work` throws, logs only the first error of each `place` and returns
 * undefined, so that an error in tracing code or in a tracing callback does not reach the application.
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
 * Logs only the first tracing error of each `place`. Used in a `catch` block where a closure for `guard` would be too
 * slow.
 */
export function reportFailure(place: string, thrown: unknown): void {
  diagnostics.warnOnce(place, `${place} failed, the application is not affected: ${messageOf(thrown)}`);
}

/**
 * Marks the rejection of a promise as handled. A callback may return a promise instead of a value, and an unhandled
 * rejection of the promise would end the process.
 */
export function ignoreRejection(result: unknown): void {
  if (types.isPromise(result)) result.catch(() => {});
}
