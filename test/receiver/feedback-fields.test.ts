import { describe, expect, test, vi } from 'vitest';
import { DEFAULT_SCOPE, MemoryStore } from '#src/receiver.ts';
import { CHILD, call, issueAt, makeRun, part, type Reply, ROOT, sendJson, sendParts, start } from './wire.ts';

const NOW = '2026-11-20T07:22:40.000000Z';

async function setUp(strict = false) {
  const store = new MemoryStore();
  const receiver = await start({ store, strict });
  await sendParts(receiver, part(`post.${ROOT}`, makeRun()));
  const createTokens = (body: unknown) => sendJson(receiver, 'POST', '/feedback/tokens', body);
  const { url } = (await createTokens({ run_id: ROOT, feedback_key: 'liked' })).body;
  return {
    createTokens,
    post: (fields: unknown) => call(`${url}`, 'POST', JSON.stringify(fields), { 'content-type': 'application/json' }),
    get: (query: string) => call(`${url}?${query}`, 'GET'),
    postWithoutToken: (fields: unknown) => sendJson(receiver, 'POST', '/feedback', fields),
    /** The fields that the author sent. */
    stored: async () =>
      (await store.feedback(DEFAULT_SCOPE, [ROOT])).map(
        ({ id: _, run_id, key, created_at, modified_at, ...fields }) => fields,
      ),
  };
}

describe('feedback in a body', () => {
  test.each<[string, unknown, boolean]>([
    ['score', -1, true],
    ['score', 0.5, true],
    ['score', true, false],
    ['score', null, false],
    ['value', 5, true],
    ['value', false, true],
    ['value', '', true],
    ['value', { stars: 5 }, true],
    ['comment', '', true],
    ['correction', {}, true],
    ['correction', 'no', false],
    ['metadata', { ['__proto__']: { a: 1 } }, true],
    ['rating', 5, false],
  ])('may have %s of %j (also in strict mode: %s)', async (field, value, inStrictMode) => {
    const { post, stored } = await setUp();
    const given = { metadata: { page: 3 }, [field]: value };
    expect((await post(given)).status).toBe(200);
    expect(await stored()).toEqual([value === null || field === 'rating' ? { metadata: { page: 3 } } : given]);
    const strict = await setUp(true);
    const reply = await strict.post(given);
    expect(reply).toMatchObject(inStrictMode ? { status: 200 } : issueAt('body', field));
  });

  test.each<[string, unknown]>([
    ['score', '1'],
    ['score', {}],
    ['value', []],
    ['comment', 5],
    ['correction', 5],
    ['correction', []],
    ['metadata', 'x'],
    ['metadata', []],
  ])('may not have %s of %j', async (field, value) => {
    for (const strict of [false, true]) {
      expect(await (await setUp(strict)).post({ [field]: value })).toMatchObject(issueAt('body', field));
    }
  });

  test('must be an object, and gets one response with all its issues', async () => {
    const { post, postWithoutToken } = await setUp();
    for (const body of [[], 'x', null, 5]) {
      expect((await post(body)).status).toBe(400);
      expect((await postWithoutToken(body)).status).toBe(400);
    }
    expect((await post({ score: 'x', comment: 5 })).body.detail).toHaveLength(2);
  });
});

