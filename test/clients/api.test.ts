import { getEventListeners } from 'node:events';
import { Readable } from 'node:stream';
import { inspect } from 'node:util';
import { Agent } from 'undici';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Call } from '#src/clients/endpoint.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { serve } from '../http/server.ts';
import { logLines } from '../support/log-lines.ts';
import { GET, makeApi, POST, thrownBy } from './make-api.ts';

test('a call sends its method, path, query and body, and the headers of client, call and options', async () => {
  const { url, seen } = await serve((_, response) => response.end('{}'));
  const api = makeApi(`${url}/api/v1/`, { headers: { 'X-Api-Key': 'key-1', 'x-a': 'client', 'x-b': 'client' } });
  await api.json({
    ...POST,
    query: { limit: 5, id: ['a', 'b'] },
    headers: { 'X-B': 'call', 'x-c': 'call' },
    options: { headers: { 'X-C': 'options', 'x-a': null } },
  });
  expect(seen).toMatchObject([{ method: 'POST', url: '/api/v1/things?limit=5&id=a&id=b', body: '{"a":1}' }]);
  const { headers } = seen[0] ?? { headers: {} };
  expect(headers).toMatchObject({ 'x-api-key': 'key-1', 'x-b': 'call', 'x-c': 'options', accept: 'application/json' });
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'content-length': '7' });
  expect(headers).not.toHaveProperty('x-a');
});

test('a call without a body sends no headers of a body', async () => {
  const { url, seen } = await serve((_, response) => response.end('[]'));
  await makeApi(url).json(GET);
  expect(seen[0]?.headers).not.toHaveProperty('content-type');
});

test.each<[string, number, string, unknown]>([
  ['JSON', 200, '{"a":[1]}', { a: [1] }],
  ['JSON with a mark before it', 201, '\ufeff{"a":1}', { a: 1 }],
  ['nothing', 200, '', undefined],
  ['white space', 207, ' \r\n', undefined],
  ['no content', 204, '', undefined],
])('a response of %s is returned as data', async (_, status, body, data) => {
  const { url } = await serve((_, response) => response.writeHead(status, { 'X-Total': '3' }).end(body));
  const answer = await makeApi(url).send(GET);
  expect(answer).toMatchObject({ status, headers: { 'x-total': '3' } });
  expect(answer.data).toEqual(data);
});

test('a response of more than 64 MiB is refused [security 7]', async () => {
  const chunk = new Uint8Array(64 * 1024 * 1024 + 1);
  const fetch = async () => new Response(new ReadableStream({ pull: (stream) => stream.enqueue(chunk) }));
  const error = await thrownBy(makeApi('http://127.0.0.1:9', { fetch }).json(GET));
  expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_RESPONSE' });
  expect(String(error)).toMatch(/longer than 67108864 bytes$/);
});

test('hooks receive each attempt, without the query', async () => {
  const { url, seen } = await serve((_, response) =>
    seen.length === 1
      ? response.writeHead(503, { 'x-request-id': 'req-1' }).end('{"detail":"busy"}')
      : response.end('{}'),
  );
  vi.spyOn(Math, 'random').mockReturnValue(0);
  const events: unknown[] = [];
  const hooks = {
    onRequest: (event: unknown) => events.push(['request', event]),
    onResponse: (event: unknown) => events.push(['response', event]),
    onRetry: (event: unknown) => events.push(['retry', event]),
  };
  await makeApi(`${url}/api`, { hooks }).json({ ...GET, query: { q: 'text' } });
  vi.restoreAllMocks();
  const attempt = (number: number) => ({
    call: 'things.get',
    method: 'GET',
    url: `${url}/api/things`,
    attempt: number,
  });
  const durationMs = expect.any(Number);
  expect(events).toEqual([
    ['request', attempt(1)],
    ['response', { ...attempt(1), status: 503, requestId: 'req-1', durationMs }],
    ['retry', { ...attempt(1), error: expect.objectContaining({ status: 503, detail: 'busy' }), delayMs: 0 }],
    ['request', attempt(2)],
    ['response', { ...attempt(2), status: 200, requestId: undefined, durationMs }],
  ]);
});

