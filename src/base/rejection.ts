import { types } from 'node:util';

/**
 * Whatever a callback of the application answered with that serves tracing alone: it may be a promise, and the rejection of
 * one that nobody waits for would end the process.
 */
export function ignoreRejection(answer: unknown): void {
  if (types.isPromise(answer)) answer.catch(() => {});
}
