import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { Agent, request } from 'undici';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { receiverRoutes } from '#src/receiver/all-routes.ts';
import { Access } from '#src/receiver/http/access/access.ts';
import { FixedKeys } from '#src/receiver/http/access/keyring.ts';
import { TokenSigner } from '#src/receiver/http/access/token-signer.ts';
import { Faults } from '#src/receiver/http/server/faults.ts';
import { listen, type ServerLimits } from '#src/receiver/http/server/server.ts';
import { createReceiver, DEFAULT_SCOPE, MemoryStore, parsedQuery, type Receiver, type Store } from '#src/receiver.ts';
import { cases } from '../support/campaign.ts';
import { gate } from '../support/gate.ts';
import { logLines } from '../support/log-lines.ts';
import { CHILD, call, makeRun, ROOT, raw, sendJson, start, startWithin } from './wire.ts';

test.each([
  ['a response', 'GET /info HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n', 200],
  ['an error', 'GET /info HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n', 403],
  [
    'a response to a long URL',
    `GET /nothing?${'x'.repeat(60_000)} HTTP/1.1\r\nConnection: close\r\nHost: HOST\r\n\r\n`,
    404,
  ],
  ['a response to other bytes than HTTP', 'hello\r\n\r\n', 400],
  ['a response to a header without end', `GET /info HTTP/1.1\r\nX: ${'x'.repeat(66_000)}\r\n\r\n`, 431],
  ['a response to two lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
])('%s is JSON for this origin, cannot load or frame anything, and is not cached', async (_, bytes, status) => {
  const receiver = await start();
  const text = await raw(receiver.url, bytes.replace('HOST', new URL(receiver.url).host));
  const [head = '', body = ''] = text.split('\r\n\r\n', 2);
  expect(head.split('\r\n')).toEqual(
    expect.arrayContaining([
      expect.stringMatching(`^HTTP/1.1 ${status} `),
      'content-type: application/json',
      'x-content-type-options: nosniff',
      'cross-origin-resource-policy: same-origin',
      'referrer-policy: no-referrer',
      "content-security-policy: default-src 'none'; frame-ancestors 'none'",
      'cache-control: no-store',
    ]),
  );
  expect(JSON.parse(body)).toHaveProperty(status === 200 ? 'version' : 'detail');
  expect((await call(`${receiver.url}/info`, 'GET')).status).toBe(200);
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

/** The receiver answers with "100 Continue", and then waits for the body. */
const UNFINISHED =
  'POST /runs HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n';

/** Opens connections, and sends the text in each. */
async function open(
  receiver: Pick<Receiver, 'url'>,
  count: number,
  text: string,
  localAddress = '127.0.0.1',
): Promise<Socket[]> {
  const { host, port } = new URL(receiver.url);
  const sockets = Array.from({ length: count }, () => connect({ port: Number(port), host: '127.0.0.1', localAddress }));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (const socket of sockets) socket.on('error', () => {}).write(text.replaceAll('HOST', host));
  await Promise.all(sockets.map((socket) => socket.readyState === 'open' || once(socket, 'connect')));
  return sockets;
}

describe('at the limit of connections', () => {
  const MAX = 20;
  const startSmall = () => startWithin(new MemoryStore(), { connectionsMax: MAX });
  const GET = 'GET /info HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';
  test.each([
    ['silent', ''],
    ['idle', GET],
  ])('a client with more %s connections closes none of another address, and keeps nobody out', async (_, text) => {
    const receiver = await startSmall();
    const [other] = (await open(receiver, 1, GET, '127.0.0.2')) as [Socket];
    await once(other, 'data');
    await open(receiver, MAX + 5, text);
    expect((await call(`${receiver.url}/info`, 'GET')).status).toBe(200);
    other.write(GET);
    const [answer] = await once(other, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1\.1 /);
  });

  test('a new connection is closed if all have pending requests, until one has ended', async () => {
    const receiver = await startSmall();
    const sockets = await open(receiver, MAX, UNFINISHED);
    await Promise.all(sockets.map((socket) => once(socket, 'data')));
    const [late] = (await open(receiver, 1, GET)) as [Socket];
    await once(late, 'close');
    const first = sockets[0] as Socket;
    first.write('{}');
    await once(first, 'data');
    expect((await call(`${receiver.url}/info`, 'GET')).status).toBe(200);
  });

  const LOGIN = 'POST /login HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n';
  /** What clients without a key send. The store never answers `/readyz`. */
  const STRANGERS = [
    '',
    'GET /info HTTP/1.1\r\nHost: HO',
    `${LOGIN}Content-Length: 100\r\n\r\n`,
    `${LOGIN}Transfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(100)}`,
    UNFINISHED,
    UNFINISHED.replace('\r\n', '\r\nX-Api-Key: wrong\r\n'),
    'GET /readyz HTTP/1.1\r\nHost: HOST\r\n\r\n'.repeat(9),
    'GET / HTTP/1.1\r\nHost: HOST\r\n\r\n'.repeat(9),
    'GET /info HTTP/1.1\r\nHost: HOST\r\n\r\n'.repeat(99),
  ];
  const withKey = ({ url }: Pick<Receiver, 'url'>) =>
    raw(url, `GET /info/x HTTP/1.1\r\nHost: ${new URL(url).host}\r\nX-Api-Key: secret\r\nConnection: close\r\n\r\n`);

  test('clients without a key keep nobody with a key out, whatever they send [security 9]', async () => {
    const property = async (first: number, groups: readonly [string, number, number][]) => {
      const store = Object.assign(new MemoryStore(), { tokenSecrets: () => new Promise<never>(() => {}) });
      const rules = { host: '127.0.0.1', keys: new FixedKeys('secret', undefined) };
      const access = new Access(rules, new TokenSigner(store));
      const receiver = await startWithin(store, { connectionsMax: 5, closeMs: 0 }, { access, readyMs: 1e6 });
      const text = UNFINISHED.replace('\r\n', '\r\nX-Api-Key: secret\r\n');
      const [pending] = (await open(receiver, 1, text, `127.0.0.${first}`)) as [Socket];
      await once(pending, 'data');
      const strangers: Socket[] = [];
      for (const [sent, count, address] of groups) {
        const opened = await open(receiver, count, GET + sent, `127.0.0.${address}`);
        // With its first response, the receiver has read everything that a client has sent.
        const read = (socket: Socket) =>
          new Promise((resolve) => (socket.closed ? resolve(0) : socket.once('data', resolve).once('close', resolve)));
        await Promise.all(opened.map(read));
        for (const socket of opened) if (strangers.push(socket) % 4 === 0) socket.end();
      }
      expect(await withKey(receiver)).toMatch(/^HTTP\/1.1 404 /);
      pending.write('{}');
      expect(String((await once(pending, 'data'))[0])).toMatch(/^HTTP\/1.1 4/);
      for (const socket of [pending, ...strangers]) socket.destroy();
      await receiver.close();
    };
    const [address, count] = [fc.integer({ min: 1, max: 3 }), fc.integer({ min: 5, max: 9 })];
    const groups = fc.array(fc.tuple(fc.constantFrom(...STRANGERS), count, address), { maxLength: 6 });
    await fc.assert(fc.asyncProperty(address, groups, property), { numRuns: cases(40) });
  });

  test('2,000 clients without a key keep at most 1,000 connections, and one with a key is answered', async () => {
    const receiver = await start({ apiKey: 'secret' });
    const sockets: Socket[] = [];
    // The system queues at most 511 connections that the receiver has not accepted.
    while (sockets.length < 2_000) sockets.push(...(await open(receiver, 250, UNFINISHED)));
    expect(await withKey(receiver)).toMatch(/^HTTP\/1.1 404 /);
    const closed = () => sockets.filter((socket) => socket.resume().closed).length;
    await expect.poll(closed).toBeGreaterThan(1_000);
  });
});

test('a connection is closed if more than 16 of its requests wait for a response', async () => {
  const { url } = await start();
  const head = `GET /info HTTP/1.1\r\nHost: ${new URL(url).host}\r\n`;
  const requests = (count: number) => `${`${head}\r\n`.repeat(count - 1)}${head}Connection: close\r\n\r\n`;
  expect((await raw(url, requests(16))).match(/HTTP\/1.1 200/g)).toHaveLength(16);
  expect(await raw(url, requests(17))).toBe('');
});

test('a connection ends all its requests, also those that wait for an earlier response', async () => {
  const store = new MemoryStore();
  const [subscribe, left] = [store.subscribe.bind(store), vi.fn()];
  const subscribed = vi.spyOn(store, 'subscribe').mockImplementation((...args) => {
    const leave = subscribe(...args);
    return () => void left(leave());
  });
  const { url } = await startWithin(store, {});
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(`GET /query/changes HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`.repeat(12));
  await expect.poll(() => subscribed).toHaveBeenCalledTimes(12);
  expect(left).not.toHaveBeenCalled();
  socket.destroy();
  await expect.poll(() => left).toHaveBeenCalledTimes(12);
});

describe('the time limit of a request', () => {
  const LIMIT_MS = 200;
  const FEEDBACK = [1, 2].map((score) => ({
    id: `${CHILD.slice(0, -1)}${score}`,
    run_id: ROOT,
    key: 'k',
    score,
  }));

  async function startLimited(store: Store = new MemoryStore(), limits: ServerLimits = {}): Promise<string> {
    return (await startWithin(store, { requestTimeoutMs: LIMIT_MS, ...limits })).url;
  }

  /** Yields the text in two parts, the second one after the limit. */
  async function* slowly(text: string): AsyncGenerator<string> {
    yield text.slice(0, 5);
    await delay(2 * LIMIT_MS);
    yield text.slice(5);
  }

  async function post(url: string, path: string, text: string): Promise<unknown[]> {
    const headers = { 'content-type': 'application/json' };
    const reply = await request(url + path, { method: 'POST', headers, body: Readable.from(slowly(text)) });
    return [reply.statusCode, await reply.body.json()];
  }

  test('ends a body that arrives too slowly, and sooner for a route that needs no key', async () => {
    const body = { detail: 'Invalid HTTP request: Request timeout' };
    expect(await post(await startLimited(), '/runs', JSON.stringify(makeRun()))).toEqual([408, body]);
    const url = await startLimited(undefined, { requestTimeoutMs: 60_000, openTimeoutMs: LIMIT_MS });
    expect(await post(url, '/login', '{"key":"secret"}')).toEqual([408, body]);
    expect(await post(url, '/runs', JSON.stringify(makeRun({ inputs: {} })))).toEqual([202, { accepted: 1 }]);
  });

  test('does not apply to imports', async () => {
    const text = JSON.stringify({ format: 'runspan-trace', version: 1, runs: [makeRun()] });
    expect(await post(await startLimited(), '/query/import', text)).toEqual([200, { traces: 1, runs: 1 }]);
  });

  test('and the one for idle connections do not end an import while the store works', async () => {
    const store = new MemoryStore();
    const { addFeedback } = store;
    const slow: Store['addFeedback'] = async (...args) => {
      await delay(2 * LIMIT_MS);
      return addFeedback.apply(store, args);
    };
    const url = await startLimited(Object.assign(store, { addFeedback: slow }), { idleTimeoutMs: 3 * LIMIT_MS });
    const text = JSON.stringify({ format: 'runspan-trace', version: 1, runs: [makeRun()], feedback: FEEDBACK });
    expect(await post(url, '/query/import', text)).toEqual([200, { traces: 1, runs: 1 }]);
    expect(await store.feedback(DEFAULT_SCOPE, [ROOT])).toHaveLength(2);
  });

  test('an import ends if the client leaves while the store works', async () => {
    const [store, begun, left, aborting] = [new MemoryStore(), gate(), gate(), new AbortController()];
    const addFeedback = vi.spyOn(store, 'addFeedback').mockImplementation(async () => {
      begun.open();
      await left;
      return true;
    });
    const access = new Access({ host: '127.0.0.1' }, new TokenSigner(store));
    const routes = receiverRoutes({ store, strict: false, faults: new Faults(), access });
    const observed: typeof routes = (incoming, liftTimeout) => {
      incoming.socket.once('close', () => left.open());
      return routes(incoming, liftTimeout);
    };
    const { url, close } = await listen(observed, '127.0.0.1', 0);
    onTestFinished(close);
    const body = JSON.stringify({ format: 'runspan-trace', version: 1, runs: [makeRun()], feedback: FEEDBACK });
    const headers = { 'content-type': 'application/json' };
    const sending = request(`${url}/query/import`, { method: 'POST', headers, body, signal: aborting.signal });
    const failed = expect(sending).rejects.toThrow('abort');
    await begun;
    aborting.abort();
    await failed;
    await left;
    await close();
    expect(addFeedback).toHaveBeenCalledTimes(1);
    expect(await store.list(DEFAULT_SCOPE, parsedQuery({}))).toMatchObject({ items: [{ id: ROOT }] });
  });

  test('does not apply to responses', async () => {
    const url = await startLimited();
    const changes = await request(`${url}/query/changes`);
    await delay(2 * LIMIT_MS);
    await sendJson({ url }, 'POST', '/runs', makeRun({ inputs: {} }));
    let text = '';
    for await (const chunk of changes.body) {
      text += chunk;
      if (text.includes('event: change')) break;
    }
    expect(text).toContain(ROOT);
  });
});

describe('close', () => {
  test('ends all change streams, and Node warns of no leak', async () => {
    const warnings: Error[] = [];
    const warn = (warning: Error) => void warnings.push(warning);
    process.on('warning', warn);
    onTestFinished(() => void process.off('warning', warn));
    const receiver = await createReceiver();
    const streams = await Promise.all(Array.from({ length: 12 }, () => request(`${receiver.url}/query/changes`)));
    const texts = streams.map(({ body }) => body.text());
    await receiver.close();
    for (const text of await Promise.all(texts)) expect(text).toContain('event: ready');
    expect(warnings).toEqual([]);
  });

  const body = JSON.stringify({ ...makeRun(), inputs: {} });

  /** Sends the header of a POST request, and waits until the server asks for the body. */
  async function startPost(receiver: Receiver) {
    const { socket, ended } = await connectTo(receiver, UNFINISHED.replace('Length: 2', `Length: ${body.length}`));
    const chunks: string[] = [];
    socket.setEncoding('utf8').on('data', (chunk: string) => chunks.push(chunk));
    await once(socket, 'data');
    return { socket, chunks, ended };
  }

  async function connectTo(receiver: Receiver, text: string) {
    const [socket] = (await open(receiver, 1, text)) as [Socket];
    return { socket, ended: new Promise((resolve) => socket.once('close', resolve)) };
  }

  /** The timer that limits the wait does not fire by itself. */
  function stopTimers(): void {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  }

  test('does not wait for idle connections, and may be called again', async () => {
    const receiver = await createReceiver();
    const agent = new Agent({ keepAliveTimeout: 60_000 });
    onTestFinished(() => agent.destroy());
    await (await request(`${receiver.url}/info`, { dispatcher: agent })).body.text();
    const { ended } = await connectTo(receiver, '');
    stopTimers();
    await Promise.all([receiver.close(), receiver.close()]);
    await receiver.close();
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
    await ended;
    await expect(request(`${receiver.url}/info`)).rejects.toThrow();
  });

  test('ends a request that takes longer than 2 seconds', async () => {
    const receiver = await createReceiver();
    const { ended } = await startPost(receiver);
    let isCut = false;
    void ended.then(() => {
      isCut = true;
    });
    stopTimers();
    const closing = receiver.close();
    await vi.advanceTimersByTimeAsync(1_999);
    expect(isCut).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await closing;
    await ended;
  });

  test('waits for a pending request, and stored runs stay readable', async () => {
    const receiver = await createReceiver();
    // Ends with the request, although it has sent none.
    const silent = await connectTo(receiver, '');
    const { socket, chunks, ended } = await startPost(receiver);
    stopTimers();
    const closing = receiver.close();
    socket.write(body);
    await Promise.all([closing, ended, silent.ended]);
    expect(chunks.join('')).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 202 .*connection: close/is);
    expect(await receiver.trace(ROOT)).toHaveLength(1);
  });

  test('frees the port', async () => {
    const first = await createReceiver();
    await first.close();
    const second = await start({ port: Number(new URL(first.url).port) });
    expect(second.url).toBe(first.url);
  });
});

describe('a store that fails', () => {
  /** Starts a receiver with a broken store, and collects the log lines. */
  async function startOver(broken: Partial<MemoryStore>) {
    return { lines: logLines('warn'), receiver: await start({ store: Object.assign(new MemoryStore(), broken) }) };
  }

  test('causes 500, and the server continues', async () => {
    const { lines, receiver } = await startOver({ apply: () => Promise.reject(new Error('disk full')) });
    const reply = await sendJson(receiver, 'POST', '/runs', { ...makeRun(), inputs: {} });
    expect(reply).toMatchObject({ status: 500, body: { detail: 'Internal error: see the log of the receiver' } });
    expect(lines).toEqual(['error: the receiver could not answer a request: disk full']);
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
    expect(lines).toEqual(['error: the receiver could not answer a request: Invalid string length']);
    expect((await call(`${receiver.url}/info`, 'GET')).status).toBe(200);
  });

  test('logs nothing if the client disconnects before a streamed response starts', async () => {
    const { lines, receiver } = await startOver({
      outline: async () => {
        socket.destroy();
        await delay(50);
        return ['{}'];
      },
    });
    const { host, port } = new URL(receiver.url);
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(`GET /query/traces/${ROOT} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await new Promise((resolve) => socket.once('close', resolve));
    await delay(100);
    expect(lines).toEqual([]);
  });

  test('ends a response that has started, and the error is logged', async () => {
    const subscribe = () => {
      throw new Error('disk full');
    };
    const { lines, receiver } = await startOver({ subscribe });
    await expect(call(`${receiver.url}/query/changes`, 'GET')).rejects.toThrow();
    expect(lines).toEqual(['error: the receiver could not answer a request: disk full']);
  });
});
