import { Client } from 'langsmith';
import { request } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { TokenSigner } from '#src/receiver/http/access/token-signer.ts';
import { DEFAULT_SCOPE, MemoryStore } from '#src/receiver.ts';
import { logLines } from '../support/log-lines.ts';
import {
  CHILD,
  call,
  issueAt,
  makeChild,
  makeRun,
  part,
  ROOT,
  raw,
  refusal,
  START,
  sendJson,
  sendParts,
  start,
} from './wire.ts';

const ID = '0193b3a0-3333-7000-8000-000000000003';
const OTHER_ID = '0193b3a0-4444-7000-8000-000000000004';

interface Token {
  id: string;
  /** The last segment of the URL. */
  text: string;
  url: string;
  expires_at: string;
  feedback_key: string;
}

const json = { 'content-type': 'application/json' };
const post = (url: string, body: unknown, headers: Record<string, string> = {}) =>
  call(url, 'POST', JSON.stringify(body), { ...json, ...headers });

async function setUp({ store = new MemoryStore(), ...options }: Parameters<typeof start>[0] = {}) {
  const receiver = await start({ store, ...options });
  const key: Record<string, string> = options.apiKey === undefined ? {} : { 'x-api-key': options.apiKey };
  if (options.apiKey === undefined) await sendParts(receiver, part(`post.${ROOT}`, makeRun()));
  const createToken = async (fields: Record<string, unknown> = {}): Promise<Token> => {
    const body = { run_id: ROOT, feedback_key: 'user_liked', ...fields };
    const reply = await post(`${receiver.url}/feedback/tokens`, body, key);
    expect(reply.status).toBe(200);
    const { url } = reply.body as unknown as Token;
    return { ...(reply.body as unknown as Token), text: url.replace(/.*\//, '') };
  };
  return { receiver, feedback: () => store.feedback(DEFAULT_SCOPE, [ROOT]), createToken };
}

describe.each([false, true])('feedback by token (strict: %s)', (strict) => {
  test('is stored by POST under the key of the token, and replaces earlier feedback', async () => {
    const { receiver, feedback, createToken } = await setUp({ strict });
    const { url, expires_at, feedback_key } = await createToken();
    expect(url).toMatch(/\/api\/v1\/feedback\/tokens\/[\w-]+\.[\w-]{43}$/);
    expect(new URL(url).origin).toBe(receiver.url);
    expect([feedback_key, expires_at]).toEqual(['user_liked', expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)]);

    const fields = { score: 1, value: 'good', comment: 'thanks', correction: { answer: 'no' }, metadata: { page: 3 } };
    expect(await post(url, fields)).toMatchObject({ status: 200, body: { key: 'user_liked' } });
    const [first] = await feedback();
    expect(first).toMatchObject({ run_id: ROOT, key: 'user_liked', ...fields });
    await post(url, { score: 0 });
    const all = await feedback();
    expect(all).toMatchObject([{ id: first?.id, score: 0, created_at: first?.created_at }]);
    expect(all[0]).not.toHaveProperty('comment');
  });

  test('is stored by GET, with and without the prefix of the path', async () => {
    const { receiver, feedback, createToken } = await setUp({ strict });
    const { url, text } = await createToken();
    const query = new URLSearchParams({ score: '-1', value: 'bad', comment: 'no & no', correction: '{"a":1}' });
    expect((await call(`${url}?${query}`, 'GET')).status).toBe(200);
    const fields = { score: -1, value: 'bad', comment: 'no & no', correction: { a: 1 } };
    expect(await feedback()).toMatchObject([{ key: 'user_liked', ...fields }]);
    expect((await call(`${receiver.url}/feedback/tokens/${text}?score=1`, 'GET')).status).toBe(200);
    expect(await feedback()).toMatchObject([{ score: 1 }]);
  });

  test('needs a signed token that has not expired, and a known run', async () => {
    const { feedback, createToken } = await setUp({ strict });
    const { url, text } = await createToken();
    const [payload = '', signature = ''] = text.split('.');
    const forged = Buffer.from(Buffer.from(payload, 'base64url').toString().replace('user_liked', 'user_hated'));
    const other = (await (await setUp({ strict })).createToken()).text;
    const flipped = (character: string) => (character === 'A' ? 'B' : 'A');
    const wrong = [
      ...[CHILD, 'x', '.', payload, `${payload}.`, `.${signature}`, other],
      ...[`${forged.toString('base64url')}.${signature}`, `${payload}.${signature.replace(/./, flipped)}`],
    ];
    for (const each of wrong) {
      expect((await post(url.replace(text, each), { score: 1 })).status).toBe(404);
      expect((await call(`${url.replace(text, each)}?score=1`, 'GET')).status).toBe(404);
    }
    const expired = await createToken({ expires_in: { minutes: 0 } });
    expect(await post(expired.url, { score: 1 })).toMatchObject(refusal(410, 'expired'));
    const early = await createToken({ run_id: CHILD });
    expect(await post(early.url, { score: 1 })).toMatchObject(refusal(404, CHILD));
    expect(await feedback()).toEqual([]);
  });

  test('is stored if the run arrives within a second', async () => {
    const { receiver, createToken } = await setUp({ strict });
    const { url } = await createToken({ run_id: CHILD });
    const given = post(url, { score: 1 });
    const run = { id: CHILD, name: 'late', run_type: 'chain', inputs: {}, start_time: START, session_name: 'shop' };
    expect((await sendJson(receiver, 'POST', '/runs', run)).status).toBe(202);
    expect(await given).toMatchObject({ status: 200 });
  });

  const comment = (bytes: number) => `{"comment":"${'x'.repeat(bytes - 14)}"}`;

  test.each<[string, string, Record<string, string>, number]>([
    ['invalid JSON', '{', json, 400],
    ['an array', '[]', json, 400],
    ['another type', 'score=1', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['no type', '{"score":1}', {}, 415],
    ['1 MiB', comment(1024 * 1024), json, 200],
    ['1 MiB and one byte', comment(1024 * 1024 + 1), json, 413],
  ])('with a body of %s', async (_, body, headers, status) => {
    const { feedback, createToken } = await setUp({ strict });
    expect((await call((await createToken()).url, 'POST', body, headers)).status).toBe(status);
    expect(await feedback()).toHaveLength(status === 200 ? 1 : 0);
  });
});

describe('pages of any origin', () => {
  const origin = { origin: 'https://shop.example' };

  test('may send a preflight and feedback, and read every response', async () => {
    const { createToken } = await setUp({ apiKey: 'secret' });
    const { url, text } = await createToken();
    const preflight = await call(url, 'OPTIONS', undefined, {
      ...origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type',
    });
    expect(preflight).toMatchObject({
      status: 200,
      headers: {
        'access-control-allow-origin': '*',
        'access-control-allow-methods': 'GET, POST, OPTIONS',
        'access-control-allow-headers': 'content-type',
      },
    });
    const replies = [
      await post(url, { score: 'x' }, origin),
      await post(url.replace(text, CHILD), {}, origin),
      await call(`${url}?score=1`, 'GET', undefined, origin),
    ];
    expect(replies.map(({ status }) => status)).toEqual([422, 404, 404]);
    for (const { headers } of replies) {
      expect(headers).toMatchObject({
        'access-control-allow-origin': '*',
        'cross-origin-resource-policy': 'cross-origin',
        'cache-control': 'no-store',
      });
    }
  });

  test('may not create tokens, revoke them or read feedback', async () => {
    const { receiver, createToken } = await setUp();
    const { url } = await createToken();
    const asked = [
      await post(`${receiver.url}/feedback/tokens`, { run_id: ROOT, feedback_key: 'a' }, origin),
      await call(`${receiver.url}/feedback/tokens?run_id=${ROOT}`, 'DELETE', undefined, origin),
      await call(url, 'DELETE', undefined, origin),
      await call(`${receiver.url}/feedback?run=${ROOT}`, 'GET', undefined, origin),
    ];
    for (const { status, headers } of asked) {
      expect(status).toBe(403);
      expect(headers).not.toHaveProperty('access-control-allow-origin');
    }
  });

  test('must use a name of the receiver', async () => {
    const { receiver, createToken } = await setUp();
    const { text } = await createToken();
    const lines = `GET /api/v1/feedback/tokens/${text}?score=1 HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`;
    expect(await raw(receiver.url, lines)).toMatch(/^HTTP\/1.1 403 /);
  });
});

describe('tokens', () => {
  test('are revoked by their URL, or all tokens of a run together', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { receiver, createToken, feedback } = await setUp();
    const statuses = (tokens: readonly Token[]) =>
      Promise.all(tokens.map(async ({ url }) => (await post(url, { score: 1 })).status));
    const [one, two] = [await createToken(), await createToken()];
    expect(await call(one.url, 'DELETE')).toMatchObject({ status: 200, body: { id: one.id } });
    expect(await post(one.url, {})).toMatchObject(refusal(410, 'The feedback token has been revoked'));
    expect(await statuses([one, two])).toEqual([410, 200]);

    const revoke = (query: string) => call(`${receiver.url}/feedback/tokens?${query}`, 'DELETE');
    expect(await revoke(`run_id=${ROOT}`)).toMatchObject({ status: 200, body: { run_id: ROOT } });
    vi.advanceTimersByTime(1);
    expect(await statuses([one, two, await createToken()])).toEqual([410, 410, 200]);
    expect((await feedback()).length).toBe(2);
    const missing = (name: string) => ({ status: 422, body: { detail: [{ msg: `\`${name}\` is missing` }] } });
    expect(await revoke('')).toMatchObject(missing('run_id'));
    expect((await revoke('run_id=x')).status).toBe(422);
    expect((await revoke(`run_id=${ROOT}&run=a`)).status).toBe(422);
    expect((await call(`${receiver.url}/feedback/tokens/${CHILD}`, 'DELETE')).status).toBe(404);
  });

  test('are signed with a new secret each 30 days, and stay valid, also in a receiver that starts later', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const store = new MemoryStore();
    const { receiver, createToken } = await setUp({ store });
    const expires_in = { days: 365 };
    const tokens = await Promise.all([createToken({ expires_in }), createToken({ expires_in })]);
    const secrets: number[] = [];
    for (const days of [29, 1, 0]) {
      vi.advanceTimersByTime(days * 86_400_000);
      tokens.push(await createToken({ expires_in }));
      secrets.push((await store.tokenSecrets()).length);
    }
    expect(secrets).toEqual([1, 2, 2]);
    await receiver.close();
    const { url } = await start({ store });
    for (const { text } of tokens)
      expect((await post(`${url}/feedback/tokens/${text}`, { score: 1 })).status).toBe(200);
  });

  test('are invalid if they are tokens of another purpose', async () => {
    const store = new MemoryStore();
    const { receiver } = await setUp({ store });
    const [payload, signature] = (await new TokenSigner(store).sign([1], 'login')).split('.');
    const { status } = await post(`${receiver.url}/feedback/tokens/${payload}%20login.${signature}`, {});
    expect(status).toBe(404);
  });

  test('are signed with the earlier secret while the store cannot write', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const store = new MemoryStore();
    const { receiver, createToken } = await setUp({ store });
    await createToken();
    vi.advanceTimersByTime(31 * 86_400_000);
    vi.spyOn(store, 'addTokenSecret').mockRejectedValue(new Error('no disk'));
    const { text } = await createToken();
    expect((await post(`${receiver.url}/feedback/tokens/${text}`, { score: 1 })).status).toBe(200);
  });

  test('have the base URL of the request, with https if a proxy forwarded it', async () => {
    const { receiver } = await setUp({ allowedHosts: ['runs.example'] });
    const body = JSON.stringify({ run_id: ROOT, feedback_key: 'a' });
    const { port } = new URL(receiver.url);
    const head = (more: string) =>
      `POST /feedback/tokens HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${more}\r\n\r\n${body}`;
    const urlFor = async (more: string) => /"url":"(.*?)tokens\//.exec(await raw(receiver.url, head(more)))?.[1];
    expect(await urlFor(`Host: localhost:${port}`)).toBe(`http://localhost:${port}/api/v1/feedback/`);
    expect(await urlFor('Host: runs.example\r\nX-Forwarded-Proto: https')).toBe(
      'https://runs.example/api/v1/feedback/',
    );
    expect(await urlFor('Host: runs.example\r\nX-Forwarded-Proto: javascript')).toBe(
      'http://runs.example/api/v1/feedback/',
    );
  });
});

