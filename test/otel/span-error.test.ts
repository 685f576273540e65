import { expect, test } from 'vitest';
import type { SpanLike } from '#src/otel.ts';
import { mapped } from './mapped.ts';

const STACK = 'TypeError: no such tool\n    at call (file:///app.js:1:2)\n    at main (file:///app.js:3:4)';

const exception = (message?: string, type?: string, stacktrace?: string) => ({
  name: 'exception',
  time: [0, 0] as const,
  attributes: { 'exception.message': message, 'exception.type': type, 'exception.stacktrace': stacktrace },
});

type Failure = { message?: string; attributes?: Record<string, unknown>; events?: SpanLike['events'] };

const errorOf = ({ message, attributes = {}, events = [] }: Failure, code = 2) =>
  mapped(attributes, { status: { code, ...(message !== undefined && { message }) }, events }).error;

const thrown = exception('no such tool', 'TypeError', STACK);

const TYPE = 'error.type';
const STATUS = 'http.response.status_code';
const OLD_STATUS = 'http.status_code';

test.each<[string, Failure, string]>([
  ['no details', {}, 'Error'],
  ['a message', { message: 'busy' }, 'busy'],
  ['a type', { attributes: { [TYPE]: '503' } }, '503'],
  ['a type and a message', { message: 'busy', attributes: { [TYPE]: 'TimeoutError' } }, 'TimeoutError: busy'],
  ['the type in the message', { message: 'Late: x', attributes: { [TYPE]: 'Late' } }, 'Late: x'],
  ['an HTTP status', { attributes: { [STATUS]: 400 } }, 'HTTP 400'],
  ['an HTTP status as its type', { attributes: { [TYPE]: '503', [OLD_STATUS]: 503 } }, 'HTTP 503'],
  ['an HTTP status and a message', { message: 'busy', attributes: { [OLD_STATUS]: 429 } }, 'HTTP 429: busy'],
  ['an HTTP status below 400', { message: 'cut off', attributes: { [OLD_STATUS]: 399 } }, 'cut off'],
  ['an HTTP status and another type', { attributes: { [TYPE]: 'Busy', [OLD_STATUS]: 429 } }, 'Busy'],
  ['an exception', { events: [thrown] }, STACK],
  ['an exception with its message', { message: 'no such tool', events: [thrown] }, STACK],
  ['an exception and another message', { message: 'busy', events: [thrown] }, `busy\nCaused by: ${STACK}`],
  ['several exceptions', { events: [exception('first', 'Error'), thrown] }, STACK],
  ['an exception without a stack', { events: [exception('no', 'KeyError')] }, 'KeyError: no'],
  ['an exception without a type', { attributes: { [TYPE]: 'E' }, events: [exception('no')] }, 'E: no'],
  [
    'a stack of another language',
    { events: [exception('no', 'KeyError', 'Traceback:\n  File "a.py"')] },
    'KeyError: no\nTraceback:\n  File "a.py"',
  ],
])('a failed span with %s has an error', (_, failure, error) => {
  expect(errorOf(failure)).toBe(error);
});

test.each([
  ['ERROR', 'no tune', 'no tune'],
  ['ERROR', undefined, 'Error'],
  ['WARNING', 'no tune', undefined],
])('a span with the Langfuse level %s and the status message %s has the error %s', (level, message, error) => {
  const attributes = { 'langfuse.observation.level': level, 'langfuse.observation.status_message': message };
  expect(errorOf({ attributes }, 0)).toBe(error);
});

test.each([0, 1, 2])('a span of LangSmith with the status %j has the error of its exception', (code) => {
  const message = 'TypeError: no such tool\n    at call';
  const events = [exception(message, 'Error', `Error: ${message}\n    at own`)];
  const attributes = { 'langsmith.traceable': 'true' };
  expect(errorOf({ attributes, events }, code)).toBe(message);
  expect(errorOf({ attributes }, code)).toBe(code === 2 ? 'Error' : undefined);
});

test.each([0, 1])('a span with an exception and the status %j has no error', (code) => {
  expect(errorOf({ events: [thrown] }, code)).toBeUndefined();
});

test.each<[string, Failure, string | undefined]>([
  ['the type AbortError', { attributes: { [TYPE]: 'AbortError' } }, 'cancelled'],
  ['the type APIUserAbortError', { attributes: { [TYPE]: 'APIUserAbortError' } }, 'cancelled'],
  ['an exception of the type AbortError', { events: [exception('gone', 'AbortError')] }, 'cancelled'],
  ['a DOMException', { events: [exception('gone', '20', 'AbortError: gone\n    at a (b.js:1:2)')] }, 'cancelled'],
  ['a timeout', { events: [exception('late', '23', 'TimeoutError: late\n    at a (b.js:1:2)')] }, undefined],
  ['a late abort', { attributes: { [TYPE]: 'AbortError' }, events: [exception('late', 'TimeoutError')] }, undefined],
  ['the message of an abort', { message: 'Error: gone', events: [exception('gone', 'AbortError')] }, 'cancelled'],
  ['an abort before its failure', { message: 'no quota', events: [exception('gone', 'AbortError')] }, undefined],
  ['a message about an abort', { message: 'AbortError: gone', events: [exception('gone', 'Error')] }, undefined],
])('a failed span with %s has the end reason of its error', (_, { message, attributes = {}, events = [] }, reason) => {
  const failed = mapped(attributes, { status: { code: 2, ...(message && { message }) }, events });
  const succeeded = mapped(attributes, { status: { code: 0 }, events });
  expect([failed.endReason, succeeded.endReason]).toEqual([reason, undefined]);
});
