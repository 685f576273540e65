import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { types } from 'node:util';
import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import {
  type ConfigureOptions,
  configure,
  createExporter,
  type Exporter,
  flush,
  shutdown,
  startRun,
  traceable,
  withExporter,
} from '#src/index.ts';
import { unhandledRejections } from './base/rejections.ts';
import { exporterTo } from './support/delivering.ts';
import { environmentOf } from './support/environment.ts';
import { type Answer, type IngestServer, ingestServerInTest, type Received } from './support/ingest-server.ts';
import { testFolder } from './support/test-folder.ts';

const CREDENTIALS = ['x-api-key', 'x-tenant-id', 'authorization', 'cookie', 'x-team'];

const SECRET = 'GET https://vault.example/v1?token=hvs.CAESIabcdef: 403 for lsv2_pt_0123456789abcdef';

const throwing: ProxyHandler<Error> = {
  get() {
    throw new Error('it cannot be read');
  },
};

async function service(reply?: (request: Received) => Answer): Promise<IngestServer> {
  return ingestServerInTest(reply);
}

/** Connects to 127.0.0.1 regardless of the host. */
function connectingHere(): Agent {
  const here = [{ address: '127.0.0.1', family: 4 }];
  const agent = new Agent({ connect: { lookup: (_host, _options, found) => found(null, here) } });
  onTestFinished(() => agent.destroy());
  return agent;
}

function credentials({ received }: IngestServer): Record<string, unknown> {
  const { headers } = received.at(-1) as Received;
  return Object.fromEntries(CREDENTIALS.filter((name) => name in headers).map((name) => [name, headers[name]]));
}

interface Sent {
  readonly credentials: Record<string, unknown>;
  readonly lines: readonly string[];
}

/** Returns the credentials with which a run is sent, and the logged warnings. */
async function sendOne(
  how: 'configure' | 'createExporter',
  options: ConfigureOptions,
  server: IngestServer,
): Promise<Sent> {
  const lines: string[] = [];
  const log: ConfigureOptions['log'] = (level, line) => level !== 'debug' && void lines.push(line);
  const exporter: Exporter = (how === 'configure' ? configure : createExporter)({ ...options, log });
  startRun({ name: 'ask', exporter }).end();
  expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
  return { credentials: credentials(server), lines };
}

// Each test is a program that has just started.
beforeEach(() => {
  environmentOf();
  diagnostics.forgetPlaces();
});
afterEach(() => shutdown({ timeoutMs: 1 }));

describe('the key and the workspace of the environment', () => {
  const both = { 'x-api-key': 'key-of-environment', 'x-tenant-id': 'workspace-of-environment' };
  const workspace = { 'x-tenant-id': 'workspace-of-environment' };
  const here = 'here';
  const elsewhere = 'https://service.example';

  test.each<[string, 'configure' | 'createExporter', ConfigureOptions, string | undefined, object, boolean]>([
    ['go to RUNSPAN_ENDPOINT', 'configure', {}, here, both, false],
    ['go to RUNSPAN_ENDPOINT from `createExporter`', 'createExporter', {}, here, both, false],
    ['go to another path of its origin', 'createExporter', { endpoint: '/v2' }, here, both, false],
    ['stay away from another origin', 'configure', { endpoint: '/' }, elsewhere, {}, true],
    ['stay away from another origin of `createExporter`', 'createExporter', { endpoint: '/' }, elsewhere, {}, true],
    ['go to the only endpoint, by `configure`', 'configure', { endpoint: '/' }, undefined, both, false],
    ['stay away from an endpoint of `createExporter` alone', 'createExporter', { endpoint: '/' }, undefined, {}, true],
    [
      'yield to an option',
      'createExporter',
      { endpoint: '/', apiKey: 'own' },
      elsewhere,
      { 'x-api-key': 'own' },
      false,
    ],
    ['do not replace an empty key', 'configure', { apiKey: '' }, here, workspace, false],
  ])('%s', async (_, how, { endpoint, ...options }, environment, expected, isLogged) => {
    const server = await service();
    vi.stubEnv('RUNSPAN_API_KEY', 'key-of-environment');
    vi.stubEnv('RUNSPAN_WORKSPACE_ID', 'workspace-of-environment');
    if (environment !== undefined) vi.stubEnv('RUNSPAN_ENDPOINT', environment === here ? server.url : environment);
    const address = endpoint === undefined ? {} : { endpoint: server.url + endpoint };
    const sent = await sendOne(how, { ...options, ...address }, server);
    expect(sent.credentials).toEqual(expected);
    expect(sent.lines).toEqual(isLogged ? [expect.stringContaining('`apiKey`')] : []);
    expect(sent.lines.join()).not.toContain('key-of-environment');
  });
});

