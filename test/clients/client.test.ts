import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AgentServer, type AgentServerOptions, type ApiError, type CallOptions, ControlPlane } from '#src/clients.ts';
import { RunspanError } from '#src/index.ts';
import { serve } from '../http/server.ts';
import { thrownBy } from './make-api.ts';

const KEY = 'ls-secret-key';

function clientOf(url: string, options: Partial<AgentServerOptions> = {}): AgentServer {
  const client = new AgentServer({ url, maxRetries: 0, ...options });
  onTestFinished(() => client.close());
  return client;
}

/** Returns the error of a call whose response has this status and body. */
async function errorOf(status: number, body: unknown, headers = {}): Promise<ApiError> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const { url } = await serve((_, response) => response.writeHead(status, headers).end(text));
  return thrownBy<ApiError>(clientOf(url).threads.get('t'));
}

describe('the options of a client', () => {
  it('are accepted at their bounds', () => {
    const hooks = { onRequest: () => {}, onRetry: undefined };
    const given = { apiKey: '!~', headers: { 'x-a': 'grün\t!', b: '' }, connectTimeoutMs: 1, hooks };
    for (const [timeoutMs, maxRetries] of [
      [1, 0],
      [2 ** 31 - 1, 100],
    ] as const)
      expect(() => clientOf('https://host', { ...given, timeoutMs, maxRetries })).not.toThrow();
  });

  it.each<[option: string, values: readonly unknown[], expected: string]>([
    [
      'apiKey',
      ['', '  ', `${KEY}\nx-other: 1`, `${KEY}ü`, 5, null],
      'a non-empty string of printable ASCII characters',
    ],
    ['timeoutMs', [0, 2 ** 31, 1.5, '1', Number.NaN], 'a whole number from 1 to 2147483647'],
    ['connectTimeoutMs', [0, 2 ** 31], 'a whole number from 1 to 2147483647'],
    ['maxRetries', [-1, 101, true], 'a whole number from 0 to 100'],
    ['allowInsecure', ['yes'], 'true or false'],
    ['dispatcher', [{}, null], 'an undici Dispatcher'],
    [
      'hooks',
      [() => {}, [], { onRequest: 'log' }, { onrequest: () => {} }],
      'an object with the functions onRequest, onResponse and onRetry',
    ],
    [
      'headers',
      [
        ...[null, [], new Headers(), new Map([['a', 'b']]), { a: 1 }, { a: null }, { a: ['b'] }, { '': 'b' }],
        ...[{ 'a b': 'c' }, { grün: 'c' }, { authorization: `${KEY}\n` }, { a: '\0' }, { a: 'ā' }],
        ...[{ 'Content-Length': '1' }, { 'transfer-encoding': 'chunked' }, { Connection: 'close' }],
      ],
      'an object of valid header names and values',
    ],
  ])('refuse %s: %j', (option, values, expected) => {
    for (const value of values) {
      const create = () => new AgentServer({ url: 'https://host', [option]: value });
      expect(create).toThrow(`Expected \`${option}\` to be ${expected}, got `);
      expect(create).toThrow(expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION' }));
      expect(create).not.toThrow(KEY);
    }
  });

  it.each<[string, unknown, string]>([
    ['hooks', { onRequest: () => {}, onFoo: () => {} }, 'onRequest, onResponse and onRetry, got the hook "onFoo"'],
    ['hooks', { onRetry: 'log' }, 'got the hook "onRetry"'],
    ['headers', { a: 'b', 'x y': KEY }, 'of valid header names and values, got the header "x y"'],
    ['headers', { authorization: `${KEY}\n` }, 'got the header "authorization"'],
    ['headers', new Headers(), 'got an object'],
  ])('name the invalid entry of %s: %j', (option, value, message) => {
    expect(() => new AgentServer({ url: 'https://host', [option]: value })).toThrow(message);
  });

  it.each<[unknown, string]>([
    ['', 'cannot be parsed'],
    ['host', 'cannot be parsed'],
    ['//host', 'cannot be parsed'],
    ['ftp://host', 'has another protocol'],
    ['javascript:alert(1)', 'has another protocol'],
    ['https://user@host', 'contains a user or password'],
    ['https://:pass-word@host', 'contains a user or password'],
    ['https://host/?key=pass-word', 'has a query or fragment'],
    ['https://host/#pass-word', 'has a query or fragment'],
  ])('refuse the address %j, which %s', (url, problem) => {
    const create = () => new AgentServer({ url: url as string });
    expect(create).toThrow(`Expected \`url\` to be an http or https URL, such as https://host/path, got one that`);
    expect(create).toThrow(problem);
    expect(create).not.toThrow('pass-word');
  });

  it('refuse plain HTTP to another machine if a key is sent, unless it is allowed [security 5]', () => {
    const url = 'http://host.test/api';
    for (const options of [{ apiKey: KEY }, { headers: { authorization: 'Basic abc' } }]) {
      expect(() => clientOf(url, options)).toThrow('a key is not sent over plain HTTP to another machine');
      expect(() => clientOf(url, { ...options, allowInsecure: true })).not.toThrow();
      for (const local of ['http://127.0.0.1:1', 'http://localhost:1/x', 'http://[::1]:1'])
        expect(() => clientOf(local, options)).not.toThrow();
    }
    expect(() => clientOf(url)).not.toThrow();
  });
});

describe('a call', () => {
  it.each<[string, unknown]>([
    ['signal', new AbortController()],
    ['timeoutMs', 0],
    ['maxRetries', -1],
    ['headers', { a: 1 }],
    ['apiKey', KEY],
  ])('refuses the option %s: %j', async (name, value) => {
    const { url, connections } = await serve();
    const error = await thrownBy(clientOf(url).threads.get('t', { [name]: value } as CallOptions));
    expect(error).toMatchObject({ code: 'RUNSPAN_INVALID_OPTION', message: expect.stringContaining(`\`${name}\``) });
    expect([String(error).includes(KEY), connections()]).toEqual([false, 0]);
  });

  it('shows no credential in an error or its client, even if the service repeats it [security 1]', async () => {
    const { url } = await serve((request, response) => response.writeHead(400).end(JSON.stringify(request.headers)));
    const headers = { 'X-Auth-Token': 'token-3', 'Proxy-Authorization': 'Basic basic-4', 'x-plain': 'plain-5' };
    const options = { baseUrl: url, apiKey: 'key-1234', bearerToken: 'token-2', tenantId: 'search-6', headers };
    const client = new ControlPlane(options);
    onTestFinished(() => client.close());
    const error = await thrownBy(client.integrations.list({ headers: { cookie: 'cookie-7' } }));
    const text = inspect([error, client], { depth: 20, showHidden: true });
    for (const secret of ['key-1234', 'token-2', 'token-3', 'basic-4', 'cookie-7']) expect(text).not.toContain(secret);
    // A workspace is not a secret.
    expect(text).toMatch(/plain-5.*search-6|search-6.*plain-5/s);
  });
});

const MISSING = { loc: ['body', 'name'], msg: 'Field required', type: 'missing', input: { a: 1 } };

describe('an error', () => {
  it.each([
    [400, 'RUNSPAN_BAD_REQUEST'],
    [401, 'RUNSPAN_UNAUTHENTICATED'],
    [402, 'RUNSPAN_UNEXPECTED_STATUS'],
    [403, 'RUNSPAN_FORBIDDEN'],
    [404, 'RUNSPAN_NOT_FOUND'],
    [409, 'RUNSPAN_CONFLICT'],
    [422, 'RUNSPAN_UNPROCESSABLE'],
    [429, 'RUNSPAN_RATE_LIMITED'],
    [500, 'RUNSPAN_SERVER_ERROR'],
    [599, 'RUNSPAN_SERVER_ERROR'],
    [302, 'RUNSPAN_UNEXPECTED_STATUS'],
  ])('of the status %i has the code %s', async (status, code) => {
    const error = await errorOf(status, { detail: 'no' }, { 'x-request-id': 'req-1' });
    expect(error).toBeInstanceOf(RunspanError);
    expect(error).toMatchObject({ name: 'ApiError', status, code, requestId: 'req-1', request: { attempts: 1 } });
  });

  it.each<[string, unknown, string | undefined]>([
    ['a detail', { detail: 'Deployment ID 1 not found.' }, 'Deployment ID 1 not found.'],
    ['a list of FastAPI', { detail: [MISSING] }, 'body.name: Field required'],
    [
      'a list with other items',
      { detail: [null, { loc: 'body', msg: 'a' }, { loc: [] }, MISSING] },
      'body.name: Field required',
    ],
    ['a list of other items', { detail: ['a', { b: 1 }] }, '["a",{"b":1}]'],
    ['a message', { error: 'bad_request', message: 'No such graph' }, 'No such graph'],
    ['an error', { error: 'bad_request' }, 'bad_request'],
    ['an error object', { error: { code: 5, message: 'No such graph' } }, 'No such graph'],
    ['a detail object', { detail: { reason: 'x' } }, '{"reason":"x"}'],
    ['Zod 3', { error: { issues: [{ path: ['a', 0], message: 'Required', code: 'x' }] } }, 'a[0]: Required'],
    ['Zod 4', { error: { name: 'ZodError', message: '[{"path":["a"],"message":"Required"}]' } }, 'a: Required'],
    ['Zod without a list', { error: { name: 'ZodError', message: 'no JSON' } }, 'no JSON'],
    ['text', 'Assistant not found', 'Assistant not found'],
    ['text as JSON', '"not found"', 'not found'],
    ['a status line', '404 Not Found\n', 'Not Found'],
    ['another number', '4040 items are too many', '4040 items are too many'],
    ['control characters', { detail: ' a\r\n\tb\u001b[31m ' }, 'a b [31m'],
    ['HTML', '\n<!doctype html><h1>502</h1>', undefined],
    ['no body', '', undefined],
  ])('shows the explanation of %s', async (_, body, shown) => {
    const error = await errorOf(404, body);
    expect(error.message.replace(/^\[GET\] "http:\/\/127.0.0.1:\d+\/threads\/t": 404 ?/, '')).toBe(shown ?? '');
  });

  it('keeps the body, and the list of a 422', async () => {
    const error = await errorOf(422, { detail: [MISSING], more: true });
    expect([error.body, error.errors]).toEqual([{ detail: [MISSING], more: true }, [MISSING]]);
    expect((await errorOf(500, '<p>')).body).toBe('<p>');
  });

  it.each([500, 501])('shortens an explanation of %i characters to 500, and keeps the detail', async (length) => {
    const { message, detail } = await errorOf(400, { detail: 'x'.repeat(length) });
    expect(message.replace(/^.*": 400 /, '')).toHaveLength(500 + Math.sign(length - 500));
    expect(detail).toHaveLength(length);
  });

  it('survives a body that is nested deeply', async () => {
    for (const deep of [`{"detail":${'['.repeat(50_000)}${']'.repeat(50_000)}}`, '{"detail":'.repeat(50_000)])
      expect((await errorOf(400, deep)).status).toBe(400);
  });

  it('explains a redirect, and prints nothing twice', async () => {
    const advice = "(redirects are not followed; use the redirect's target as the base URL)";
    expect((await errorOf(307, '')).message).toMatch(`: 307 ${advice}`);
    expect((await errorOf(302, { detail: 'Found' })).message).toMatch(`: 302 Found ${advice}`);
    expect((await errorOf(304, '')).message).toMatch(/: 304$/);
    const printed = inspect(await errorOf(404, { detail: 'No such thing.' }, { server: 'uvicorn' }));
    expect(printed.match(/No such thing/g)).toHaveLength(1);
    expect(printed).not.toContain('uvicorn');
  });
});