describe('feedback in a query string', () => {
  test.each<[string, Record<string, unknown>]>([
    [
      'score=1&value=5&comment=a%20b&correction=%7B%22a%22%3A1%7D&utm_source=mail&mc_cid=1',
      { score: 1, value: '5', comment: 'a b', correction: { a: 1 } },
    ],
    ['score=-0.5', { score: -0.5 }],
    ['score=1e2', { score: 100 }],
    ['score=false', { score: false }],
    ...['the {name} of it', '{', '5', 'true', '"no', '[1]', ' two  spaces '].map(
      (correction): [string, Record<string, unknown>] => [`${new URLSearchParams({ correction })}`, { correction }],
    ),
    ['correction=%22plain%20text%22', { correction: 'plain text' }],
  ])('%s', async (query, fields) => {
    const { get, stored } = await setUp();
    expect((await get(query)).status).toBe(200);
    expect(await stored()).toEqual([fields]);
  });

  test.each(['score=', 'score=good', 'score=0x10', 'score=Infinity', 'score=1e999', 'metadata={}'])(
    'with %s is refused',
    async (query) => {
      expect(await (await setUp()).get(query)).toMatchObject(issueAt('query', query.split('=')[0]));
    },
  );

  test.each([false, true])(
    'with only unknown parameters is refused, and keeps earlier feedback (strict: %s)',
    async (strict) => {
      const { get, stored } = await setUp(strict);
      expect((await get('score=1')).status).toBe(200);
      const detail = [{ loc: ['query', 'scroe'], msg: 'Expected one of score, value, comment, correction' }];
      expect(await get('scroe=0')).toMatchObject({ status: 422, body: { detail } });
      expect(await stored()).toEqual([{ score: 1 }]);
    },
  );

  test('has only numbers, objects and known parameters in strict mode', async () => {
    const { get, stored } = await setUp(true);
    for (const name of ['metadata', 'utm_source'])
      expect(await get(`score=1&${name}={}`)).toMatchObject(issueAt('query', name));
    expect(await stored()).toEqual([]);
    expect((await get('score=1&correction={}')).status).toBe(200);
    expect(await get('score=true')).toMatchObject(issueAt('query', 'score'));
    expect(await get('correction="no"')).toMatchObject(issueAt('query', 'correction'));
  });
});

test.each([false, true])('feedback without content is refused, and keeps the rating (strict: %s)', async (strict) => {
  const { get, post, postWithoutToken, stored } = await setUp(strict);
  await post({ score: 0, comment: 'no' });
  const bodies: object[] = [{}, { value: '' }, { comment: '' }, { correction: {} }, { metadata: {} }];
  if (!strict) bodies.push({ value: null, comment: null }, { rating: 5 });
  const replies = [...['', 'comment=', 'value=&comment=', 'correction={}'].map(get), ...bodies.map(post)];
  if (!strict) replies.push(...bodies.map((fields) => postWithoutToken({ run_id: ROOT, key: 'liked', ...fields })));
  for (const one of replies) expect(await one).toMatchObject({ status: 422, body: { detail: [{ type: 'missing' }] } });
  expect(await stored()).toEqual([{ score: 0, comment: 'no' }]);
  if (!strict) expect((await post({ score: null })).status).toBe(200);
  expect(await stored()).toEqual([strict ? { score: 0, comment: 'no' } : {}]);
});

describe('feedback without a token', () => {
  test('names its run and key, and may name its id', async () => {
    const { postWithoutToken } = await setUp();
    const fields = { run_id: ROOT.toUpperCase(), key: 'liked', score: 1, feedback_source: { type: 'api' } };
    const { body } = await postWithoutToken(fields);
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      run_id: ROOT,
      key: 'liked',
      score: 1,
      created_at: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
      modified_at: body.created_at,
    });
    expect((await postWithoutToken({ ...fields, id: CHILD.replaceAll('-', '') })).body.id).toBe(CHILD);
  });

  test.each<[Record<string, unknown>, string]>([
    [{ run_id: undefined }, 'run_id'],
    [{ run_id: 'x' }, 'run_id'],
    [{ key: undefined }, 'key'],
    [{ key: 5 }, 'key'],
    [{ key: '' }, 'key'],
    [{ key: 'k'.repeat(181) }, 'key'],
    [{ id: 'x' }, 'id'],
    [{ score: 'x' }, 'score'],
  ])('is refused with %j', async (fields, field) => {
    const reply = await (await setUp()).postWithoutToken({ run_id: ROOT, key: 'k'.repeat(180), ...fields });
    expect(reply).toMatchObject(issueAt('body', field));
  });
});