describe('the log line about an omitted credential', () => {
  const environment = { RUNSPAN_API_KEY: 'key-of-environment' };
  const https = { RUNSPAN_ENDPOINT: 'https://ours.example', ...environment };
  const secret = 'k-1234567';

  test.each<[string, Record<string, string>, object, string]>([
    ['a key of RUNSPAN_ENDPOINT', https, {}, 'RUNSPAN_ENDPOINT has another origin'],
    ['a key of the environment', environment, {}, 'RUNSPAN_ENDPOINT is unset'],
    ['a key over plain HTTP', {}, { apiKey: secret }, 'plain HTTP'],
    ['a header over plain HTTP', {}, { headers: { authorization: secret } }, 'header `authorization`'],
    ['a key in the headers', {}, { headers: { 'X-API-Key': secret } }, 'header `x-api-key` is not sent to'],
    ['a workspace in the headers', {}, { headers: { 'x-tenant-id': secret } }, 'use `workspaceId`'],
    ['a key of another type', {}, { apiKey: Promise.resolve(secret) }, 'expected `apiKey` to be a string'],
    ['a key with a blank', {}, { apiKey: `${secret} ${secret}` }, 'the API key has characters'],
    ['a key of 8193 characters', {}, { apiKey: 'k'.repeat(8193) }, 'the API key has more than 8192 characters'],
  ])('contains the origin, once for each: %s', async (_, variables, options, expected) => {
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
    const lines: string[] = [];
    const log: ConfigureOptions['log'] = (level, line) => level !== 'debug' && void lines.push(line);
    const origins = ['http://one.example', 'http://two.example:8080'];
    for (const endpoint of [...origins, ...origins]) createExporter({ endpoint: `${endpoint}/v1`, log, ...options });
    expect(lines).toEqual(origins.map((origin) => expect.stringMatching(`${origin}[,; ]`)));
    expect(lines.filter((line) => !line.includes(expected))).toEqual([]);
    expect(lines.join()).not.toMatch(/1234567|kkk|environment[^ ]/);
  });
});

describe('credentials in `headers`', () => {
  const headers = { Authorization: 'Bearer b-1234567', cookie: 'session=s-1234567', 'x-team': 'a' };
  const all = { authorization: 'Bearer b-1234567', cookie: 'session=s-1234567', 'x-team': 'a' };

  test.each<[string, string, ConfigureOptions, object, string[]]>([
    ['are sent to this machine', '127.0.0.1', { headers }, all, []],
    ['stay away from plain HTTP to another host', 'service.example', { headers }, { 'x-team': 'a' }, ['auth', 'cook']],
    ['go there with `allowInsecure`', 'service.example', { headers, allowInsecure: true }, all, []],
    [
      'stay away from it if a function returns them',
      'service.example',
      { headers: () => headers },
      { 'x-team': 'a' },
      ['auth', 'cook'],
    ],
    ['stay away from it if a function returns the key', 'service.example', { apiKey: () => 'k-1' }, {}, ['API key']],
  ])('%s', async (_, host, options, expected, named) => {
    const server = await service();
    const endpoint = server.url.replace('127.0.0.1', host);
    const sent = await sendOne('createExporter', { ...options, endpoint, dispatcher: connectingHere() }, server);
    expect(sent.credentials).toEqual(expected);
    expect(sent.lines).toEqual(named.map((name) => expect.stringContaining(name)));
    expect(sent.lines.join()).not.toContain('1234567');
  });

  test('include headers named as credentials, and any header whose value is a key', async () => {
    const server = await service();
    const endpoint = server.url.replace('127.0.0.1', 'service.example');
    const names = 'proxy-authorization x-auth-token x-secret ocp-apim-subscription-key x-goog-api-key api-key';
    const named = Object.fromEntries(names.split(' ').map((name) => [name, 'c-1234567']));
    const given = { ...named, 'x-a': 'Bearer abcdefghijk', 'x-b': `ghp_${'a1'.repeat(18)}`, 'x-c': 'plain' };
    await sendOne('createExporter', { headers: given, endpoint, dispatcher: connectingHere() }, server);
    const { headers: sent } = server.received.at(-1) as Received;
    expect(Object.keys(given).filter((name) => name in sent)).toEqual(['x-c']);
  });
});

