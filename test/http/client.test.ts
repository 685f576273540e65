import { getEventListeners } from 'node:events';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { Agent } from 'undici';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { HttpClient } from '#src/http/client.ts';
import type { HttpClientOptions, HttpRequest } from '#src/http/transport.ts';
import { gate } from '../support/gate.ts';
import { accepting, acceptOne, type Connection, scriptServer } from '../support/script-server.ts';
import { turns } from '../support/virtual-time.ts';
import { serve } from './server.ts';

const POST: HttpRequest = { method: 'POST', path: '/runs', body: ['{}'] };
const GET: HttpRequest = { method: 'GET', path: '/' };

function makeClient(endpoint: string, options: Partial<HttpClientOptions> = {}): HttpClient {
  const timeouts = { connectTimeoutMs: 5_000, requestTimeoutMs: 20_000 };
  const client = new HttpClient({ endpoint: new URL(endpoint), headers: {}, ...timeouts, ...options });
  onTestFinished(() => client.destroy());
  return client;
}

describe('a request', () => {
  test('has its method, path and headers, which come before those of the client', async () => {
    const { url, seen } = await serve();
    const client = makeClient(url, { headers: { 'x-api-key': 'secret', 'x-both': 'client' } });
    const headers = { 'x-both': 'request', 'x-own': '1' };
    await client.send({ method: 'PATCH', path: '/runs/1?a=b', headers, body: ['{}'] });
    expect(seen).toMatchObject([{ method: 'PATCH', url: '/runs/1?a=b', body: '{}' }]);
    expect(seen[0]?.headers).toMatchObject({ 'x-api-key': 'secret', ...headers });
  });

  test.each<[string, HttpRequest['body'], string, string]>([
    ['no body', undefined, '0', ''],
    ['text', ['grün'], '5', 'grün'],
    ['bytes', [Buffer.from('grün')], '5', 'grün'],
    ['text and bytes', ['a', Buffer.from('grü'), new Uint8Array([110]), ''], '6', 'agrün'],
    ['no chunks', [], '0', ''],
  ])('with %s has its length', async (_, body, length, expected) => {
    const { url, seen } = await serve();
    await makeClient(url).send({ method: 'POST', path: '/', ...(body === undefined ? {} : { body }) });
    expect(seen[0]?.body).toBe(expected);
    expect(seen[0]?.headers['content-length']).toBe(length);
    expect(seen[0]?.headers).not.toHaveProperty('transfer-encoding');
  });

  test.each([
    ['', '/info'],
    ['/', '/info'],
    ['/api/v1///', '/api/v1/info'],
    ['/api?key=secret#x', '/api/info'],
  ])('to the endpoint %s goes to %s', async (path, expected) => {
    const { url, seen } = await serve();
    await makeClient(url + path).send({ method: 'GET', path: '/info' });
    expect(seen[0]?.url).toBe(expected);
  });

  test('reuses connections', async () => {
    const { url, seen, connections } = await serve();
    const client = makeClient(url);
    for (let index = 0; index < 20; index++) await client.send(POST);
    expect(seen).toHaveLength(20);
    // The pool opens a second connection if a request follows before the first connection is free again.
    expect(connections()).toBeLessThanOrEqual(2);
  });

  test('is not traced', async () => {
    const { url } = await serve();
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    onTestFinished(() => context.disable());
    const tracer = new BasicTracerProvider().getTracer('test');
    const dispatcher = new Agent();
    const recording: boolean[] = [];
    const request = vi.spyOn(dispatcher, 'request').mockImplementation((...args) => {
      recording.push(tracer.startSpan('POST').isRecording());
      request.mockRestore();
      return dispatcher.request(...args);
    });
    await makeClient(url, { dispatcher }).send(POST);
    expect(recording).toEqual([false]);
    expect(tracer.startSpan('afterwards').isRecording()).toBe(true);
    await dispatcher.destroy();
  });
});

describe('a stream', () => {
  const put = (stream: Readable, bytes: number): HttpRequest => ({
    method: 'PUT',
    path: '/',
    stream: { stream, bytes },
  });

  test('is sent with the given length', async () => {
    const { url, seen } = await serve();
    await makeClient(url).open(put(Readable.from([Buffer.from('ab'), Buffer.from('c')]), 3));
    expect(seen).toMatchObject([{ method: 'PUT', body: 'abc', headers: { 'content-length': '3' } }]);
  });

  test.each([2, 4])('of 3 bytes with the length %i is a failure', async (bytes) => {
    const { url, seen } = await serve();
    await expect(makeClient(url).open(put(Readable.from([Buffer.from('abc')]), bytes))).rejects.toThrow();
    expect(seen).toEqual([]);
  });
});

