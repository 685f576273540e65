import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createNetServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { EnvHttpProxyAgent } from 'undici';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { HttpClient } from '../../src/http/client.ts';
import { environmentProxies, type NamedProxy, type Proxies, proxyFor } from '../../src/http/connections.ts';
import { failureOf } from '../../src/http/errors.ts';
import { told } from '../support/told.ts';
import { serve } from './server.ts';

/** The environment has no proxies but these. */
function environmentOf(variables: Record<string, string>): void {
  for (const name of ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'])
    vi.stubEnv(name, variables[name]);
  onTestFinished(() => void vi.unstubAllEnvs());
}

interface TestProxy {
  readonly url: string;
  readonly asked: readonly { readonly target: string | undefined; readonly authorization: string | undefined }[];
}

/** A proxy that opens tunnels to this machine, whatever name it is asked for; or answers with a status, or never. */
async function proxy(answer: number | 'hold' = 200): Promise<TestProxy> {
  const asked: { target: string | undefined; authorization: string | undefined }[] = [];
  const sockets = new Set<Socket>();
  const server = createServer();
  server.on('connect', (request, socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    asked.push({ target: request.url, authorization: request.headers['proxy-authorization'] });
    if (answer === 'hold') return;
    if (answer !== 200) return void socket.end(`HTTP/1.1 ${answer} No\r\n\r\n`);
    const port = Number(request.url?.split(':')[1]);
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    sockets.add(onward);
    onward.on('error', () => socket.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** An address at which nobody listens. */
async function nobody(): Promise<string> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return `127.0.0.1:${port}`;
}

/** A proxy for both kinds of endpoints. */
function byProxy(address: string, except = ''): Proxies {
  const proxy = { address, variable: 'HTTP_PROXY' } as const;
  return { http: proxy, https: proxy, except };
}

function clientTo(endpoint: string, proxies: Proxies): HttpClient {
  const client = new HttpClient({
    endpoint: new URL(endpoint),
    headers: { 'x-api-key': 'k-1' },
    connectTimeoutMs: 5_000,
    requestTimeoutMs: 10_000,
    proxies,
  });
  onTestFinished(() => client.destroy());
  return client;
}

/** The port of a service, under a name that is not this machine's. */
const named = (url: string, host = 'service.test'): string => url.replace('127.0.0.1', host);
const GET = { method: 'GET', path: '/info' } as const;

describe('the environment', () => {
  const named = (address: string, variable: NamedProxy['variable']): NamedProxy => ({ address, variable });

  test.each<[Record<string, string>, Partial<Proxies> | undefined]>([
    [{}, undefined],
    [{ NO_PROXY: 'a' }, undefined],
    [{ HTTPS_PROXY: 'http://p:1' }, { https: named('http://p:1', 'HTTPS_PROXY'), http: undefined }],
    [
      { https_proxy: 'http://lower:1', HTTPS_PROXY: 'http://upper:1' },
      { https: named('http://lower:1', 'https_proxy') },
    ],
    [
      { HTTP_PROXY: ' https://p:1 ', no_proxy: 'a,b', NO_PROXY: 'c' },
      { http: named('https://p:1', 'HTTP_PROXY'), except: 'a,b' },
    ],
    [{ HTTP_PROXY: 'p:3128' }, { http: named('http://p:3128', 'HTTP_PROXY') }],
    [
      { HTTP_PROXY: '', HTTPS_PROXY: 'http://p:1', NO_PROXY: 'c' },
      { http: undefined, except: 'c' },
    ],
  ])('with %j names the proxies %j', (variables, expected) => {
    environmentOf(variables);
    if (expected === undefined) expect(environmentProxies()).toBeUndefined();
    else expect(environmentProxies()).toMatchObject(expected);
  });

  test.each(['socks4://me:sk-secret@p:1', 'http://me:sk-secret@', 'http://me:sk secret@p:99999'])(
    'that names %s is told so in one line, without the address',
    (address) => {
      const lines = told();
      environmentOf({ HTTPS_PROXY: address });
      expect(environmentProxies()).toBeUndefined();
      expect(lines).toEqual(['warn: configuration: HTTPS_PROXY is no http or https address; it is left out.']);
    },
  );
});

describe('the proxy for an endpoint', () => {
  const http = { address: 'http://h:1', variable: 'HTTP_PROXY' } as const;
  const https = { address: 'http://s:1', variable: 'HTTPS_PROXY' } as const;
  const both = { http, https, except: '' };

  test.each<[string, Proxies | undefined, ReturnType<typeof proxyFor>]>([
    ['http://service.test', undefined, 'none is named'],
    ['http://service.test', both, http],
    ['https://service.test', both, https],
    ['https://service.test', { ...both, https: undefined }, http],
    ['http://service.test', { ...both, http: undefined }, 'none is named'],
    ['http://127.0.0.1:4777', both, 'this machine'],
    ['http://127.0.0.1:4777', { ...both, http: undefined }, 'none is named'],
  ])('%s, with %j, is %j', (endpoint, proxies, expected) => {
    expect(proxyFor(new URL(endpoint), proxies)).toEqual(expected);
  });

  test.each([
    ['service.test', true],
    ['SERVICE.test', true],
    ['.test', true],
    ['*.test', true],
    ['test', true],
    ['*', true],
    ['other.test,service.test', true],
    [' other.test  service.test ', true],
    ['service.test:443', true],
    ['[fe80::1]', false],
    ['service.test:80', false],
    ['other.test', false],
    ['ervice.test', false],
    ['a.service.test', false],
    ['*,other.test', false],
    [',', false],
    ['', false],
  ])('is none with an exception for "%s": %s, as undici has it', (except, isException) => {
    const found = proxyFor(new URL('https://Service.test/api'), { ...both, except });
    expect(found).toEqual(isException ? 'an exception' : https);
    expect(isReachedDirectly('https://service.test', except)).toBe(isException);
  });

  test.each([
    ['http://[fe80::1]', '[fe80::1]', true],
    ['http://service.test', 'service.test:80', true],
    ['http://service.test:81', 'service.test:80', false],
    ['http://service.test:81', 'service.test:081', true],
  ])('to %s is none with an exception for "%s": %s, as undici has it', (endpoint, except, isException) => {
    expect(proxyFor(new URL(endpoint), { ...both, except })).toEqual(isException ? 'an exception' : http);
    expect(isReachedDirectly(endpoint, except)).toBe(isException);
  });
});

/** What undici itself does, told by the connector that a pool gets: ours, or that of a proxy. */
function isReachedDirectly(origin: string, noProxy: string): boolean {
  const connect = (): void => {};
  let isDirect = false;
  const agent = new EnvHttpProxyAgent({
    httpProxy: 'http://h:1',
    httpsProxy: 'http://s:1',
    noProxy,
    connect,
    factory: (_: unknown, options: { connect?: unknown }) => {
      isDirect = options.connect === connect;
      throw new Error('far enough');
    },
  });
  expect(() => agent.dispatch({ origin, path: '/', method: 'GET' }, {})).toThrow('far enough');
  return isDirect;
}

describe('a proxy', () => {
  test('is asked for a tunnel to the endpoint, with its own credentials, and never sees the key', async () => {
    const { url, seen } = await serve();
    const by = await proxy();
    const http = by.url.replace('http://', 'http://me:p%40ss@');
    expect((await clientTo(named(url), byProxy(http)).send(GET)).status).toBe(204);
    const authorization = `Basic ${Buffer.from('me:p@ss').toString('base64')}`;
    expect(by.asked).toEqual([{ target: named(url).slice('http://'.length), authorization }]);
    expect(seen[0]?.headers).toMatchObject({ 'x-api-key': 'k-1', host: named(url).slice('http://'.length) });
    expect(seen[0]?.headers).not.toHaveProperty('proxy-authorization');
  });

  test.each(['127.0.0.1', 'localhost'])('is not asked for %s', async (host) => {
    const { url } = await serve();
    const by = await proxy();
    const local = clientTo(named(url, host), byProxy(by.url));
    expect((await local.send(GET)).status).toBe(204);
    expect(by.asked).toEqual([]);
  });

  test.each([
    ['service.test', 0],
    ['.test', 0],
    ['*', 0],
    ['other.test, service.test', 0],
    ['other.test', 1],
    ['service.test:1', 1],
  ])('with exceptions for %s is asked %i times', async (except, times) => {
    const { url } = await serve();
    const by = await proxy();
    // Without the proxy the name leads nowhere.
    await clientTo(named(url), byProxy(by.url, except))
      .send({ ...GET, timeoutMs: 2_000 })
      .catch(() => {});
    expect(by.asked).toHaveLength(times);
  });

  test('for https is asked with the name of the host alone', async () => {
    const by = await proxy(502);
    await expect(clientTo('https://service.test', byProxy(by.url)).send(GET)).rejects.toThrow('502');
    expect(by.asked).toEqual([{ target: 'service.test:443', authorization: undefined }]);
  });

  test('is not used beside a dispatcher that was passed in', async () => {
    const by = await proxy();
    const sent: unknown[] = [];
    const dispatcher = {
      request: async (options: unknown) => {
        sent.push(options);
        return { statusCode: 204, headers: {}, body: Readable.from([]) };
      },
    };
    const client = new HttpClient({
      endpoint: new URL('http://service.test'),
      headers: {},
      connectTimeoutMs: 5_000,
      requestTimeoutMs: 5_000,
      proxies: byProxy(by.url),
      dispatcher: dispatcher as never,
    });
    expect((await client.send(GET)).status).toBe(204);
    expect([sent.length, by.asked.length]).toEqual([1, 0]);
  });

  test.each(['http://service.test', 'https://service.test'])(
    'that accepts connections and closes them is connected to once per request, for %s',
    async (endpoint) => {
      let connections = 0;
      const server = createNetServer((socket) => {
        connections++;
        socket.on('error', () => {});
        socket.end();
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      onTestFinished(() => void server.close());
      const { port } = server.address() as AddressInfo;
      const client = clientTo(endpoint, byProxy(`http://127.0.0.1:${port}`));
      for (let sent = 1; sent <= 5; sent++) {
        await expect(client.send(GET)).rejects.toThrow();
        expect(connections).toBe(sent);
      }
    },
  );

  test.each(['http://service.test', 'https://service.test'])(
    'that refuses the connection is the one to check, for %s, and its credentials are not told',
    async (endpoint) => {
      const by = `http://me:sk-secret@${await nobody()}`;
      const thrown = await clientTo(endpoint, byProxy(by))
        .send(GET)
        .catch((error) => error);
      expect(failureOf(thrown)).toEqual({
        detail: 'the proxy cannot be reached; check it, and HTTP_PROXY and HTTPS_PROXY (ECONNREFUSED)',
        problem: 'the proxy cannot be reached (ECONNREFUSED)',
        advice: 'check it, and HTTP_PROXY and HTTPS_PROXY',
        code: 'ECONNREFUSED',
        isLasting: false,
        mayHaveArrived: false,
        isUnsent: true,
      });
    },
  );
});
