import type { HttpResponse } from './transport.ts';

const RETRY_AFTER_MIN_MS = 1_000;
const RETRY_AFTER_MAX_MS = 300_000;

const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504, 507]);

/** Whether a retry may succeed after this status. Statuses from 520 are not standardized and count as transient. */
export function isTransient(status: number): boolean {
  return TRANSIENT_STATUSES.has(status) || status < 200 || status >= 520;
}

/** Returns the delay that the headers of a response ask for, in milliseconds. */
export function retryAfterMs(headers: HttpResponse['headers'], nowMs: number): number | undefined {
  const [after, date] = [headers['retry-after'], headers.date].map((text) => [text].flat()[0]);
  return parseRetryAfter(after, nowMs, date);
}

/**
 * Parses a `Retry-After` header with whole seconds or an HTTP date (RFC 9110, 10.2.3). Returns the delay in
 * milliseconds, between 1 second and 5 minutes. Returns undefined if the header is missing or malformed. A date is
 * compared with the response's `Date` header, because the clocks of client and service may differ.
 */
export function parseRetryAfter(header: string | undefined, nowMs: number, serverDate?: string): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d+$/.test(text)) return clamped(Number(text) * 1_000);
  // An HTTP date starts with a weekday and ends with GMT. V8 would also parse "-5" and "1.5" as dates.
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun).*GMT$/.test(text)) return undefined;
  const until = Date.parse(text);
  if (Number.isNaN(until)) return undefined;
  const serverNow = Date.parse(serverDate ?? '');
  return clamped(until - (Number.isNaN(serverNow) ? nowMs : serverNow));
}

/** Returns the delay before a retry, in milliseconds: exponential back-off with full jitter. `attempt` starts at 0. */
export function backoffMs(attempt: number, random: number, firstMs: number, longestMs: number): number {
  return Math.floor(random * Math.min(longestMs, firstMs * 2 ** Math.min(attempt, 30)));
}

function clamped(ms: number): number {
  return Math.min(RETRY_AFTER_MAX_MS, Math.max(RETRY_AFTER_MIN_MS, ms));
}

/** Delays between requests while the service refuses every request, in milliseconds. The last delay repeats. */
const PROBE_DELAYS_MS = [1_000, 5_000, 30_000, 120_000, 300_000, 600_000] as const;

export function probeDelayMs(refusals: number, longestMs: number): number {
  return Math.min(longestMs, PROBE_DELAYS_MS[refusals] ?? longestMs);
}
