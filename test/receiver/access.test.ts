import { request } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { TokenSigner } from '#src/receiver/http/access/token-signer.ts';
import { createReceiver, DEFAULT_SCOPE, MemoryStore, type Receiver, type ReceiverOptions } from '#src/receiver.ts';
import { call, makeRun, part, type Reply, ROOT, raw, refusal, sendJson, sendParts, start } from './wire.ts';

const KEY = 'correct-horse-battery';
const WRITE_KEY = 'staple-writes-only';
const portOf = (receiver: Receiver) => new URL(receiver.url).port;
const get = (receiver: Receiver, headers: Record<string, string> = {}, path = '/query/projects') =>
  call(receiver.url + path, 'GET', undefined, headers);

// Each request is a `Host` header, and an `Origin` header if a page sends it. PORT is the port of the receiver.
describe.each<[string, ReceiverOptions, string, string]>([
  [
    'on a loopback address',
    {},
    `127.0.0.1:PORT | LocalHost:PORT | [::1]:PORT | localhost:PORT http://localhost:PORT | 127.0.0.1:PORT http://127.0.0.1:PORT`,
    `evil.example:PORT | 127.0.0.1.evil.example:PORT | 127.0.0.1:PORT@evil.example | 127.0.0.1:1 | 127.0.0.1 | ::1:PORT |
      localhost: |  | 127.0.0.1:PORT https://evil.example | 127.0.0.1:PORT http://evil.example:PORT |
      127.0.0.1:PORT http://127.0.0.1:1 | 127.0.0.1:PORT https://127.0.0.1:PORT | 127.0.0.1:PORT null | 127.0.0.1:PORT file://`,
  ],
  [
    'with allowedHosts',
    { allowedHosts: ['runs.example'] },
    `runs.example | Runs.Example:8443 | runs.example https://runs.example | 127.0.0.1:PORT http://runs.example:8080 | 127.0.0.1:PORT`,
    `127.0.0.1:1 | evil.runs.example | runs.example.evil | 192.168.1.2:PORT | runs.example https://evil.example |
      runs.example https://runs.example@evil.example | runs.example ftp://runs.example | runs.example null`,
  ],
  [
    'on every address',
    { host: '0.0.0.0', apiKey: KEY },
    `127.0.0.1:PORT | 192.168.1.2:PORT | 192.168.1.2:8080 | [fe80::1]:PORT | localhost:8080 |
      192.168.1.2:8080 http://192.168.1.2:8080`,
    `192.168.1.2:8080 http://192.168.1.3:8080 | 192.168.1.2:8080 https://192.168.1.2:8080 | box:PORT |
      192.168.1.2.evil.example`,
  ],
])('a receiver %s', (_, options, accepted, refused) => {
  const send = async (request: string): Promise<string> => {
    const receiver = await start(options);
    const [host = '', origin] = request.replaceAll('PORT', portOf(receiver)).split(' ');
    const lines = ['GET /info HTTP/1.1', 'Connection: close', `Host: ${host}`];
    if (origin !== undefined) lines.push(`Origin: ${origin}`);
    return raw(receiver.url, `${lines.join('\r\n')}\r\n\r\n`);
  };

  test.each(accepted.split(/\s*\|\s*/))('accepts %j', async (request) => {
    expect(await send(request)).toMatch(/^HTTP\/1.1 200 /);
  });

  test.each(refused.split(/\s*\|\s*/))('refuses %j without access for other origins [security 8]', async (request) => {
    const text = await send(request);
    expect(text).toMatch(/^HTTP\/1.1 403 .*"detail":/s);
    expect(text.toLowerCase()).not.toContain('access-control-allow');
  });
});