describe('the variables of LangSmith', () => {
  /** Returns the endpoint and the log of a program that is configured by this environment only. */
  async function withEnvironment(variables: Record<string, string>): Promise<{ hosts: string[]; lines: string[] }> {
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
    const server = await service();
    const hosts: string[] = [];
    const agent = connectingHere();
    const dispatch = agent.dispatch.bind(agent);
    // The endpoint is https; nothing listens there.
    const port = new URL(server.url).port;
    agent.dispatch = (options, handler) => {
      hosts.push(String(options.origin));
      return dispatch({ ...options, origin: `http://127.0.0.1:${port}` }, handler);
    };
    const lines: string[] = [];
    configure({ dispatcher: agent, log: (level, line) => level !== 'debug' && void lines.push(line) });
    startRun({ name: 'ask' }).end();
    await flush();
    const key = server.received.at(-1)?.headers['x-api-key'];
    return { hosts: [...new Set(hosts.map((host) => `${host} ${String(key)}`))], lines };
  }

  // Its own client 0.10.5: `DEFAULT_API_URL` in utils/profiles.js, and `getLangSmithEnvironmentVariable` in utils/env.js.
  const theirs = 'https://api.smith.langchain.com their-key';

  test.each<[string, Record<string, string>, string[], unknown[]?]>([
    ['LANGSMITH_TRACING and a key', { LANGSMITH_TRACING: 'true', LANGSMITH_API_KEY: 'their-key' }, [theirs]],
    ['LANGCHAIN_TRACING_V2 and a key', { LANGCHAIN_TRACING_V2: 'true', LANGCHAIN_API_KEY: 'their-key' }, [theirs]],
    ['names of both kinds', { LANGCHAIN_TRACING_V2: 'true', LANGSMITH_API_KEY: 'their-key' }, [theirs]],
    [
      'LANGSMITH_ before LANGCHAIN_',
      { LANGSMITH_TRACING: 'true', LANGSMITH_API_KEY: 'their-key', LANGCHAIN_API_KEY: 'older-key' },
      [theirs],
    ],
    [
      'an endpoint of LANGCHAIN_',
      { LANGSMITH_TRACING: 'true', LANGSMITH_API_KEY: 'their-key', LANGCHAIN_ENDPOINT: 'https://eu.example/api' },
      ['https://eu.example their-key'],
    ],
    ['tracing that is off', { LANGSMITH_TRACING: 'false', LANGSMITH_API_KEY: 'their-key' }, []],
    ['no word on tracing', { LANGSMITH_API_KEY: 'their-key' }, []],
    [
      'a workspace of ours',
      { LANGSMITH_TRACING: 'true', LANGSMITH_API_KEY: 'their-key', RUNSPAN_WORKSPACE_ID: 'ours' },
      [],
      [expect.stringContaining('tracing is off, because a workspace is set without an endpoint')],
    ],
    [
      'an endpoint of ours',
      { LANGSMITH_TRACING: 'true', LANGSMITH_API_KEY: 'their-key', RUNSPAN_ENDPOINT: 'https://ours.example' },
      ['https://ours.example undefined'],
    ],
  ])('with %s', async (_, variables, expected, logged: unknown[] = []) => {
    const { hosts, lines } = await withEnvironment(variables);
    expect(hosts).toEqual(expected);
    expect(lines).toEqual(logged);
  });

  test('that turn tracing on without a key leave it off, and one log line reports it', async () => {
    const { hosts, lines } = await withEnvironment({ LANGSMITH_TRACING: 'true' });
    expect([hosts, lines]).toEqual([[], [expect.stringContaining('LANGSMITH_API_KEY')]]);
  });
});