test('a hook that throws or rejects does not affect the call, and is logged once', async () => {
  const lines = logLines();
  const { url } = await serve((_, response) => response.end('{"a":1}'));
  const hooks = {
    onRequest: () => {
      throw new Error('no log for key-1');
    },
    onResponse: () => Promise.reject(new Error('nobody waits for it')) as unknown as undefined,
  };
  const rejections = unhandledRejections();
  const api = makeApi(url, { hooks, headers: { 'x-api-key': 'key-1' } });
  expect([await api.json(GET), await api.json(GET)]).toEqual([{ a: 1 }, { a: 1 }]);
  expect(lines).toEqual([
    'warn: clients: the hook onRequest threw (no log for [secret]); the call continues.',
    'warn: clients: the hook onResponse threw (nobody waits for it); the call continues.',
  ]);
  expect(await rejections()).toEqual([]);
});

test.each<[string, unknown, string]>([
  ['a circle', Object.assign([], { 0: [] }), 'circular'],
  ['a BigInt', { a: 1n }, 'BigInt'],
])('a body with %s is refused before it is sent', async (_, body, message) => {
  const { url, connections } = await serve();
  if (Array.isArray(body)) body[0].push(body);
  const error = await thrownBy(makeApi(url).json({ ...POST, body }));
  expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_REQUEST', errors: [{ loc: ['body'], type: 'json_invalid' }] });
  expect([String(error).includes(message), connections()]).toEqual([true, 0]);
});

test('the error of a `toJSON` that throws does not show the key', async () => {
  const { url, seen } = await serve();
  const toJSON = (): never => {
    throw new Error('no text for key-1234');
  };
  const error = await thrownBy(
    makeApi(url, { headers: { 'x-api-key': 'key-1234' } }).json({ ...POST, body: { toJSON } }),
  );
  expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_REQUEST' });
  expect(inspect(error, { depth: 9 })).not.toContain('key-1234');
  expect(seen).toEqual([]);
});

test('a key in the options of a call is sent over plain HTTP to another machine only with `allowInsecure`', async () => {
  const options = { headers: { authorization: 'Bearer key-1' } };
  const error = await thrownBy(makeApi('http://host.test').json({ ...GET, options }));
  expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
  const dispatcher = { request: () => Promise.reject(new Error()), dispatch: () => true } as never;
  const allowed = makeApi('http://host.test', { allowInsecure: true, dispatcher, maxRetries: 0 });
  expect(await thrownBy(allowed.json({ ...GET, options }))).toMatchObject({ code: 'RUNSPAN_NO_RESPONSE' });
});

/** A service that repeats the request in every part of the response. */
const echoing = (status: number) => async () => {
  const { url } = await serve((request, response) => {
    const all = JSON.stringify({ headers: request.headers, url: request.url });
    const key = String(request.headers['x-api-key']);
    const basic = Buffer.from(key).toString('base64');
    response.writeHead(status, { 'x-request-id': `for ${key}`, 'x-basic': basic, location: `/?key=${key}` });
    const spelled = [...key].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
    response.end(`{"detail":${JSON.stringify(all)},"spelled":"${spelled}","error":{"message":"${key} ${basic}"}}`);
  });
  return url;
};

