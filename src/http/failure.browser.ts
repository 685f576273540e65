import { NoResponseError, SetupError } from './errors.ts';
import type * as failure from './failure.ts';

/** Browsers do not report error codes for failed requests. */
export const failureOf = ((thrown: unknown) => {
  const isLasting = thrown instanceof SetupError;
  const isKnown = isLasting || thrown instanceof NoResponseError;
  return {
    detail: isKnown ? thrown.message : 'the request failed for an unknown reason',
    isLasting,
    isUnsent: isLasting,
  };
}) as typeof failure.failureOf;
