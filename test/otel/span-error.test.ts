import { expect, test } from 'vitest';
import { spanError } from '../../src/otel/span-error.ts';
import type { SpanLike } from '../../src/otel.ts';

const STACK = 'TypeError: no such tool\n    at call (file:///app.js:1:2)\n    at main (file:///app.js:3:4)';
const FRAMES = STACK.slice(STACK.indexOf('\n'));

/** What `recordException` leaves in a span. */
const exception = (message?: string, type?: string, stacktrace?: string) => ({
  name: 'exception',
  time: [0, 0] as const,
  attributes: { 'exception.message': message, 'exception.type': type, 'exception.stacktrace': stacktrace },
});

/** A span that has failed. */
const failed = (given: { message?: string; type?: string; http?: object; events?: SpanLike['events'] }, code = 2) =>
  ({
    status: { code, ...(given.message !== undefined && { message: given.message }) },
    attributes: { ...(given.type !== undefined && { 'error.type': given.type }), ...given.http },
    events: given.events ?? [],
  }) as unknown as SpanLike;

const thrown = exception('no such tool', 'TypeError', STACK);

test.each<[string, SpanLike, string]>([
  ['nothing but its status', failed({}), 'Error'],
  ['a message', failed({ message: 'busy' }), 'busy'],
  ['a type', failed({ type: '503' }), '503'],
  ['a type and a message', failed({ type: 'TimeoutError', message: 'busy' }), 'TimeoutError: busy'],
  ['a message with its type', failed({ type: 'TimeoutError', message: 'TimeoutError: x' }), 'TimeoutError: x'],
  ['a status of HTTP', failed({ http: { 'http.response.status_code': 400 } }), 'HTTP 400'],
  ['the same as its type', failed({ type: '503', http: { 'http.status_code': 503 } }), 'HTTP 503'],
  ['one and a message', failed({ message: 'busy', http: { 'http.status_code': 429 } }), 'HTTP 429: busy'],
  ['one that is no failure', failed({ message: 'cut off', http: { 'http.status_code': 399 } }), 'cut off'],
  ['one and another type', failed({ type: 'Busy', http: { 'http.status_code': 429 } }), 'Busy'],
  ['an exception', failed({ events: [thrown] }), `TypeError: no such tool${FRAMES}`],
  [
    'an exception and its message',
    failed({ message: 'no such tool', events: [thrown] }),
    `TypeError: no such tool${FRAMES}`,
  ],
  [
    'an exception below another message',
    failed({ message: 'the answer failed', events: [thrown] }),
    `the answer failed\nCaused by: TypeError: no such tool${FRAMES}`,
  ],
  ['several exceptions', failed({ events: [exception('first', 'Error'), thrown] }), `TypeError: no such tool${FRAMES}`],
  ['an exception without a stack', failed({ events: [exception('no', 'KeyError')] }), 'KeyError: no'],
  ['an exception without a type', failed({ type: 'E', events: [exception('no')] }), 'E: no'],
  [
    'a stack of another language',
    failed({ events: [exception('no', 'KeyError', 'Traceback:\n  File "a.py"')] }),
    'KeyError: no\nTraceback:\n  File "a.py"',
  ],
])('a failed span with %s is told by it', (_, span, error) => {
  expect(spanError(span)).toBe(error);
});

test('a span that says by the words of Langfuse alone that it has failed has an error', () => {
  const attributes = { 'langfuse.observation.level': 'ERROR', 'langfuse.observation.status_message': 'no tune' };
  expect(spanError({ ...failed({}, 0), attributes })).toBe('no tune');
});

test.each([0, 1, 2])('an exception on a span of langsmith is its error, with the status %j too', (code) => {
  const events = [
    exception('TypeError: no such tool\n    at call', 'Error', 'Error: TypeError: no such tool\n    at own'),
  ];
  const span = { ...failed({ events }, code), attributes: { 'langsmith.traceable': 'true' } };
  expect(spanError(span)).toBe('TypeError: no such tool\n    at call');
  expect(spanError({ ...span, events: [] })).toBe(code === 2 ? 'Error' : undefined);
});

test.each([0, 1])('an exception on a span of status %j is no error', (code) => {
  expect(spanError(failed({ events: [thrown] }, code))).toBeUndefined();
});