describe('a feedback token', () => {
  function setTime(now = NOW): void {
    vi.useFakeTimers({ toFake: ['Date'], now: new Date(now) });
  }
  const fieldsOf = (fields: Record<string, unknown>) => ({ run_id: ROOT, feedback_key: 'liked', ...fields });

  test.each<[Record<string, unknown>, string]>([
    [{}, '2026-11-20T10:22:40.000000Z'],
    [{ expires_in: null, expires_at: null }, '2026-11-20T10:22:40.000000Z'],
    [{ expires_in: {}, id: CHILD.toUpperCase(), feedback_config: {} }, NOW],
    [{ expires_in: { minutes: 90 } }, '2026-11-20T08:52:40.000000Z'],
    [{ expires_in: { days: 1, hours: 2, minutes: 3 } }, '2026-11-21T09:25:40.000000Z'],
    [{ expires_in: { days: 3_650 } }, '2036-11-17T07:22:40.000000Z'],
    [{ expires_at: '2026-11-20T08:22:40.000001+01:00' }, '2026-11-20T07:22:40.000001Z'],
    [{ expires_at: '2036-11-17T07:22:40Z' }, '2036-11-17T07:22:40.000000Z'],
  ])('with %j expires at %s', async (fields, expected) => {
    setTime();
    const { createTokens } = await setUp();
    expect((await createTokens(fieldsOf(fields))).body.expires_at).toBe(expected);
  });

  test.each<[Record<string, unknown>, string]>([
    [{ run_id: 'x' }, 'run_id'],
    [{ run_id: undefined }, 'run_id'],
    [{ feedback_key: '' }, 'feedback_key'],
    [{ feedback_key: 'k'.repeat(181) }, 'feedback_key'],
    [{ id: 'x' }, 'id'],
    [{ feedback_config: 'x' }, 'feedback_config'],
    [{ expires_at: 'tomorrow' }, 'expires_at'],
    [{ expires_at: 5 }, 'expires_at'],
    [{ expires_at: '2036-11-17T07:22:41Z' }, 'expires_at'],
    [{ expires_at: NOW }, 'expires_at'],
    [{ expires_in: { days: 3_651 } }, 'expires_in'],
    [{ expires_in: { weeks: 1 } }, 'expires_in'],
    [{ expires_in: { hours: -1 } }, 'expires_in'],
    [{ expires_in: { hours: '3' } }, 'expires_in'],
    [{ expires_in: { hours: 1.5 } }, 'expires_in'],
    [{ expires_in: 3 }, 'expires_in'],
    [{ expires_in: { hours: 1 }, expires_at: '2026-11-20T08:00:00Z' }, 'expires_in'],
  ])('with %j is refused', async (fields, field) => {
    setTime();
    const { createTokens } = await setUp();
    expect(await createTokens(fieldsOf(fields))).toMatchObject(issueAt('body', field));
    expect(await createTokens([fieldsOf({}), fieldsOf(fields)])).toMatchObject(issueAt('body', 1, field));
  });

  test.each([['x'], [null], [5], [[null]]])('is not created from %j', async (body) => {
    expect((await (await setUp()).createTokens(body)).status).toBe(400);
  });

  test('is valid until the moment of its expiry', async () => {
    setTime();
    const { post } = await setUp();
    vi.setSystemTime(new Date('2026-11-20T10:22:39.999Z'));
    expect((await post({ score: 1 })).status).toBe(200);
    vi.setSystemTime(new Date('2026-11-20T10:22:40.000Z'));
    expect((await post({ score: 1 })).status).toBe(410);
  });

  test('has a random id, and is created with up to 999 others', async () => {
    const { createTokens } = await setUp();
    const create = (count: number): Promise<Reply> => createTokens(Array.from({ length: count }, () => fieldsOf({})));
    expect((await create(0)).body).toEqual([]);
    const two = await createTokens([fieldsOf({}), { run_id: CHILD, feedback_key: 'short' }]);
    expect(two.body).toMatchObject([{ feedback_key: 'liked' }, { feedback_key: 'short' }]);
    const { body } = (await create(1_000)) as unknown as { body: { id: string }[] };
    expect(body[0]?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-/);
    expect(new Set(body.map(({ id }) => id)).size).toBe(1_000);
    expect((await create(1_001)).status).toBe(413);
  });
});