describe('a response', () => {
  test.each([200, 301, 400, 401, 429, 500, 599])('with status %i is no failure', async (status) => {
    const { url } = await serve((_, response) => response.writeHead(status).end());
    expect(await makeClient(url).send(POST)).toMatchObject({ status, text: '' });
  });

  test('has its headers with names in lower case, and its text', async () => {
    const headers = { 'Retry-After': '7', 'Set-Cookie': ['a=1', 'b=2'] };
    const { url } = await serve((_, response) => response.writeHead(429, headers).end('{"detail":"grün"}'));
    const answer = await makeClient(url).send(POST);
    expect(answer.headers).toMatchObject({ 'retry-after': '7', 'set-cookie': ['a=1', 'b=2'] });
    expect(answer.text).toBe('{"detail":"grün"}');
  });

  test.each([65_535, 65_536, 65_537, 10_000_000])('of %i bytes is read up to 64 KiB', async (sent) => {
    const { url } = await serve((_, response) => response.end('x'.repeat(sent)));
    expect((await makeClient(url).send(POST)).text).toHaveLength(Math.min(sent, 65_536));
  });

  test('without an end is read up to 64 KiB, and its connection is closed [security 7]', async () => {
    const closed = gate();
    const { url, connections } = await serve((request, response) => {
      if (request.url === '/small') return response.end('small');
      const pour = (): void => {
        while (response.write('x'.repeat(100_000)));
        response.once('drain', pour);
      };
      request.socket.on('close', () => closed.open());
      return pour();
    });
    const client = makeClient(url, { requestTimeoutMs: 5_000 });
    expect((await client.send(POST)).text).toBe('x'.repeat(65_536));
    await closed;
    expect((await client.send({ method: 'GET', path: '/small' })).text).toBe('small');
    expect(connections()).toBe(2);
  });

  test('that is opened has a body of any length', async () => {
    const { url } = await serve((_, response) => response.writeHead(206, { 'X-A': 'b' }).end('x'.repeat(300_000)));
    const { status, headers, body } = await makeClient(url).open(GET);
    expect([status, headers['x-a']]).toEqual([206, 'b']);
    expect((await text(body)).length).toBe(300_000);
  });
});

describe('the deadline', () => {
  test('ends a response that arrives byte by byte', async () => {
    const { url } = await serve((request, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write('.'), 5);
      request.socket.on('close', () => clearInterval(drip));
    });
    await expect(makeClient(url, { requestTimeoutMs: 100 }).send(POST)).rejects.toThrow('no response within 100 ms');
  });

  test('ends an upload that the service does not read, and its connection is not used again', async () => {
    const server = await scriptServer(({ socket }) => void socket.pause(), accepting);
    const client = makeClient(server.url);
    const large: HttpRequest = { ...POST, body: [Buffer.alloc(8_000_000)], timeoutMs: 60 };
    await expect(client.send(large)).rejects.toThrow('no response within 60 ms');
    await expect(client.send(POST)).resolves.toMatchObject({ status: 202 });
    expect(server.connections).toBeGreaterThan(1);
  });

  test('of one request does not affect another', async () => {
    const { url } = await serve((request, response) => void (request.url === '/runs' || response.end('yes')));
    const client = makeClient(url, { requestTimeoutMs: 500 });
    const hanging = client.send(POST).catch((error: Error) => error.message);
    expect((await client.send({ method: 'GET', path: '/info' })).text).toBe('yes');
    expect(await hanging).toBe('no response within 500 ms');
  });
});