test('a receiver on every address has a loopback URL, and refuses preflights', async () => {
  const receiver = await start({ host: '0.0.0.0', apiKey: KEY });
  expect(receiver.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect((await get(receiver, { 'x-api-key': KEY })).status).toBe(200);
  const origin = { origin: 'https://evil.example' };
  expect((await call(`${receiver.url}/runs`, 'OPTIONS', undefined, origin)).status).toBe(403);
});

describe('with a key', () => {
  const options = { apiKey: KEY };

  const missing = 'The API key is missing: send the key in the header x-api-key';
  const wrong = 'The API key is not valid for this receiver';

  test.each<[string, Record<string, string>, string | undefined]>([
    ['no key', {}, missing],
    ['the key', { 'x-api-key': KEY }, undefined],
    ['the key as a bearer', { authorization: `Bearer ${KEY}` }, undefined],
    ['the key as a bearer in lower case', { authorization: `bearer  ${KEY}` }, undefined],
    ['another key', { 'x-api-key': 'correct-horse-batterz' }, wrong],
    ['a part of the key', { 'x-api-key': KEY.slice(1) }, wrong],
    ['more than the key', { 'x-api-key': `${KEY}e` }, wrong],
    ['an empty key', { 'x-api-key': '' }, wrong],
    ['the key by another scheme', { authorization: `Basic ${KEY}` }, missing],
    ['the key as a cookie', { cookie: `runspan-PORT=${KEY}` }, 'The session has ended: log in again'],
    ['a wrong key beside a right bearer', { 'x-api-key': 'x', authorization: `Bearer ${KEY}` }, wrong],
  ])('a request with %s', async (_, headers, detail) => {
    const receiver = await start(options);
    const sent = JSON.parse(JSON.stringify(headers).replace('PORT', portOf(receiver)));
    const reply = await get(receiver, sent);
    if (detail === undefined) expect(reply.status).toBe(200);
    else expect(reply).toMatchObject({ status: 401, body: { detail }, headers: { 'www-authenticate': 'Bearer' } });
    expect(JSON.stringify(reply)).not.toContain(KEY);
  });

  test.each<['GET' | 'POST', string]>([
    ['POST', '/runs'],
    ['GET', '/nowhere'],
    ['GET', '/runs'],
  ])('%s %s requires the key before everything else', async (method, path) => {
    const receiver = await start(options);
    expect((await call(receiver.url + path, method, method === 'GET' ? undefined : 'x')).status).toBe(401);
  });

  test('a run without the key is not stored, also in strict mode, and GET /info needs no key', async () => {
    for (const strict of [false, true]) {
      const receiver = await start({ ...options, strict });
      expect((await sendParts(receiver, part(`post.${ROOT}`, makeRun()))).status).toBe(401);
      expect(await receiver.runs()).toEqual([]);
      expect((await get(receiver, {}, '/info')).status).toBe(200);
    }
  });

  test('ten wrong keys get 401, further ones get 429 for a minute, and the right key is always accepted', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const receiver = await start(options);
    const wrong = async (count: number) => {
      const replies = await Promise.all(Array.from({ length: count }, () => get(receiver, { 'x-api-key': 'wrong' })));
      return replies.map(({ status }) => status);
    };
    expect(await wrong(10)).toEqual(Array(10).fill(401));
    for (const reply of [
      await get(receiver, { 'x-api-key': 'wrong' }),
      await sendJson(receiver, 'POST', '/login', { key: 'wrong' }),
    ]) {
      expect(reply).toMatchObject({ status: 429, headers: { 'retry-after': '60' } });
    }
    expect((await get(receiver, { 'x-api-key': KEY })).status).toBe(200);
    expect((await get(receiver)).status).toBe(401);
    vi.setSystemTime(Date.now() + 60_000);
    expect(await wrong(1)).toEqual([401]);
  });
});

test('a write key sends runs, reads nothing, and cannot log in', async () => {
  const receiver = await start({ apiKey: KEY, writeKey: WRITE_KEY });
  const headers = { 'x-api-key': WRITE_KEY };
  expect((await sendJson(receiver, 'POST', '/runs', makeRun({ inputs: {} }), headers)).status).toBe(202);
  const reply = await get(receiver, headers);
  expect(reply).toMatchObject(refusal(403, 'write key'));
  expect(JSON.stringify(reply)).not.toContain(WRITE_KEY);
  const login = await sendJson(receiver, 'POST', '/login', { key: WRITE_KEY });
  expect(login).toMatchObject(refusal(401, 'This is the write key: log in with the key in RUNSPAN_RECEIVER_KEY'));
  expect(login.headers).not.toHaveProperty('set-cookie');
});