test.each([302, 401, 422, 500])(
  'a response with %i that repeats the request shows no key in errors and hooks [security 1]',
  async (status) => {
    const url = await echoing(status)();
    const secrets = ['client-key-1', 'body-secret-2', 'option-key-3', 'call-key-4'];
    const events: unknown[] = [];
    const note = (event: unknown) => void events.push(event);
    const api = makeApi(url, {
      headers: { 'x-api-key': 'client-key-1' },
      secrets: ['client-key-1'],
      hooks: { onRequest: note, onResponse: note, onRetry: note },
      maxRetries: 1,
    });
    vi.spyOn(Math, 'random').mockReturnValue(0);
    const call = {
      ...POST,
      path: '/things/body-secret-2',
      query: { q: 'body-secret-2' },
      body: { value: 'body-secret-2' },
      isIdempotent: true,
      secrets: ['body-secret-2'],
      headers: { cookie: 'call-key-4' },
      options: { headers: { Authorization: 'Bearer option-key-3' } },
    };
    const error = await thrownBy(api.json(call));
    vi.restoreAllMocks();
    const all = [error, api, ...events].flatMap((value) => [
      inspect(value, { depth: 20, showHidden: true }),
      JSON.stringify(value),
      String((value as Error).stack),
    ]);
    all.push(JSON.stringify({ ...error, ...Object.getOwnPropertyDescriptors(error) }), String(error));
    for (const secret of secrets) {
      for (const form of [secret, Buffer.from(secret).toString('base64').replace(/.?=*$/, '')]) {
        expect(all.filter((one) => one.includes(form))).toEqual([]);
      }
    }
    expect(error.message).toContain('/things/[secret]');
  },
);

test('the error of a response that is not JSON does not quote the response', async () => {
  const { url } = await serve((_, response) => response.writeHead(200, { 'x-request-id': 'key-1' }).end('key-1 {'));
  const error = await thrownBy(makeApi(url, { secrets: ['key-1'] }).json(GET));
  expect(error).toMatchObject({ name: 'InvalidResponseError', status: 200, requestId: '[secret]' });
  expect(inspect(error, { showHidden: true })).not.toContain('key-1');
});

test.each([
  ['', '/things'],
  ['/', '/things'],
  ['/api/v1///', '/api/v1/things'],
])('with the address path "%s", a call is sent to %s', async (path, expected) => {
  const { url, seen } = await serve((_, response) => response.end('{}'));
  const api = makeApi(url + path);
  await api.json(GET);
  expect([seen[0]?.url, api.urlOf('/things?a=b')]).toEqual([expected, url + expected]);
});

describe('a stream', () => {
  const call = (stream: () => Readable): Call => ({
    name: 'up',
    method: 'PUT',
    path: '/up',
    response: 'any',
    stream: () => ({ stream: stream(), bytes: 3 }),
  });

  test('is created for each attempt and closed after a failed attempt', async () => {
    const { url, seen } = await serve((_, response) => response.writeHead(seen.length === 1 ? 503 : 204).end());
    const headers = { 'content-type': 'application/gzip' };
    const streams: Readable[] = [];
    const made = (): Readable => {
      streams.push(Readable.from([Buffer.from('abc')]));
      return streams.at(-1) as Readable;
    };
    await makeApi(url).send({ ...call(made), headers });
    const sent = { method: 'PUT', url: '/up', body: 'abc', headers: { ...headers, 'content-length': '3' } };
    expect(seen).toMatchObject([sent, sent]);
    expect(streams.map(({ destroyed }) => destroyed)).toEqual([true, true]);
  });

  test.each<[string, object]>([
    ['its options are wrong', { timeoutMs: 0 }],
    ['its signal is aborted', { signal: AbortSignal.abort(new Error('no')) }],
  ])('is not created if %s', async (_, options) => {
    const { url, connections } = await serve();
    const made = (): never => expect.unreachable('it was made');
    await thrownBy(makeApi(url).send({ ...call(made), options }));
    expect(connections()).toBe(0);
  });
});

test.each([GET, POST])('a signal ends $name while the client connects', async (call) => {
  const reason = new Error('enough');
  const controller = new AbortController();
  const { signal } = controller;
  const dispatcher = new Agent({ connect: (() => setImmediate(() => controller.abort(reason))) as never });
  onTestFinished(() => dispatcher.destroy());
  const api = makeApi('http://127.0.0.1:9', { dispatcher });
  expect(await thrownBy(api.json({ ...call, options: { signal } }))).toBe(reason);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