describe('a link with feedback in its query', () => {
  const page = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

  test.each<[string, Record<string, string>]>([
    ['a browser', { accept: page }],
    ['a browser that prefetches it', { accept: '*/*', 'sec-purpose': 'prefetch;prerender' }],
    ['a browser that prefetches it, by the older header', { accept: '*/*', purpose: 'prefetch' }],
    ['Slack', { accept: '*/*', 'user-agent': 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)' }],
    ['Teams', { accept: '*/*', 'user-agent': 'Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5' }],
    ['Facebook', { 'user-agent': 'facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)' }],
    ['WhatsApp', { accept: '*/*', 'user-agent': 'WhatsApp/2.23.18.78 A' }],
  ])('opened by %s asks for confirmation', async (_, headers) => {
    const { createToken, feedback } = await setUp();
    const { url } = await createToken();
    const reply = await request(`${url}?score=1`, { headers });
    expect([reply.statusCode, reply.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(await reply.body.text()).toContain('<form method="post">');
    expect(reply.headers['content-security-policy']).toBe("default-src 'none'; frame-ancestors 'none'");
    expect(await feedback()).toEqual([]);
  });

  test.each([
    ['*/*'],
    ['application/json'],
    ['application/json, text/plain, */*'],
    ['image/avif,image/webp,*/*;q=0.8'],
  ])('opened by a program that accepts %s stores the feedback', async (accept) => {
    const { createToken, feedback } = await setUp();
    const headers = { accept, 'user-agent': 'support-bot/1.0' };
    expect((await call(`${(await createToken()).url}?score=1`, 'GET', undefined, headers)).status).toBe(200);
    expect(await feedback()).toMatchObject([{ score: 1 }]);
  });

  test('stores the feedback when the form of the page is submitted', async () => {
    const { createToken, feedback } = await setUp();
    const { url } = await createToken();
    const headers = { accept: page, origin: 'null', 'content-type': 'application/x-www-form-urlencoded' };
    const reply = await request(`${url}?score=1&comment=yes`, { method: 'POST', body: '', headers });
    expect([reply.statusCode, await reply.body.text()]).toEqual([200, expect.stringContaining('Thank you')]);
    expect(await feedback()).toMatchObject([{ score: 1, comment: 'yes' }]);
  });

  test('shows the error in a browser if the feedback is invalid', async () => {
    const { createToken } = await setUp();
    const { url, text } = await createToken();
    const statuses = [`${url}?score=x`, url.replace(text, CHILD)].map(async (address) => {
      return (await call(address, 'GET', undefined, { accept: page })).status;
    });
    expect(await Promise.all(statuses)).toEqual([422, 404]);
  });
});

describe('the dialect of other clients', () => {
  test('stores feedback in parts of a batch together with its runs', async () => {
    const { receiver, feedback } = await setUp();
    const said = (run_id: string, fields: object) => ({ run_id, trace_id: ROOT, key: 'liked', ...fields });
    const reply = await sendParts(
      receiver,
      part(`feedback.${ID}`, said(CHILD, { score: 1, feedback_source: { type: 'api' } })),
      part(`post.${CHILD}`, makeChild()),
      part(`feedback.${OTHER_ID}`, said(ROOT, { id: OTHER_ID, comment: 'yes' })),
    );
    expect(reply).toMatchObject({ status: 202, body: { accepted: 1, feedback: 2 } });
    expect((await feedback()).sort((a, b) => (a.id < b.id ? -1 : 1))).toMatchObject([
      { id: ID, run_id: CHILD, key: 'liked', score: 1 },
      { id: OTHER_ID, run_id: ROOT, comment: 'yes' },
    ]);
    const whole = { run_id: null, trace_id: ROOT, key: 'whole' };
    const alone = await sendParts(receiver, part(`feedback.${ID}`, { ...whole, score: 1 }));
    expect(alone).toMatchObject({ status: 202, body: { accepted: 0, feedback: 1 } });
    expect((await sendParts(receiver, part(`feedback.${ID}`, whole))).body).toEqual({ accepted: 0, feedback: 0 });
    expect(await feedback()).toContainEqual(expect.objectContaining({ run_id: ROOT, key: 'whole', score: 1 }));
  });

  test('drops and logs feedback whose run is missing, and stores the rest of the batch', async () => {
    const lines = logLines();
    const receiver = await start();
    const missing = part(`feedback.${ID}`, { run_id: CHILD, key: 'liked', score: 1 });
    const reply = await sendParts(receiver, part(`post.${ROOT}`, makeRun()), missing);
    expect(reply).toMatchObject({ status: 202, body: { accepted: 1, feedback: 0 } });
    expect(await receiver.runs()).toHaveLength(1);
    expect(lines.join('')).toContain(`dropped feedback on runs that are not stored: ${CHILD}`);
  });

  test('refuses invalid feedback parts and names them', async () => {
    const receiver = await start();
    const name = `feedback.${ID}`;
    const reply = await sendParts(receiver, part(`post.${ROOT}`, makeRun()), part(name, { run_id: ROOT, score: 'x' }));
    expect(reply).toMatchObject({ status: 422 });
    expect(reply.body.detail?.map(({ loc }) => loc)).toEqual([
      ['body', name, 'key'],
      ['body', name, 'score'],
    ]);
    const large = part(name, { run_id: ROOT, key: 'a', comment: 'x'.repeat(1024 * 1024) });
    expect(await sendParts(receiver, large)).toMatchObject({ status: 413 });
    expect(await sendParts(receiver, part(name, { run_id: ROOT, key: 'a' }, []))).toMatchObject({ status: 400 });
  });

  test('creates tokens', async () => {
    const { receiver, feedback } = await setUp();
    const client = new Client({ apiUrl: `${receiver.url}/api/v1`, apiKey: 'any' });
    const { url } = await client.createPresignedFeedbackToken(ROOT, 'user_liked');
    expect((await post(url, { score: 1 })).status).toBe(200);
    expect(await feedback()).toMatchObject([{ key: 'user_liked', score: 1 }]);
  });

  test('is refused for a missing run and for invalid parameters', async () => {
    const { receiver } = await setUp();
    expect((await sendJson(receiver, 'POST', '/feedback', { run_id: CHILD, key: 'a', score: 1 })).status).toBe(404);
    expect(await call(`${receiver.url}/feedback`, 'GET')).toMatchObject({
      status: 422,
      body: { detail: [{ msg: '`run` is missing' }] },
    });
    expect(await sendJson(receiver, 'PATCH', `/feedback/${ID}`, {})).toMatchObject(issueAt('body'));
    for (const query of ['limit=x', 'offset=-1', 'other=a']) {
      expect((await call(`${receiver.url}/feedback?run=${ROOT}&${query}`, 'GET')).status).toBe(422);
    }
  });
});