describe('a request that a browser sends', () => {
  const sent = (site: string, mode = 'no-cors', dest = 'image') => ({
    'sec-fetch-site': site,
    'sec-fetch-mode': mode,
    'sec-fetch-dest': dest,
  });

  test.each<[string, string, Record<string, string>, number]>([
    ['by the page itself', '/query/projects', sent('same-origin', 'cors', 'empty'), 200],
    ['by its user', '/query/projects', sent('none', 'navigate', 'document'), 200],
    ['for a page of another site', '/query/projects', sent('cross-site'), 403],
    ['for a page at another port of this machine', '/query/projects', sent('same-site'), 403],
    ['for a script of another site', '/info', sent('cross-site', 'no-cors', 'script'), 403],
    ['to follow a link of another site to the page', '/', sent('cross-site', 'navigate', 'document'), 200],
    ['to frame the page elsewhere', '/', sent('cross-site', 'navigate', 'iframe'), 403],
    ['to follow a link of another site to runs', '/query/projects', sent('cross-site', 'navigate', 'document'), 403],
    ['with a feedback token', `/feedback/tokens/${ROOT}?score=1`, sent('cross-site'), 404],
  ])('%s', async (_, path, headers, status) => {
    const receiver = await start();
    expect((await request(receiver.url + path, { headers })).statusCode).toBe(status);
  });
});

test('keys and workspaces are ignored unless they are configured', async () => {
  expect((await get(await start(), { 'x-api-key': 'any', 'x-tenant-id': 'any' })).status).toBe(200);
  const receiver = await start({ workspaceId: 'mine' });
  expect((await get(receiver)).status).toBe(200);
  expect((await get(receiver, { 'x-tenant-id': 'mine' })).status).toBe(200);
  expect(await get(receiver, { 'x-tenant-id': 'yours' })).toMatchObject(refusal(403, 'workspace'));
});

