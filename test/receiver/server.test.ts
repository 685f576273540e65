import { createServer as createHttp } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { Agent, request } from 'undici';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { createReceiver, MemoryStore } from '../../src/receiver.ts';
import { call, makeRun, ROOT, raw, sendJson, start } from './wire.ts';

describe('every response', () => {
  test.each([
    ['a response', 'GET /info HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nConnection: close\r\n\r\n', 200],
    ['an error', 'GET /info HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n', 403],
    ['a response to invalid HTTP', 'hello\r\n\r\n', 400],
  ])('%s is JSON for this origin, cannot load or frame anything, and is not cached', async (_, bytes, status) => {
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

describe('invalid HTTP', () => {
  test.each([
    ['bytes', 'hello\r\n\r\n', 400],
    ['a header without end', `GET /info HTTP/1.1\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`, 431],
    ['two lengths', 'POST /runs HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx', 400],
  ])('%s gets a response in JSON', async (_, bytes, status) => {
    const receiver = await start();
    const text = await raw(receiver.url, bytes);
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n')))).toHaveProperty('detail');
    expect((await call(`${receiver.url}/info`, 'GET')).status).toBe(200);
  });
});

describe('listening', () => {
  test('a port in use is named in the error', async () => {
    const { url } = await start();
    const port = Number(new URL(url).port);
    await expect(createReceiver({ port })).rejects.toMatchObject({
      name: 'RunspanError',
      code: 'RUNSPAN_ADDRESS_IN_USE',
      message: expect.stringMatching(new RegExp(`^Port ${port} .*choose another`)),
      cause: { code: 'EADDRINUSE' },
    });
  });

  test('the url is the address on which the receiver listens', async () => {
    expect((await start()).url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await start({ host: '127.0.0.2' })).url).toMatch(/^http:\/\/127\.0\.0\.2:\d+$/);
    const local = await start({ host: 'localhost' });
    expect((await call(`${local.url}/info`, 'GET')).status).toBe(200);
  });
});

describe('close', () => {
  test('does not wait for idle connections', async () => {
    const receiver = await createReceiver();
    const agent = new Agent({ keepAliveTimeout: 60_000 });
    onTestFinished(() => agent.destroy());
    await (await request(`${receiver.url}/info`, { dispatcher: agent })).body.text();
    const silent = connect(Number(new URL(receiver.url).port), '127.0.0.1');
    await new Promise((resolve) => silent.once('connect', resolve));
    const ended = new Promise((resolve) => silent.once('close', resolve).on('error', () => {}));
    // The timer of the limit never fires.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await receiver.close();
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
    await ended;
    await expect(request(`${receiver.url}/info`)).rejects.toThrow();
  });

  test('ends a request that takes longer than 2 seconds', async () => {
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

  test('may be called again', async () => {
    const receiver = await createReceiver();
    await Promise.all([receiver.close(), receiver.close()]);
    await receiver.close();
  });

  test('waits for a pending request, and stored runs stay readable', async () => {
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

describe('a store that fails', () => {
  /** Starts a receiver with a broken store, and collects the log lines. */
  async function startOver(broken: Partial<MemoryStore>) {
    const lines: string[] = [];
    diagnostics.setLog((_, message) => lines.push(message));
    onTestFinished(() => diagnostics.setLog('warn'));
    return { lines, receiver: await start({ store: Object.assign(new MemoryStore(), broken) }) };
  }

  test('causes 500, and the server continues', async () => {
    const { lines, receiver } = await startOver({ apply: () => Promise.reject(new Error('disk full')) });
    const reply = await sendJson(receiver, 'POST', '/runs', { ...makeRun(), inputs: {} });
    expect(reply).toMatchObject({ status: 500, body: { detail: expect.any(String) } });
    expect(JSON.stringify(reply.body)).not.toContain('disk full');
    expect(lines).toEqual(['the receiver could not answer a request: disk full']);
    expect((await call(`${receiver.url}/info`, 'GET')).status).toBe(200);
  });

  test('causes 500 if its result cannot be serialized', async () => {
    const name = {
      toJSON: () => {
        throw new RangeError('Invalid string length');
      },
    } as unknown as string;
    const { lines, receiver } = await startOver({
      projects: async () => [{ name, traces: 1, last_start_time: '' }],
    });
    expect((await call(`${receiver.url}/query/projects`, 'GET')).status).toBe(500);
    expect(lines).toEqual(['the receiver could not answer a request: Invalid string length']);
    expect((await call(`${receiver.url}/info`, 'GET')).status).toBe(200);
  });

  test('ends a response that has started, and the error is logged', async () => {
    const { lines, receiver } = await startOver({ changes: () => Promise.reject(new Error('disk full')) });
    await expect(call(`${receiver.url}/query/changes`, 'GET')).rejects.toThrow();
    expect(lines).toEqual(['the receiver could not answer a request: disk full']);
  });
});
