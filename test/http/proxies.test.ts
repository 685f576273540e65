import { createServer as createNetServer } from 'node:net';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { EnvHttpProxyAgent } from 'undici';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { HttpClient } from '#src/http/client.ts';
import { environmentProxies, type NamedProxy, type Proxies, proxyFor } from '#src/http/connections.ts';
import { failureOf } from '#src/http/failure.ts';
import { createExporter } from '#src/runspan.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { logLines } from '../support/log-lines.ts';
import { byProxy, named, proxy } from './proxy.ts';
import { serve } from './server.ts';

/** The environment has no proxies but these. */
function environmentOf(variables: Record<string, string>): void {
  for (const name of ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'])
    vi.stubEnv(name, variables[name]);
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

const GET = { method: 'GET', path: '/info' } as const;

describe('the environment', () => {
  const by = (address: string, variable: NamedProxy['variable']): NamedProxy => ({ address, variable });

  test.each<[Record<string, string>, Partial<Proxies>]>([
    [{ HTTPS_PROXY: 'http://p:1' }, { https: by('http://p:1', 'HTTPS_PROXY'), http: undefined }],
    [{ https_proxy: 'http://lower:1', HTTPS_PROXY: 'http://u:1' }, { https: by('http://lower:1', 'https_proxy') }],
    [{ HTTP_PROXY: ' https://p:1 ', no_proxy: 'a,b', NO_PROXY: 'c' }, { except: 'a,b' }],
    [{ HTTP_PROXY: ' https://p:1 ' }, { http: by('https://p:1', 'HTTP_PROXY'), except: '' }],
    [{ HTTP_PROXY: 'p:3128' }, { http: by('http://p:3128', 'HTTP_PROXY') }],
    [
      { HTTP_PROXY: '', HTTPS_PROXY: 'http://p:1', NO_PROXY: 'c' },
      { http: undefined, except: 'c' },
    ],
  ])('%j sets the proxies %j', (variables, expected) => {
    environmentOf(variables);
    expect(environmentProxies()).toMatchObject(expected);
  });

  test.each([
    [{}, undefined],
    [{ NO_PROXY: 'a' }, undefined],
    [{ HTTPS_PROXY: 'socks4://me:sk-secret@p:1' }, 'HTTPS_PROXY'],
    [{ HTTP_PROXY: 'http://me:sk-secret@' }, 'HTTP_PROXY'],
    [{ http_proxy: 'http://me:sk secret@p:99999' }, 'http_proxy'],
  ])('%j sets no proxy; the line that names %s does not contain the address', (variables, name) => {
    const lines = logLines();
    environmentOf(variables as Record<string, string>);
    expect(environmentProxies()).toBeUndefined();
    const line = `warn: configuration: ${name} is not an http or https URL; the proxy is not used.`;
    expect(lines).toEqual(name === undefined ? [] : [line]);
  });
});

test('an exporter logs an invalid proxy once', async () => {
  const lines = logLines();
  environmentOf({ HTTP_PROXY: 'ftp://p:1' });
  await createExporter({ endpoint: 'http://127.0.0.1:9' }).close();
  const warnings = lines.filter((line) => line.startsWith('warn'));
  expect(warnings).toEqual(['warn: configuration: HTTP_PROXY is not an http or https URL; the proxy is not used.']);
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

  const matching = ['service.test', 'SERVICE.test', '.test', '*.test', 'test', '*', 'other.test,service.test'];
  const others = ['[fe80::1]', 'service.test:80', 'other.test', 'ervice.test', 'a.service.test', ',', ''];
  test.each([
    ['https://Service.test/api', true, [...matching, ' other.test  service.test ', 'service.test:443']],
    ['https://Service.test/api', false, others],
    ['http://[fe80::1]', true, ['[fe80::1]']],
    ['http://service.test', true, ['service.test:80']],
    ['http://service.test:81', true, ['service.test:081']],
    ['http://service.test:81', false, ['service.test:80']],
  ])('%s is an exception (%s) with NO_PROXY=%j, as in undici', (url, isException, exceptions) => {
    const endpoint = new URL(url);
    for (const except of exceptions) {
      const named = endpoint.protocol === 'https:' ? https : http;
      expect(proxyFor(endpoint, { ...both, except }), except).toEqual(isException ? 'an exception' : named);
      expect(isReachedDirectly(endpoint.origin, except), except).toBe(isException);
    }
  });
});

describe('an entry of NO_PROXY', () => {
  const http = { address: 'http://h:1', variable: 'HTTP_PROXY' } as const;
  const isDirect = (endpoint: string, except: string): boolean =>
    proxyFor(new URL(endpoint), { http, https: http, except }) === 'an exception';

  /** Spells an address of 32 or 128 bits. */
  function spelled(address: bigint, bits: number, isLong: boolean): string {
    const digits = address.toString(16).padStart(bits / 4, '0');
    if (bits === 32) return (digits.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16)).join('.');
    const long = (digits.match(/..../g) ?? []).join(':');
    return isLong ? long.toUpperCase() : new URL(`http://[${long}]`).hostname.slice(1, -1);
  }

  test('compares addresses and ranges by their bits, however they are written', () => {
    const cases = fc.constantFrom(32, 128).chain((bits) =>
      fc.tuple(
        fc.constant(bits),
        // The first byte is not that of loopback addresses.
        fc.bigInt({ min: 1n << BigInt(bits - 4), max: (1n << BigInt(bits - 2)) - 1n }),
        fc.nat(bits),
        fc.nat(bits - 1),
        fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
      ),
    );
    const property = fc.property(cases, ([bits, address, prefix, changed, [isLong, isBracketed, isSame]]) => {
      const other = isSame ? address : address ^ (1n << BigInt(bits - 1 - changed));
      const named = spelled(other, bits, false);
      fc.pre(!named.startsWith('127.'));
      const endpoint = `http://${bits === 32 ? named : `[${named}]`}:81`;
      const text = spelled(address, bits, isLong);
      const entry = isBracketed && bits === 128 ? `[${text}]` : text;
      expect(isDirect(endpoint, `other.test,${entry}`), entry).toBe(isSame);
      expect(isDirect(endpoint, `${entry}/${prefix}`), `${entry}/${prefix}`).toBe(isSame || prefix <= changed);
      if (entry !== text || bits === 32)
        for (const port of [81, 82]) expect(isDirect(endpoint, `${entry}:${port}`)).toBe(isSame && port === 81);
    });
    fc.assert(property, { numRuns: 500 });
  });

  test.each([
    ['http://10.1.2.3', '::ffff:10.1.2.3', true],
    ['http://[::ffff:10.1.2.3]', '10.0.0.0/8', true],
    ['http://[fd00::1]', '0.0.0.0/0', false],
    ['http://10.0.0.1', '0.1', false],
    ['http://service.test', 'other.test *', true],
    ['http://service.test', '*:81,*:80', true],
    ['http://service.test', '*:81', false],
    ['http://xn--mller-kva.test', 'MÜLLER.test', true],
    ['http://node-2', 'node-2', true],
  ])('%s is excepted by NO_PROXY=%s: %s', (endpoint, except, expected) => {
    expect(isDirect(endpoint, except)).toBe(expected);
  });

  test('that is not understood is reported by its position, once and without its text', () => {
    const lines = logLines();
    const odd =
      '10.0.0.0/33 fd00::/129 10.0.0.0/255.0.0.0 10.0.0.0/ 10.* 192.168. 010.0.0.1 fe80::1%eth0 a;b http://u:pw@h . 10.0.0.1-10.0.0.9';
    const odds = odd.split(' ');
    for (const entry of odds) expect(isDirect('http://10.0.0.1', entry), entry).toBe(false);
    environmentOf({ HTTP_PROXY: 'http://p:1', NO_PROXY: `*.test,.svc,[::1]:8080,::1 ${odd} a_b` });
    environmentProxies();
    environmentProxies();
    const positions = odds.map((_, at) => at + 5).join(', ');
    expect(lines).toEqual([
      `warn: configuration: expected NO_PROXY to list host names, addresses and ranges; ignored entries: ${positions}.`,
    ]);
  });
});

/** Whether undici itself uses no proxy: the pool then has our connector. */
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
  test('opens a tunnel to the endpoint, receives its own credentials, and never sees the key', async () => {
    const { url, seen } = await serve();
    const by = await proxy();
    const http = by.url.replace('http://', 'http://me:p%40ss@');
    expect((await clientTo(named(url), byProxy(http)).send(GET)).status).toBe(204);
    const authorization = `Basic ${Buffer.from('me:p@ss').toString('base64')}`;
    expect(by.asked).toEqual([{ target: named(url).slice('http://'.length), authorization }]);
    expect(seen[0]?.headers).toMatchObject({ 'x-api-key': 'k-1', host: named(url).slice('http://'.length) });
    expect(seen[0]?.headers).not.toHaveProperty('proxy-authorization');
  });

  test.each([
    ['127.0.0.1', '', 0],
    ['localhost', '', 0],
    ['service.test', 'other.test, service.test', 0],
    ['service.test', 'other.test', 1],
  ])('for %s, with exceptions for "%s", receives %i requests', async (host, except, times) => {
    const { url } = await serve();
    const by = await proxy();
    // Without the proxy, the name leads nowhere.
    const sent = clientTo(named(url, host), byProxy(by.url, except)).send({ ...GET, timeoutMs: 2_000 });
    await sent.catch(() => {});
    expect(by.asked).toHaveLength(times);
  });

  test('receives only the host name of an HTTPS endpoint', async () => {
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
    'that closes its connections is connected to once per request, for %s',
    async (endpoint) => {
      let connections = 0;
      const server = createNetServer((socket) => {
        connections++;
        socket.on('error', () => {});
        socket.end();
      });
      const client = clientTo(endpoint, byProxy(await listenInTest(server)));
      for (let sent = 1; sent <= 5; sent++) {
        await expect(client.send(GET)).rejects.toThrow();
        expect(connections).toBe(sent);
      }
    },
  );

  test('that refuses the connection is named in the error, without its credentials', async () => {
    // Nobody listens on port 1.
    const proxies = byProxy('http://me:sk-secret@127.0.0.1:1');
    for (const endpoint of ['http://service.test', 'https://service.test']) {
      const thrown = await clientTo(endpoint, proxies)
        .send(GET)
        .catch((error) => error);
      expect(failureOf(thrown)).toEqual({
        detail: 'the proxy cannot be reached; check the proxy, HTTP_PROXY and HTTPS_PROXY (ECONNREFUSED)',
        problem: 'the proxy cannot be reached (ECONNREFUSED)',
        advice: 'check the proxy, HTTP_PROXY and HTTPS_PROXY',
        code: 'ECONNREFUSED',
        isLasting: false,
        mayHaveArrived: false,
        isUnsent: true,
      });
    }
  });
});
