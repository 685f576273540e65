import { createServer as createHttp } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { Agent, request } from 'undici';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { isOwnAuthority } from '../../src/receiver/server.ts';
import { createReceiver } from '../../src/receiver.ts';
import { call, makeRun, ROOT, raw, sendJson, start } from './wire.ts';

describe('who may speak to the receiver', () => {
  const post = (port: string, headers: string) =>
    `POST /runs HTTP/1.1\r\n${headers.replaceAll('PORT', port)}Connection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`;

  test.each([
    ['127.0.0.1', 'Host: 127.0.0.1:PORT\r\n', 422],
    ['localhost', 'Host: LocalHost:PORT\r\n', 422],
    ['[::1]', 'Host: [::1]:PORT\r\n', 422],
    ['its own page', 'Host: localhost:PORT\r\nOrigin: http://localhost:PORT\r\n', 422],
    ['a name pointed to 127.0.0.1', 'Host: evil.example:PORT\r\n', 403],
    ['a name that looks like ours', 'Host: 127.0.0.1.evil.example:PORT\r\n', 403],
    ['a name with ours as user', 'Host: 127.0.0.1:PORT@evil.example\r\n', 403],
    ['another port', 'Host: 127.0.0.1:1\r\n', 403],
    ['no port', 'Host: 127.0.0.1\r\n', 403],
    ['an empty host', 'Host: \r\n', 403],
    ['a page from elsewhere', 'Host: 127.0.0.1:PORT\r\nOrigin: https://evil.example\r\n', 403],
    ['a page of another local port', 'Host: 127.0.0.1:PORT\r\nOrigin: http://127.0.0.1:1\r\n', 403],
    ['a page that hides its origin', 'Host: 127.0.0.1:PORT\r\nOrigin: null\r\n', 403],
    ['a page over https', 'Host: 127.0.0.1:PORT\r\nOrigin: https://127.0.0.1:PORT\r\n', 403],
  ])('%s', async (_, headers, status) => {
    const receiver = await start();
    const text = await raw(receiver.url, post(new URL(receiver.url).port, headers));
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(text.toLowerCase()).not.toContain('access-control-allow');
    expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n')))).toHaveProperty('detail');
  });

  test.each([
    ['127.0.0.1:4777', 4777, true],
    ['localhost:4777', 4777, true],
    ['[::1]:4777', 4777, true],
    ['localhost', 80, true],
    ['localhost', 4777, false],
    ['localhost:4778', 4777, false],
    ['::1:4777', 4777, false],
    ['localhost:', 4777, false],
    ['evil.example:4777', 4777, false],
    ['127.0.0.1:4777@evil.example', 4777, false],
    [undefined, 4777, false],
  ])('%s is our own on port %i: %s', (authority, port, expected) => {
    expect(isOwnAuthority(authority, port)).toBe(expected);
  });

  test('a preflight of a page is refused', async () => {
    const receiver = await start();
    const reply = await call(`${receiver.url}/runs`, 'OPTIONS', undefined, { origin: 'https://evil.example' });
    expect(reply.status).toBe(403);
  });

  test.each([
    ['an answer', 'GET /info HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nConnection: close\r\n\r\n', 200],
    ['a refusal', 'GET /info HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n', 403],
    ['what answers no HTTP', 'hello\r\n\r\n', 400],
  ])('%s is JSON only, for this origin, loads and frames nothing, and is not kept', async (_, bytes, status) => {
    const receiver = await start();
    const text = await raw(receiver.url, bytes.replace('PORT', new URL(receiver.url).port));
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    const lines = text.slice(0, text.indexOf('\r\n\r\n')).split('\r\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        'content-type: application/json',
        'x-content-type-options: nosniff',
        'cross-origin-resource-policy: same-origin',
        'referrer-policy: no-referrer',
        "content-security-policy: default-src 'none'; frame-ancestors 'none'",
        'cache-control: no-store',
      ]),
    );
  });
});

describe('what is no HTTP', () => {
  test.each([
    ['bytes', 'hello\r\n\r\n', 400],
    ['a header without end', `GET /info HTTP/1.1\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`, 431],
    ['two lengths', 'POST /runs HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx', 400],
  ])('%s: an answer in JSON', async (_, bytes, status) => {
    const receiver = await start();
    const text = await raw(receiver.url, bytes);
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n')))).toHaveProperty('detail');
    expect((await call(`${receiver.url}/info`, 'GET')).status).toBe(200);
  });
});

