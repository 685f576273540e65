import { diagnostics } from './diagnostics.ts';
import { types } from './node.ts';
import { messageOf } from './text.ts';

/**
 * Calls a function so that its errors do not reach the application: our own code, or a callback that only serves tracing.
 * Logs an error once per place and returns undefined.
 */
export function guard<Result>(place: string, work: () => Result): Result | undefined {
  try {
    return work();
  } catch (thrown) {
    reportFailure(place, thrown);
    return undefined;
  }
}

/** Logs an error that must not reach the application, once per place. For code that would pay for a closure per call. */
export function reportFailure(place: string, thrown: unknown): void {
  diagnostics.warnOnce(place, `${place} failed, the application is not affected: ${messageOf(thrown)}`);
}

/**
 * Marks a rejection as handled. A callback may return a promise where a value is expected. Nobody awaits that promise, so
 * its rejection would end the process.
 */
export function ignoreRejection(result: unknown): void {
  if (types.isPromise(result)) result.catch(() => {});
}
