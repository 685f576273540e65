import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { Agent } from 'undici';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { HttpClient, type HttpClientOptions, type HttpRequest } from '../../src/http/client.ts';
import { gate } from '../support/gate.ts';
import { serve } from './server.ts';

const POST: HttpRequest = { method: 'POST', path: '/runs', body: ['{}'] };

/** A client that gives up after seconds, unless it is told otherwise. */
function makeClient(endpoint: string, options: Partial<HttpClientOptions> = {}): HttpClient {
  const client = new HttpClient({
    endpoint: new URL(endpoint),
    headers: {},
    connectTimeoutMs: 5_000,
    requestTimeoutMs: 20_000,
    ...options,
  });
  onTestFinished(() => client.destroy());
  return client;
}

describe('a request', () => {
  test('has its method, path, headers, and those of the client', async () => {
    const { url, seen } = await serve();
    const client = makeClient(url, { headers: { 'x-api-key': 'secret', 'x-both': 'client' } });
    await client.send({
      method: 'PATCH',
      path: '/runs/1?a=b',
      headers: { 'x-both': 'request', 'x-own': '1' },
      body: ['{}'],
    });
    expect(seen).toMatchObject([{ method: 'PATCH', url: '/runs/1?a=b', body: '{}' }]);
    expect(seen[0]?.headers).toMatchObject({ 'x-api-key': 'secret', 'x-both': 'request', 'x-own': '1' });
  });

  test.each<[string, HttpRequest['body'], string | undefined, string]>([
    ['none', undefined, undefined, ''],
    ['one text', ['grün'], '5', 'grün'],
    ['one chunk of bytes', [Buffer.from('grün')], '5', 'grün'],
    ['several chunks of either kind', ['a', Buffer.from('grü'), new Uint8Array([110]), ''], '6', 'agrün'],
    ['no chunks', [], '0', ''],
  ])('has a body of %s with its length', async (_, body, length, expected) => {
    const { url, seen } = await serve();
    await makeClient(url).send({ method: 'POST', path: '/', ...(body === undefined ? {} : { body }) });
    expect(seen[0]?.body).toBe(expected);
    expect(seen[0]?.headers['content-length']).toBe(length ?? '0');
    expect(seen[0]?.headers).not.toHaveProperty('transfer-encoding');
  });

  test.each([
    ['', '/info'],
    ['/', '/info'],
    ['/api/v1', '/api/v1/info'],
    ['/api/v1///', '/api/v1/info'],
    ['/api?key=secret#x', '/api/info'],
  ])('to the endpoint %s goes to %s', async (path, expected) => {
    const { url, seen } = await serve();
    await makeClient(url + path).send({ method: 'GET', path: '/info' });
    expect(seen[0]?.url).toBe(expected);
  });

  test('goes over a connection that was opened before', async () => {
    const { url, seen, connections } = await serve();
    const client = makeClient(url);
    for (let index = 0; index < 20; index++) await client.send(POST);
    expect(seen).toHaveLength(20);
    // The pool opens a second one where a request follows before the first connection has been told of the end.
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

describe('an answer', () => {
  test.each([200, 202, 204, 301, 400, 401, 404, 409, 413, 429, 500, 503, 599])('of %i is an answer', async (status) => {
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

  test.each([
    [65_535, 65_535],
    [65_536, 65_536],
    [65_537, 65_536],
  ])('of %i bytes is read to %i', async (sent, read) => {
    const { url } = await serve((_, response) => response.end('x'.repeat(sent)));
    expect((await makeClient(url).send(POST)).text).toHaveLength(read);
  });

  test('of 10 MB is read to 64 KiB', async () => {
    const { url } = await serve((_, response) => response.end('x'.repeat(10_000_000)));
    expect(await makeClient(url).send(POST)).toEqual(
      expect.objectContaining({ status: 200, text: 'x'.repeat(65_536) }),
    );
  });

  test('without an end is read to 64 KiB, and its connection broken off', async () => {
    const closed = gate();
    const { url, connections } = await serve((request, response) => {
      if (request.url === '/small') return response.end('small');
      const chunk = 'x'.repeat(100_000);
      const pour = (): void => {
        while (response.write(chunk));
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
});

describe('no answer', () => {
  test('rejects with the reason when the port is closed', async () => {
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const sent = makeClient(`http://127.0.0.1:${port}`).send(POST);
    await expect(sent).rejects.toMatchObject({
      code: 'ECONNREFUSED',
      message: `connect ECONNREFUSED 127.0.0.1:${port}`,
    });
  });

  test('rejects when the connection is reset', async () => {
    const { url } = await serve((request) => request.socket.resetAndDestroy());
    await expect(makeClient(url).send(POST)).rejects.toThrow();
  });

  test('within the deadline rejects and says so, and breaks the connection off', async () => {
    const closed = gate();
    const { url } = await serve((request) => void request.socket.on('close', () => closed.open()));
    await expect(makeClient(url, { requestTimeoutMs: 60 }).send(POST)).rejects.toThrow('no answer within 60 ms');
    await closed;
  });

  test('that is whole within the deadline rejects, however steadily it drips', async () => {
    const closed = gate();
    const { url } = await serve((request, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write('.'), 5);
      request.socket.on('close', () => {
        clearInterval(drip);
        closed.open();
      });
    });
    await expect(makeClient(url, { requestTimeoutMs: 100 }).send(POST)).rejects.toThrow('no answer within 100 ms');
    await closed;
  });

  test('costs the next request nothing', async () => {
    const { url } = await serve((request, response) => void (request.url === '/runs' || response.end('yes')));
    const client = makeClient(url, { requestTimeoutMs: 500 });
    const hanging = client.send(POST).catch((error: Error) => error.message);
    expect((await client.send({ method: 'GET', path: '/info' })).text).toBe('yes');
    expect(await hanging).toBe('no answer within 500 ms');
  });
});

describe('headers that are replaced', () => {
  test('are those of every request from then on', async () => {
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

  test.each([401, 403])('send a request again that had the old key and is answered with %i', async (status) => {
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

  test('that is aborted already sends nothing', async () => {
    const { url, connections } = await serve();
    await expect(makeClient(url).send({ ...POST, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(connections()).toBe(0);
  });

  test('breaks off what waits for an answer', async () => {
    const controller = new AbortController();
    const { url } = await serve(() => controller.abort(reason));
    await expect(makeClient(url).send({ ...POST, signal: controller.signal })).rejects.toBe(reason);
  });

  test('breaks off an answer that has begun', async () => {
    const controller = new AbortController();
    const { url } = await serve((_, response) => response.writeHead(200).write('{', () => controller.abort(reason)));
    await expect(makeClient(url).send({ ...POST, signal: controller.signal })).rejects.toThrow();
  });

  test('is let go of when the request has ended', async () => {
    const { signal } = new AbortController();
    const remove = vi.spyOn(signal, 'removeEventListener');
    const add = vi.spyOn(signal, 'addEventListener');
    const { url } = await serve();
    await makeClient(url).send({ ...POST, signal });
    const ours = add.mock.calls.filter(
      ([, listener]) => !remove.mock.calls.some(([, removed]) => removed === listener),
    );
    expect(add).toHaveBeenCalled();
    expect(ours).toEqual([]);
  });
});

describe('a dispatcher that is passed in', () => {
  test('sends the requests, and is left alone when the client is destroyed', async () => {
    const { url, seen } = await serve();
    const dispatcher = new Agent();
    onTestFinished(() => dispatcher.destroy());
    const request = vi.spyOn(dispatcher, 'request');
    const client = makeClient(url, { dispatcher });
    await client.send(POST);
    await client.destroy();
    expect(request).toHaveBeenCalledTimes(1);
    expect(dispatcher.destroyed).toBe(false);
    await dispatcher.request({ origin: url, path: '/', method: 'POST' });
    expect(seen).toHaveLength(2);
  });

  test('has to keep the deadline, and the end of the client, though it heeds no signal', async () => {
    const dispatcher = { request: () => new Promise(() => {}) } as unknown as Agent;
    await expect(makeClient('http://127.0.0.1:9', { dispatcher, requestTimeoutMs: 5 }).send(POST)).rejects.toThrow(
      'no answer within 5 ms',
    );
    const client = makeClient('http://127.0.0.1:9', { dispatcher, requestTimeoutMs: 1_000_000 });
    const sending = client.send(POST);
    await client.destroy();
    await expect(sending).rejects.toThrow('the client was closed');
  });
});

describe('a client that is destroyed', () => {
  test('breaks off what is under way', async () => {
    const arrived = gate();
    const { url } = await serve(() => arrived.open());
    const client = makeClient(url);
    const sent = client.send(POST);
    await Promise.all([expect(sent).rejects.toThrow(), arrived.then(() => client.destroy())]);
  });
});