describe('a login', () => {
  const login = (receiver: Receiver, key: unknown) => sendJson(receiver, 'POST', '/login', { key });
  const cookieIn = ({ headers }: Reply) => String(headers['set-cookie']).split(';', 1)[0] ?? '';

  test('sets a signed cookie that scripts and other sites cannot use', async () => {
    const receiver = await start({ apiKey: KEY });
    const reply = await login(receiver, KEY);
    expect(reply.status).toBe(200);
    const port = portOf(receiver);
    expect(reply.headers['set-cookie']).toMatch(
      new RegExp(`^runspan-${port}=key:[\\w-]+\\.[\\w-]{43}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000$`),
    );
    const cookie = `theme=dark; ${cookieIn(reply)}; runspan-1=x`;
    expect((await get(receiver, { cookie })).status).toBe(200);
    const [name = '', value = ''] = cookieIn(reply).split('=');
    const [, payload = '', signature = ''] = /^key:(.*)\.(.*)$/.exec(value) ?? [];
    const later = Buffer.from(JSON.stringify([Date.now() * 2])).toString('base64url');
    for (const forged of [
      ...['', 'key', 'key:', `key:${payload}`, `key:${payload}.`, `key:${later}.${signature}`],
      ...[`other:${payload}.${signature}`, `key:${payload}.${signature.slice(0, -2)}AA`],
    ]) {
      expect((await get(receiver, { cookie: `${name}=${forged}` })).status).toBe(401);
    }
  });

  test('allows writes with the cookie only from its own page', async () => {
    const receiver = await start({ apiKey: KEY });
    const cookie = cookieIn(await login(receiver, KEY));
    const write = (headers: Record<string, string>) =>
      sendJson(receiver, 'POST', '/runs', makeRun({ inputs: {} }), { cookie, ...headers });
    expect((await write({})).status).toBe(403);
    expect((await write({ origin: 'http://evil.example' })).status).toBe(403);
    expect(await receiver.runs()).toEqual([]);
    expect((await write({ origin: receiver.url })).status).toBe(202);
    expect((await write({ 'x-api-key': KEY })).status).toBe(202);
  });

  test('is refused without the key, with more than 4 KiB of JSON, and for a page from another site', async () => {
    const receiver = await start({ apiKey: KEY });
    for (const key of ['another', '', undefined, 5, { key: KEY }, [KEY]]) {
      const reply = await login(receiver, key);
      expect(reply).toMatchObject(refusal(401, 'API key is not valid'));
      expect(reply.headers).not.toHaveProperty('set-cookie');
    }
    expect((await login(receiver, 'x'.repeat(4_096 - 10))).status).toBe(401);
    expect((await login(receiver, 'x'.repeat(4_097 - 10))).status).toBe(413);
    expect((await call(`${receiver.url}/login`, 'POST', `key=${KEY}`)).status).toBe(415);
    const origin = 'http://evil.example';
    expect((await sendJson(receiver, 'POST', '/login', { key: KEY }, { origin })).status).toBe(403);
  });

  test('ends at each receiver of the store with the logout, which deletes the cookie [security 8]', async () => {
    const store = new MemoryStore();
    const options = { apiKey: KEY, store, allowedHosts: ['runs.example'] };
    const [receiver, second] = [await start(options), await start(options)];
    // A load balancer forwards the host name.
    const headers = { host: 'runs.example' };
    const loginThere = () => sendJson(receiver, 'POST', '/login', { key: KEY }, headers);
    const [cookie, kept] = [cookieIn(await loginThere()), cookieIn(await loginThere())];
    const statusAt = async (one: Receiver, sent = cookie) => (await get(one, { ...headers, cookie: sent })).status;
    expect([await statusAt(receiver), await statusAt(second)]).toEqual([200, 200]);
    const reply = await call(`${receiver.url}/logout`, 'POST', undefined, { ...headers, cookie });
    expect(reply.status).toBe(200);
    expect(reply.headers['set-cookie']).toMatch(/^runspan-default=; Path=\/; HttpOnly; SameSite=Strict; Max-Age=0$/);
    expect([await statusAt(receiver), await statusAt(receiver, kept)]).toEqual([401, 200]);
    await expect.poll(() => statusAt(second)).toBe(401);
  });

  test('that has ended, is forged or was never made is not stored at the logout', async () => {
    const store = new MemoryStore();
    const receiver = await start({ apiKey: KEY, store });
    const cookie = cookieIn(await login(receiver, KEY));
    const revokeTokens = vi.spyOn(store, 'revokeTokens');
    const withoutId = await new TokenSigner(store).sign([Date.now() + 60_000], `session key ${KEY}`);
    const forged = [`${cookie.slice(0, -2)}AA`, cookie.replace('=key:', '=write:')];
    for (const sent of [...forged, cookie.replace(/=.*/, `=key:${withoutId}`), '', cookie, cookie]) {
      expect((await call(`${receiver.url}/logout`, 'POST', undefined, { cookie: sent })).status).toBe(200);
      expect((await get(receiver, { cookie: sent })).status).toBe(401);
    }
    expect(revokeTokens.mock.calls).toEqual([[DEFAULT_SCOPE, expect.any(String), expect.any(Number)]]);
  });

  test('ends after 30 days', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const receiver = await start({ apiKey: KEY });
    const cookie = cookieIn(await login(receiver, KEY));
    vi.setSystemTime(Date.now() + 30 * 86_400_000 - 1);
    expect((await get(receiver, { cookie })).status).toBe(200);
    vi.setSystemTime(Date.now() + 1);
    expect((await get(receiver, { cookie })).status).toBe(401);
  });

  test('is valid at each receiver of the store with the same key, at once', async () => {
    const store = new MemoryStore();
    const [one, two, changed] = [
      await start({ apiKey: KEY, store }),
      await start({ apiKey: KEY, store }),
      await start({ apiKey: `${KEY}2`, store }),
    ];
    const other = await start({ apiKey: KEY });
    // The second receiver has read the secrets before the first one creates one.
    const before = { cookie: `runspan-${portOf(two)}=key:x.y` };
    expect((await get(two, before)).status).toBe(401);
    const cookie = cookieIn(await login(one, KEY));
    const statusAt = async (receiver: Receiver) =>
      (await get(receiver, { cookie: cookie.replace(portOf(one), portOf(receiver)) })).status;
    await expect.poll(() => statusAt(two)).toBe(200);
    expect(await Promise.all([one, changed, other].map(statusAt))).toEqual([200, 401, 401]);
  });

  test('is not a feedback token, nor is a feedback token a login', async () => {
    const receiver = await start({ apiKey: KEY });
    const run = makeRun();
    const send = (path: string, body: object) => sendJson(receiver, 'POST', path, body, { 'x-api-key': KEY });
    await send('/runs', run);
    const { url } = (await send('/feedback/tokens', { run_id: run.id, feedback_key: 'liked' })).body as { url: string };
    const token = url.slice(url.lastIndexOf('/') + 1);
    const cookie = cookieIn(await login(receiver, KEY));
    expect((await get(receiver, { cookie: cookie.replace(/key:.*/, `key:${token}`) })).status).toBe(401);
    const path = `/feedback/tokens/${cookie.replace(/.*key:/, '')}?score=1`;
    expect((await call(`${receiver.url}${path}`, 'GET')).status).toBe(404);
  });

  test('sets a Secure cookie over https', async () => {
    const receiver = await start({ apiKey: KEY, allowedHosts: ['runs.example'] });
    const { headers } = await sendJson(receiver, 'POST', '/login', { key: KEY }, { origin: 'https://runs.example' });
    expect(headers['set-cookie']).toMatch(/; Secure$/);
  });
});

