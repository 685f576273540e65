import { diagnostics } from './diagnostics.ts';
import { messageOf } from './text.ts';

/**
 * Runs work of ours, or a callback of the application that serves tracing alone, so that nothing it throws reaches the
 * application's own code: the failure is told once per place, and `undefined` takes the place of the result.
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
