import { expect, test } from 'vitest';
import { type AttemptFailure, retryDelayMs } from '../../src/clients/retry-delay.ts';

const answered = (status: number, headers = {}): AttemptFailure => ({ kind: 'answer', answer: { status, headers } });
const broken = (code: string | undefined, isLasting = false): AttemptFailure => ({
  kind: 'no answer',
  code,
  isLasting,
});
const NOW = Date.UTC(2026, 10, 20);

test.each<[string, AttemptFailure, boolean, boolean]>([
  ['408', answered(408), true, false],
  ['429', answered(429), true, true],
  ['500', answered(500), true, false],
  ['502', answered(502), true, false],
  ['503', answered(503), true, false],
  ['504', answered(504), true, false],
  ['599', answered(599), true, false],
  ['301', answered(301), false, false],
  ['400', answered(400), false, false],
  ['401', answered(401), false, false],
  ['404', answered(404), false, false],
  ['409', answered(409), false, false],
  ['422', answered(422), false, false],
  ['501', answered(501), false, false],
  ['a port where nothing listens', broken('ECONNREFUSED'), true, true],
  ['an unknown host', broken('ENOTFOUND'), true, true],
  ['a host that cannot be looked up', broken('EAI_AGAIN'), true, true],
  ['a connection that takes too long', broken('UND_ERR_CONNECT_TIMEOUT'), true, true],
  ['a reset', broken('ECONNRESET'), true, false],
  ['a broken pipe', broken('EPIPE'), true, false],
  ['a closed socket', broken('UND_ERR_SOCKET'), true, false],
  ['an unknown break', broken(undefined), true, false],
  ['a wrong certificate', broken('CERT_HAS_EXPIRED', true), false, false],
])('after %s a call is tried again: idempotent %#', (_, failure, idempotent, other) => {
  const again = [true, false].map((isIdempotent) => retryDelayMs(failure, isIdempotent, 0, 0.5, NOW) !== undefined);
  expect(again).toEqual([idempotent, other]);
});

test.each([
  [0, 0, 0],
  [0, 0.999, 499],
  [1, 1, 1_000],
  [2, 1, 2_000],
  [3, 0.5, 2_000],
  [4, 1, 8_000],
  [5, 1, 8_000],
  [99, 1, 8_000],
])('the wait after attempt %i with the random number %d is %i ms', (attempt, random, ms) => {
  expect(retryDelayMs(broken('ECONNRESET'), true, attempt, random, NOW)).toBe(ms);
  expect(retryDelayMs(answered(503), true, attempt, random, NOW)).toBe(ms);
});

test.each<[Record<string, string | string[]>, number]>([
  [{ 'retry-after': '7' }, 7_000],
  [{ 'retry-after': '0' }, 1_000],
  [{ 'retry-after': '86400' }, 300_000],
  [{ 'retry-after': 'Fri, 20 Nov 2026 00:00:09 GMT' }, 9_000],
  [{ 'retry-after': 'Fri, 20 Nov 2026 00:00:09 GMT', date: 'Fri, 20 Nov 2026 00:00:04 GMT' }, 5_000],
  [{ 'retry-after': 'soon' }, 250],
  [{ 'retry-after': ['7', '8'] }, 250],
])('the answer of %j is waited for %i ms', (headers, ms) => {
  expect(retryDelayMs(answered(429, headers), false, 0, 0.5, NOW)).toBe(ms);
});
