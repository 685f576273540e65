import { backoffMs, isTransient, parseRetryAfter } from '../http/retry.ts';
import type { FailedAnswer } from './api-error.ts';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 8_000;

/** Errors of connections that were never made. */
const UNSENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** How an attempt failed. */
export type AttemptFailure =
  | { readonly kind: 'answer'; readonly answer: Pick<FailedAnswer, 'status' | 'headers'> }
  | { readonly kind: 'no answer'; readonly code: string | undefined; readonly isLasting: boolean };

/**
 * Milliseconds until a call may be tried again; undefined where it may not. What makes something (`isIdempotent` false) is tried
 * again only where the service cannot have begun with it: without a connection, or answered by 429 (RFC 6585, 4).
 * `attempt` counts from 0, `random` from 0 to 1.
 */
export function retryDelayMs(
  failure: AttemptFailure,
  isIdempotent: boolean,
  attempt: number,
  random: number,
  nowMs: number,
): number | undefined {
  const otherwise = backoffMs(attempt, random, FIRST_DELAY_MS, LONGEST_DELAY_MS);
  if (failure.kind === 'no answer') {
    const isUnsent = failure.code !== undefined && UNSENT.has(failure.code);
    return !failure.isLasting && (isIdempotent || isUnsent) ? otherwise : undefined;
  }
  const { status, headers } = failure.answer;
  if (!isTransient(status) || !(isIdempotent || status === 429)) return undefined;
  const [after, date] = [headers['retry-after'], headers.date];
  return parseRetryAfter(textOf(after), nowMs, textOf(date)) ?? otherwise;
}

function textOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}
