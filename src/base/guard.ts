import { diagnostics } from './diagnostics.ts';
import { types } from './node.ts';
import { messageOf } from './text.ts';

/**
 * Calls `work` and returns the result. If `work` throws, logs the error once per place and returns undefined. Errors of
 * tracing and of tracing callbacks therefore do not reach the application.
 */
export function guard<Result>(place: string, work: () => Result): Result | undefined {
  try {
    return work();
  } catch (thrown) {
    reportFailure(place, thrown);
    return undefined;
  }
}

/** Logs a tracing error once per place. Replaces `guard` in code where a closure for each call would be too slow. */
export function reportFailure(place: string, thrown: unknown): void {
  diagnostics.warnOnce(place, `${place} failed, the application is not affected: ${messageOf(thrown)}`);
}

/**
 * Marks the rejection of a promise as handled. A callback may return a promise although a value is expected. An
 * unhandled rejection of this promise would end the process.
 */
export function ignoreRejection(result: unknown): void {
  if (types.isPromise(result)) result.catch(() => {});
}