describe('`apiKey` and `headers` as functions', () => {
  test('are called for each request, so that a key can rotate', async () => {
    const server = await service();
    let turn = 0;
    const exporter = createExporter({
      endpoint: server.url,
      apiKey: async () => `key-${turn}`,
      headers: () => ({ 'x-team': `team-${turn}` }),
      log: 'silent',
    });
    const sent: Record<string, unknown>[] = [];
    for (turn = 1; turn <= 3; turn++) {
      startRun({ name: 'ask', exporter }).end();
      await exporter.flush();
      sent.push(credentials(server));
    }
    expect(sent).toEqual([1, 2, 3].map((n) => ({ 'x-api-key': `key-${n}`, 'x-team': `team-${n}` })));
  });

  const fail = (): never => {
    throw new Error('no key for you');
  };
  const hang = (): Promise<never> => new Promise(() => {});
  const limits = { requestTimeoutMs: 50 };
  test.each<[string, object, string]>([
    ['throws', { apiKey: fail }, '`apiKey`'],
    ['rejects', { apiKey: async () => fail() }, '`apiKey`'],
    ['returns a key with a line break', { apiKey: () => 'k-1\nx: y' }, '`apiKey` returned no usable key'],
    ['returns nothing', { apiKey: () => undefined }, 'got undefined'],
    ['returns a key of 8193 characters', { apiKey: () => 'k-1'.repeat(2731) }, 'got a string of 8193 characters'],
    ['returns no key in time', { apiKey: hang, limits }, '`apiKey` did not return within 50 ms; the runs are retried'],
    [
      'returns no headers in time',
      { headers: hang, limits },
      '`headers` did not return within 50 ms; the runs are retried',
    ],
    ['returns an empty credential', { headers: () => ({ 'X-Auth-Token': ' ' }) }, 'no usable `x-auth-token`'],
    ['returns a credential in two lines', { headers: () => [['cookie', 'k-1\nb']] }, 'no usable `cookie`'],
    ['returns text for headers', { headers: () => 'x-team: a' }, '`headers`'],
  ])('keep the runs if a function %s, and send them later', async (_, options, named) => {
    const server = await service();
    const lines: string[] = [];
    const log: ConfigureOptions['log'] = (level, line) => level !== 'debug' && void lines.push(line);
    const rejections = unhandledRejections();

    const refused = configure({ endpoint: server.url, log, ...options } as ConfigureOptions);
    startRun({ name: 'ask' }).end();
    expect(await refused.flush({ timeoutMs: 200 })).toEqual({ ok: false, pending: 1 });
    expect(server.received).toEqual([]);
    expect(lines).toEqual([expect.stringContaining(named)]);
    expect(lines.join()).not.toContain('k-1');

    // A later key replaces it.
    configure({ endpoint: server.url, apiKey: () => 'good-key', log });
    expect(await flush()).toEqual({ ok: true, pending: 0 });
    expect(credentials(server)).toEqual({ 'x-api-key': 'good-key' });
    expect(refused.stats()).toMatchObject({ sent: 1, dropped: 0 });
    expect(await rejections()).toEqual([]);
  });

  test.each<[string, unknown, string]>([
    ['its name and code', Object.assign(new TypeError('x'), { code: 'ECONNREFUSED' }), 'TypeError (ECONNREFUSED)'],
    ['the code of its cause', new Error('x', { cause: { code: 'ENOENT' } }), 'Error (ENOENT)'],
    ['no code that may be a secret', Object.assign(new Error('x'), { code: 'AKIA7X', name: SECRET }), 'an error'],
    ['nothing of a text', SECRET, 'an error'],
    ['nothing of an unreadable error', new Proxy(new Error(SECRET), throwing), 'an error'],
  ])('that throw are reported with %s, in the log, the statistics and the channel', async (_, thrown, expected) => {
    if (types.isNativeError(thrown) && !types.isProxy(thrown)) thrown.message = SECRET;
    for (const name of ['apiKey', 'headers']) {
      const server = await service();
      const lines: string[] = [];
      const outages: unknown[] = [];
      const listen = (outage: unknown): void => void outages.push(outage);
      subscribe('runspan:delivery:outage', listen);
      const log: ConfigureOptions['log'] = (_level, line) => lines.push(line);
      const exporter = createExporter({ endpoint: server.url, [name]: () => Promise.reject(thrown), log });
      startRun({ name: 'ask', exporter }).end();
      await exporter.flush({ timeoutMs: 200 });
      unsubscribe('runspan:delivery:outage', listen);
      const { lastError } = exporter.stats();
      await exporter.close({ timeoutMs: 1 });
      expect(lastError?.message).toBe(`\`${name}\` threw ${expected}`);
      expect(outages).toEqual([{ endpoint: server.url, error: lastError?.message }]);
      expect(lines).toContainEqual(expect.stringContaining(`failed: \`${name}\` threw ${expected}; `));
      expect(JSON.stringify([lines, lastError, outages])).not.toMatch(/hvs|lsv2|AKIA|vault/);
    }
  });

  test('leave runs on disk for the next exporter of the endpoint, regardless of its key', async () => {
    const spoolDir = testFolder();
    const server = await service(({ headers }) => ({ status: headers['x-api-key'] === 'new-key' ? 202 : 401 }));
    const options = { durability: 'spill', spoolDir } as const;
    const first = exporterTo(server.url, {}, { ...options, apiKey: () => 'old-key' });
    startRun({ name: 'ask', root: true, exporter: first }).end();
    await first.close({ timeoutMs: 500 });
    const second = exporterTo(server.url, {}, { ...options, apiKey: async () => 'new-key' });
    second.recover();
    await second.finish({ timeoutMs: 20_000 });
    expect(second.stats()).toMatchObject({ recovered: 1, sent: 1, dropped: 0 });
    await second.close();
  });

  test('create no runs for the functions that they call', async () => {
    const server = await service();
    const login = traceable(async () => 'fresh-key', { name: 'login' });
    const exporter = createExporter({ endpoint: server.url, apiKey: () => login(), log: 'silent' });
    withExporter(exporter, () => startRun({ name: 'ask' }).end());
    await exporter.flush();
    expect(credentials(server)).toEqual({ 'x-api-key': 'fresh-key' });
    expect(exporter.stats().created).toBe(1);
  });
});
