import { ApiError } from './api-error.ts';

/** Passes over the 404 to a deletion that was sent again: the first has done its work. Anything else is thrown. */
export function ifNotGone(thrown: unknown): void {
  if (!(thrown instanceof ApiError && thrown.status === 404 && thrown.request.attempts > 1)) throw thrown;
}