describe('a connection', () => {
  /** Accepts the first request, and does this to the connection when the second has arrived. */
  const leavesAtSecond = (leave: (connection: Connection) => void) => async (connection: Connection) => {
    await acceptOne(connection);
    await connection.request();
    leave(connection);
  };
  const resets = ({ socket }: Connection): void => void socket.resetAndDestroy();

  test.each<[string, (connection: Connection) => void]>([
    ['reset', resets],
    ['closed', ({ socket }) => socket.end()],
  ])('that is %s when it is reused is replaced, and the request is repeated', async (_, leave) => {
    const server = await scriptServer(leavesAtSecond(leave), accepting);
    const client = makeClient(server.url);
    expect((await client.send(POST)).status).toBe(202);
    await turns();
    expect(await client.send(POST)).toMatchObject({ status: 202, isRepeated: true });
    expect([server.connections, server.requests.length]).toEqual([2, 3]);
    expect(server.requests[2]).toBe(server.requests[1]);
  });

  test('that replaces another and is reset is a failure', async () => {
    const server = await scriptServer(leavesAtSecond(resets), async (connection) => {
      await connection.request();
      resets(connection);
    });
    const client = makeClient(server.url);
    await client.send(POST);
    await turns();
    await expect(client.send(POST)).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(server.connections).toBe(2);
  });

  test('that is new and is reset is a failure, and the request is not repeated', async () => {
    const { url, seen } = await serve((request) => request.socket.resetAndDestroy());
    await expect(makeClient(url).send(POST)).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(seen).toHaveLength(1);
  });

  test('that is idle is closed with the client', async () => {
    const { url, server } = await serve();
    server.keepAliveTimeout = 60_000;
    const closed = new Promise((resolve) => server.on('connection', (socket) => socket.on('close', resolve)));
    const client = makeClient(url);
    await client.send(POST);
    await client.destroy();
    await closed;
  });
});

describe('headers that are replaced', () => {
  test('are sent with every later request', async () => {
    const { url, seen } = await serve();
    const client = makeClient(url, { headers: { 'x-api-key': 'old', 'x-gone': '1' } });
    await client.send(POST);
    client.setHeaders({ 'x-api-key': 'new' });
    await client.send(POST);
    expect(seen.map(({ headers }) => [headers['x-api-key'], headers['x-gone']])).toEqual([
      ['old', '1'],
      ['new', undefined],
    ]);
  });

  test.each([401, 403])('repeat a request with the old key that receives %i', async (status) => {
    const { url, seen } = await serve((request, response) => {
      if (request.headers['x-api-key'] === 'old') client.setHeaders({ 'x-api-key': 'new' });
      response.writeHead(request.headers['x-api-key'] === 'old' ? status : 202).end();
    });
    const client = makeClient(url, { headers: { 'x-api-key': 'old' } });
    expect((await client.send(POST)).status).toBe(202);
    expect(seen.map(({ body }) => body)).toEqual(['{}', '{}']);
  });
});

describe('a signal', () => {
  const reason = new Error('shutting down');

  test('that is aborted before sends nothing', async () => {
    const { url, connections } = await serve();
    await expect(makeClient(url).send({ ...POST, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(connections()).toBe(0);
  });

  test.each(['send', 'open'] as const)('ends `%s` before the response, and has no listener then', async (method) => {
    const controller = new AbortController();
    const { url } = await serve(() => controller.abort(reason));
    await expect(makeClient(url)[method]({ ...POST, signal: controller.signal })).rejects.toBe(reason);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  test('ends the unread body of a response, and has no listener then', async () => {
    const controller = new AbortController();
    const { url } = await serve((_, response) => response.write('a'));
    const { body } = await makeClient(url).open({ ...GET, signal: controller.signal });
    controller.abort(reason);
    await expect(text(body)).rejects.toBe(reason);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });
});

describe('a dispatcher that is passed in', () => {
  test('sends the requests, and is not destroyed with the client', async () => {
    const { url, seen } = await serve();
    const dispatcher = new Agent();
    onTestFinished(() => dispatcher.destroy());
    const client = makeClient(url, { dispatcher });
    const request = vi.spyOn(dispatcher, 'request');
    await client.send(POST);
    await client.destroy();
    expect(request).toHaveBeenCalledTimes(1);
    await dispatcher.request({ origin: url, path: '/', method: 'POST' });
    expect(seen).toHaveLength(2);
  });

  test.each(['send', 'open'] as const)(
    'that ignores signals ends `%s` at the deadline and with the client',
    async (method) => {
      const dispatcher = { request: () => new Promise(() => {}) } as unknown as Agent;
      const sent = makeClient('http://127.0.0.1:9', { dispatcher, requestTimeoutMs: 5 })[method](POST);
      await expect(sent).rejects.toThrow('no response within 5 ms');
      const client = makeClient('http://127.0.0.1:9', { dispatcher, requestTimeoutMs: 1_000_000 });
      const sending = client[method](POST);
      await client.destroy();
      await expect(sending).rejects.toThrow('the client was closed');
    },
  );
});
