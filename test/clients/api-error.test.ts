import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { RunspanError } from '../../src/base/errors.ts';
import { ApiError, ConnectionError, InvalidAnswerError, TimeoutError } from '../../src/clients/api-error.ts';

const REQUEST = { method: 'GET', url: 'https://host/v2/things/1', attempts: 2 };

function errorOf(status: number, body: unknown, headers = {}): ApiError {
  return new ApiError(REQUEST, { status, headers, text: typeof body === 'string' ? body : JSON.stringify(body) });
}

test.each([
  [400, 'RUNSPAN_BAD_REQUEST'],
  [401, 'RUNSPAN_UNAUTHENTICATED'],
  [403, 'RUNSPAN_FORBIDDEN'],
  [404, 'RUNSPAN_NOT_FOUND'],
  [409, 'RUNSPAN_CONFLICT'],
  [422, 'RUNSPAN_UNPROCESSABLE'],
  [429, 'RUNSPAN_RATE_LIMITED'],
  [500, 'RUNSPAN_SERVER_ERROR'],
  [503, 'RUNSPAN_SERVER_ERROR'],
  [599, 'RUNSPAN_SERVER_ERROR'],
  [302, 'RUNSPAN_UNEXPECTED_STATUS'],
  [402, 'RUNSPAN_UNEXPECTED_STATUS'],
  [499, 'RUNSPAN_UNEXPECTED_STATUS'],
])('the status %i has the code %s', (status, code) => {
  const error = errorOf(status, { detail: 'no' });
  expect(error).toBeInstanceOf(RunspanError);
  expect(error).toMatchObject({ name: 'ApiError', status, code, request: REQUEST });
});

const LIST = [{ loc: ['body', 'name'], msg: 'Field required', type: 'missing', input: { a: 1 } }];

test.each<[string, unknown, string | undefined]>([
  ['the text of the interface', { detail: 'Deployment ID 1 not found.' }, 'Deployment ID 1 not found.'],
  ['the list of the interface', { detail: LIST }, 'body.name: Field required'],
  ['a message', { error: 'bad_request', message: 'No such graph' }, 'No such graph'],
  ['an error alone', { error: 'bad_request' }, 'bad_request'],
  ['an error that is an object', { error: { code: 5, message: 'No such graph' } }, 'No such graph'],
  ['a detail that is an object', { detail: { reason: 'x', n: 1 } }, '{"reason":"x","n":1}'],
  ['a list of others', { detail: ['a', { b: 1 }] }, '["a",{"b":1}]'],
  ['a list of what are no errors', [{ loc: ['a'], msg: 'b' }], '[{"loc":["a"],"msg":"b"}]'],
  ['an object of no known name', { reason: 'x' }, '{"reason":"x"}'],
  [
    'issues of Zod',
    { success: false, error: { issues: [{ path: ['a'], message: 'Required', code: 'x' }] } },
    'a: Required',
  ],
  ['text', 'Assistant not found', 'Assistant not found'],
  ['text that is JSON', '"not found"', 'not found'],
  ['a text without anything in it', { detail: '' }, '{"detail":""}'],
  ['HTML', '<!doctype html><h1>502</h1>', undefined],
  ['HTML after white space', '\n <html>', undefined],
  ['nothing', '', undefined],
  ['null', 'null', undefined],
  ['a number', '5', undefined],
])('a body of %s is made readable', (_, body, detail) => {
  const error = errorOf(404, body);
  expect(error.detail).toBe(detail);
  expect(error.message).toBe(`[GET] "https://host/v2/things/1": 404${detail === undefined ? '' : ` ${detail}`}`);
});

test('the body is kept, parsed where it is JSON, and the list of a 422 as it came', () => {
  const error = errorOf(422, { detail: LIST, more: true });
  expect([error.body, error.errors]).toEqual([{ detail: LIST, more: true }, LIST]);
  expect([errorOf(500, '<p>').body, errorOf(500, '').body, errorOf(400, { detail: 'x' }).errors]).toEqual([
    '<p>',
    '',
    [],
  ]);
});

test.each([
  [499, 499],
  [500, 500],
  [501, 501],
])('a text of %i characters is told on one line of 500 at most, and kept whole', (length, characters) => {
  const { message, detail } = errorOf(400, { detail: 'x'.repeat(length) });
  const said = message.replace(/^.*": 400 /, '');
  expect([said.length, said.endsWith('…')]).toEqual([characters, length > 500]);
  expect(detail).toHaveLength(length);
});

test('lines and control characters of a service do not break those of a log', () => {
  expect(errorOf(400, { detail: ' a\r\n\tb\u001b[31m ' }).message).toMatch(/: 400 a b \[31m$/);
});

test('a body that is deep or leads on and on costs no more than its detail', () => {
  const deep = `{"detail":${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
  expect(errorOf(400, deep).status).toBe(400);
  const chain = `${'{"detail":'.repeat(50_000)}"end"${'}'.repeat(50_000)}`;
  expect(errorOf(400, chain).status).toBe(400);
});

test.each([
  [{ 'x-request-id': 'req-1' }, 'req-1'],
  [{ 'x-request-id': ['a', 'b'] }, undefined],
  [{}, undefined],
])('the id of the request in %j is %s', (headers, requestId) => {
  expect(errorOf(500, '', headers).requestId).toBe(requestId);
  expect(new InvalidAnswerError(REQUEST, { status: 200, headers }, 'is no JSON').requestId).toBe(requestId);
});

test('a redirect says what to do', () => {
  expect(errorOf(307, '').message).toBe(
    '[GET] "https://host/v2/things/1": 307 (redirects are not followed; give the address that it leads to)',
  );
});

test('what the message says is not printed again below it', () => {
  const printed = inspect(errorOf(404, { detail: 'Deployment ID 1 not found.' }, { server: 'uvicorn' }));
  expect(printed.match(/not found/g)).toHaveLength(1);
  expect(printed).not.toContain('uvicorn');
});

test('the other errors of a call say what became of it', () => {
  expect(new InvalidAnswerError(REQUEST, { status: 200, headers: {} }, 'is no JSON')).toMatchObject({
    name: 'InvalidAnswerError',
    code: 'RUNSPAN_INVALID_ANSWER',
    message: '[GET] "https://host/v2/things/1": 200, but the answer is no JSON',
  });
  expect(new ConnectionError(REQUEST, 'no program listens at the address', false)).toMatchObject({
    name: 'ConnectionError',
    code: 'RUNSPAN_NO_ANSWER',
    message: '[GET] "https://host/v2/things/1": no program listens at the address',
    mayHaveArrived: false,
  });
  expect(new TimeoutError(REQUEST, 50)).toMatchObject({
    name: 'TimeoutError',
    code: 'RUNSPAN_TIMEOUT',
    message: '[GET] "https://host/v2/things/1": no answer within 50 ms',
  });
});