describe('listening', () => {
  test('a port that is taken is named, with what to do', async () => {
    const { url } = await start();
    const port = Number(new URL(url).port);
    await expect(createReceiver({ port })).rejects.toMatchObject({
      name: 'RunspanError',
      code: 'RUNSPAN_ADDRESS_IN_USE',
      message: expect.stringMatching(new RegExp(`^Port ${port} .*choose another`)),
      cause: { code: 'EADDRINUSE' },
    });
  });

  test('the url says where it really listens', async () => {
    expect((await start()).url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await start({ host: '127.0.0.2' })).url).toMatch(/^http:\/\/127\.0\.0\.2:\d+$/);
    const local = await start({ host: 'localhost' });
    expect((await call(`${local.url}/info`, 'GET')).status).toBe(200);
  });
});

describe('close', () => {
  test('does not wait for connections that are kept alive or never said a word', async () => {
    const receiver = await createReceiver();
    const agent = new Agent({ keepAliveTimeout: 60_000 });
    onTestFinished(() => agent.destroy());
    await (await request(`${receiver.url}/info`, { dispatcher: agent })).body.text();
    const silent = connect(Number(new URL(receiver.url).port), '127.0.0.1');
    await new Promise((resolve) => silent.once('connect', resolve));
    const ended = new Promise((resolve) => silent.once('close', resolve).on('error', () => {}));
    // The timer that limits the wait never fires, so that only what is waited for can end it.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await receiver.close();
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
    await ended;
    await expect(request(`${receiver.url}/info`)).rejects.toThrow();
  });

  test('cuts a request that does not end, after 2 seconds and not before', async () => {
    const receiver = await createReceiver();
    const port = new URL(receiver.url).port;
    const head = `POST /runs HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n`;
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(head));
    let isCut = false;
    const ended = new Promise((resolve) => socket.once('close', resolve).on('error', () => {}));
    void ended.then(() => {
      isCut = true;
    });
    await new Promise((resolve) => socket.once('data', resolve));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const closing = receiver.close();
    await vi.advanceTimersByTimeAsync(1_999);
    expect(isCut).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await closing;
    await ended;
  });

  test('is the same ending, again and at once', async () => {
    const receiver = await createReceiver();
    await Promise.all([receiver.close(), receiver.close()]);
    await receiver.close();
  });

  test('lets a request at hand finish, and keeps what was stored readable', async () => {
    const receiver = await createReceiver();
    const silent = connect(Number(new URL(receiver.url).port), '127.0.0.1');
    await new Promise((resolve) => silent.once('connect', resolve).on('error', () => {}));
    // The timer that limits the wait never fires, so the silent connection ends with the request.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const body = JSON.stringify({ ...makeRun(), inputs: {} });
    const port = new URL(receiver.url).port;
    const head = `POST /runs HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`;
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(head));
    let text = '';
    let closing: Promise<void> | undefined;
    await new Promise((resolve) => {
      socket.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
        // The server is waiting for the body now.
        if (closing === undefined) {
          closing = receiver.close();
          socket.write(body);
        }
      });
      socket.on('close', resolve);
    });
    await closing;
    expect(text).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 202 /);
    expect(text).toMatch(/connection: close/i);
    expect(await receiver.trace(ROOT)).toHaveLength(1);
  });

  test('frees the port', async () => {
    const first = await createReceiver();
    const port = Number(new URL(first.url).port);
    await first.close();
    const second = createHttp().listen(port, '127.0.0.1');
    await new Promise((resolve) => second.once('listening', resolve));
    expect((second.address() as AddressInfo).port).toBe(port);
    await new Promise((resolve) => second.close(resolve));
  });
});

test('a store that fails is answered with 500, and the server goes on', async () => {
  const lines: string[] = [];
  diagnostics.setLog((_, message) => lines.push(message));
  onTestFinished(() => diagnostics.setLog('warn'));
  const fails = () => Promise.reject(new Error('disk full'));
  const store = { apply: fails, runs: fails, trace: fails, attachment: fails, subscribe: () => () => {} };
  const receiver = await start({ store });
  const reply = await sendJson(receiver, 'POST', '/runs', { ...makeRun(), inputs: {} });
  expect(reply).toMatchObject({ status: 500, body: { detail: expect.any(String) } });
  expect(JSON.stringify(reply.body)).not.toContain('disk full');
  expect(lines).toEqual(['the receiver could not answer a request: disk full']);
  expect((await call(`${receiver.url}/info`, 'GET')).status).toBe(200);
});