test.each<[Record<string, unknown>, string]>([
  [{ apiKey: '' }, 'Expected `apiKey` to be 1 to 512 visible characters of ASCII'],
  [{ apiKey: 'canary key' }, 'Expected `apiKey` to be 1 to 512 visible characters of ASCII'],
  [{ apiKey: 'x'.repeat(513) }, 'Expected `apiKey` to be 1 to 512'],
  [
    { host: '0.0.0.0', apiKey: 'x'.repeat(15) },
    'Expected `apiKey` to have at least 16 characters if the receiver is reachable from other machines',
  ],
  [
    { host: '0.0.0.0', apiKey: KEY, writeKey: 'x'.repeat(15) },
    'Expected `writeKey` to have at least 16 characters if the receiver is reachable from other machines',
  ],
  [{ writeKey: KEY }, 'Expected `writeKey` to differ from `apiKey`, which must be set'],
  [{ apiKey: KEY, writeKey: KEY }, 'Expected `writeKey` to differ from `apiKey`, which must be set'],
  [{ apiKey: KEY, writeKey: 'canary key' }, 'Expected `writeKey` to be 1 to 512 visible characters of ASCII'],
  [{ apiKey: 5 }, 'Expected `apiKey` to be 1 to 512 visible characters of ASCII, got the number 5'],
  [{ workspaceId: '' }, 'Expected `workspaceId` to be a non-empty string'],
  [{ allowedHosts: 'runs.example' }, 'Expected `allowedHosts` to be a list of host names without ports'],
  [{ allowedHosts: ['runs.example:80'] }, 'Expected `allowedHosts` to be'],
  [{ allowedHosts: [''] }, 'Expected `allowedHosts` to be'],
])('the option %j is refused without showing a key', async (options, message) => {
  const refused = createReceiver(options);
  await expect(refused).rejects.toMatchObject({
    code: 'RUNSPAN_INVALID_OPTION',
    message: expect.stringContaining(message),
  });
  await expect(refused).rejects.not.toThrow('canary');
});
