import { randomUUID } from 'node:crypto';
import { BlockList } from 'node:net';
import { request } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { RunLimits } from '#src/receiver/http/run-limits.ts';
import { isStoredKey, keyIdOf, newKey, type StoredKey } from '#src/receiver/store/key-store.ts';
import { MemoryStore } from '#src/receiver.ts';
import { simple } from './conformance/support.ts';
import { startService } from './service.ts';
import { makeRun, refusal, START, sendJson, startWithin } from './wire.ts';

const get = async (url: string, headers: Record<string, string>, path = '/query/projects') => {
  const reply = await request(url + path, { headers });
  return { status: reply.statusCode, body: (await reply.body.json()) as { detail?: string } };
};

/** Time for which the receiver caches a key. */
const CACHE_MS = 1_000;

function fakeClock(): (ms: number) => void {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
  return (ms) => void vi.advanceTimersByTime(ms);
}

describe('a key', () => {
  test('has a public id and a secret of 256 bits, of which only the hash is stored', () => {
    const { id, hash, text } = newKey();
    expect(text).toMatch(/^rsk_[0-9a-f]{12}_[\w-]{43}$/);
    expect(Buffer.from(text.slice(17), 'base64url')).toHaveLength(32);
    expect(keyIdOf(text)).toBe(id);
    expect([hash.length, text.includes(hash)]).toEqual([64, false]);
    const stored = { hash } as StoredKey;
    const wrong = `${text.slice(0, -2)}${text.endsWith('AA') ? 'BB' : 'AA'}`;
    expect([isStoredKey(text, stored), isStoredKey(wrong, stored), isStoredKey(`${text}A`, stored)]).toEqual([
      true,
      false,
      false,
    ]);
    expect(newKey().text).not.toBe(text);
  });

  test('is accepted as soon as another connection has stored it, and rejected a second after it was revoked', async () => {
    const later = fakeClock();
    const { url, keys, addKey } = await startService();
    const { id, text } = addKey({ tenant: 'acme', permission: 'read' });
    const headers = { 'x-api-key': text };
    expect((await get(url, headers)).status).toBe(200);
    keys.revokeKey(id, 1);
    expect((await get(url, headers)).status).toBe(200);
    later(CACHE_MS);
    expect(await get(url, headers)).toMatchObject(refusal(401, 'The API key is not valid for this receiver'));
    expect(keys.revokeKey(id, 2)?.revokedMs).toBe(1);
    expect(keys.revokeKey('none', 2)).toBeUndefined();
  });

  test('that was revoked ends its change stream before the next event', async () => {
    const later = fakeClock();
    const { url, store, keys, addKey } = await startService();
    const { id, text } = addKey({ tenant: 'acme', permission: 'read' });
    const { body } = await request(`${url}/query/changes`, { headers: { 'x-api-key': text } });
    const events: string[] = [];
    for await (const event of body) {
      events.push(String(event));
      keys.revokeKey(id, 1);
      later(CACHE_MS);
      await store.apply({ tenant: 'acme' }, [simple(1)]);
    }
    expect(events).toEqual([expect.stringContaining('event: ready')]);
  });

  test.each([
    ['with another secret', 'acme', (text: string) => `${text.slice(0, -4)}AAAA`],
    ['of a tenant that is not configured', 'gone', (text: string) => text],
  ])('%s is rejected', async (_, tenant, change) => {
    const { url, addKey } = await startService();
    const { text } = addKey({ tenant, permission: 'admin' });
    expect((await get(url, { authorization: `Bearer ${change(text)}` })).status).toBe(401);
  });

  test('that is wrong always gets 401, because its 256 bits cannot be guessed', async () => {
    const { url } = await startService();
    const replies = await Promise.all(Array.from({ length: 12 }, () => get(url, { 'x-api-key': newKey().text })));
    expect(replies.map(({ status }) => status)).toEqual(Array(12).fill(401));
  });

  test('records its latest use once a minute, but none for a forged session', async () => {
    const later = fakeClock();
    const { url, store, keys, addKey } = await startService();
    const { id, text } = addKey({ tenant: 'acme', permission: 'read' });
    const useKey = vi.spyOn(store, 'useKey');
    const first = Date.now();
    for (const ms of [0, 59_999, 1]) {
      later(ms);
      await get(url, { 'x-api-key': text });
    }
    later(60_000);
    await get(url, { cookie: `runspan-${new URL(url).port}=${id}:x.y` });
    expect(useKey.mock.calls).toEqual([
      [id, first],
      [id, first + 60_000],
    ]);
    await Promise.all(useKey.mock.results.map(({ value }) => value));
    expect(keys.key(id)?.usedMs).toBe(first + 60_000);
  });
});

describe('a login', () => {
  const cookieOf = (reply: { headers: Record<string, unknown> }) =>
    String(reply.headers['set-cookie']).split(';')[0] ?? '';

  test('with a read key reads only its tenant, cannot write, and ends at its logout, or when the key is revoked', async () => {
    const later = fakeClock();
    const { url, store, keys, addKey } = await startService();
    await store.apply({ tenant: 'bolt' }, [simple(1)]);
    const { id, text } = addKey({ tenant: 'acme', permission: 'read' });
    const cookie = cookieOf(await sendJson({ url }, 'POST', '/login', { key: text }));
    expect(await get(url, { cookie })).toEqual({ status: 200, body: { items: [] } });
    const write = await sendJson({ url }, 'POST', '/runs', makeRun(), { cookie, origin: url });
    expect(write).toMatchObject(refusal(403, 'The read key can only read'));
    const other = cookieOf(await sendJson({ url }, 'POST', '/login', { key: text }));
    await request(`${url}/logout`, { method: 'POST', headers: { cookie: other } });
    expect(await get(url, { cookie: other })).toMatchObject(refusal(401, 'The session has ended'));
    expect((await get(url, { cookie })).status).toBe(200);
    keys.revokeKey(id, 1);
    later(CACHE_MS);
    expect(await get(url, { cookie })).toMatchObject(refusal(401, 'The session has ended'));
  });

  test.each(['write', 'metrics'] as const)('is refused with a %s key', async (permission) => {
    const { url, addKey } = await startService();
    const { text } = addKey({ tenant: 'acme', permission });
    const reply = await sendJson({ url }, 'POST', '/login', { key: text });
    expect(reply).toMatchObject(refusal(401, `This is the ${permission} key: log in with a read key`));
  });
});

test.each([
  ['read', 'chat', { status: 200, body: { permission: 'read', tenant: 'acme', project: 'chat' } }],
  ['admin', undefined, { status: 200, body: { permission: 'admin', tenant: 'acme' } }],
  ['write', undefined, { status: 403 }],
] as const)('the page learns what a %s key allows', async (permission, project, expected) => {
  const { url, addKey } = await startService();
  const { text } = addKey({ tenant: 'acme', permission, ...(project && { project }) });
  const reply = await get(url, { 'x-api-key': text }, '/query/session');
  expect(reply).toMatchObject(expected);
  if ('body' in expected) expect(reply.body).toEqual(expected.body);
});

const proxies = (address: string) => {
  const addresses = new BlockList();
  addresses.addAddress(address);
  const grant = { id: 'proxy', scope: { tenant: 'acme' }, permission: 'read' } as const;
  return [{ addresses, header: 'x-forwarded-user', grant }];
};

test.each([
  ['counts if its address is listed', '127.0.0.1', { 'x-forwarded-user': 'ann' }, 200],
  ['does not count from another address', '10.0.0.1', { 'x-forwarded-user': 'ann' }, 401],
  [
    'does not count from an address in X-Forwarded-For',
    '10.0.0.1',
    { 'x-forwarded-user': 'a', 'x-forwarded-for': '10.0.0.1' },
    401,
  ],
  ['does not count if it is empty', '127.0.0.1', { 'x-forwarded-user': '' }, 401],
  ['does not replace a wrong key', '127.0.0.1', { 'x-forwarded-user': 'ann', 'x-api-key': 'wrong' }, 401],
])('a header from an authenticating proxy %s', async (_, address, headers, status) => {
  const { url } = await startService({ proxies: proxies(address) });
  expect((await get(url, headers as Record<string, string>)).status).toBe(status);
});

test('a tenant above its limit of runs per minute gets 429 with Retry-After, and other tenants do not', async () => {
  const later = fakeClock();
  const { url, addKey } = await startService({}, 2);
  const keys = {
    acme: addKey({ tenant: 'acme', permission: 'write' }),
    bolt: addKey({ tenant: 'bolt', permission: 'write' }),
  };
  const post = async (tenant: 'acme' | 'bolt') => {
    const key = { 'x-api-key': keys[tenant].text };
    const { status, headers } = await sendJson({ url }, 'POST', '/runs', makeRun({ inputs: {} }), key);
    return [status, headers['retry-after']];
  };
  expect([await post('acme'), await post('acme')]).toEqual([
    [202, undefined],
    [202, undefined],
  ]);
  later(10_000);
  expect(await post('acme')).toEqual([429, '50']);
  expect(await post('bolt')).toEqual([202, undefined]);
  later(50_000);
  expect(await post('acme')).toEqual([202, undefined]);
});

test('an import that begins below the limit of runs per minute is stored whole', async () => {
  const { url } = await startWithin(new MemoryStore(), {}, { limits: new RunLimits(() => 1) });
  const headers = { 'content-type': 'application/jsonl' };
  const importRuns = async (count: number) => {
    const lines = Array.from({ length: count }, () =>
      JSON.stringify({ id: randomUUID(), name: 'a', run_type: 'chain', start_time: START }),
    );
    const body = lines.join('\n');
    const reply = await request(`${url}/query/import`, { method: 'POST', headers, body });
    return [reply.statusCode, await reply.body.json()];
  };
  // The receiver stores 5,000 runs at once.
  expect(await importRuns(5_001)).toEqual([200, { traces: 5_001, runs: 5_001 }]);
  expect(await importRuns(1)).toEqual([429, { detail: 'The limit is 1 runs per minute' }]);
});

test('/metrics counts accepted runs, refused requests and bytes, and measures the store', async () => {
  const { url, addKey } = await startService();
  const [write, metrics] = [
    addKey({ tenant: 'acme', permission: 'write' }),
    addKey({ tenant: 'acme', permission: 'metrics' }),
  ];
  const body = JSON.stringify(makeRun({ inputs: {} }));
  await sendJson({ url }, 'POST', '/runs', body, { 'x-api-key': write.text });
  await get(url, {});
  const reply = await request(`${url}/metrics`, { headers: { 'x-api-key': metrics.text } });
  const text = await reply.body.text();
  expect(reply.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  for (const line of [
    'runspan_accepted_runs_total 1',
    'runspan_refused_requests_total{reason="unauthorized"} 1',
    `runspan_received_bytes_total ${body.length}`,
    'runspan_open_streams 0',
    'runspan_store_seconds_bucket{method="apply",le="+Inf"} 1',
    'runspan_store_seconds_count{method="apply"} 1',
    'runspan_write_queue_bytes 0',
    'runspan_unindexed_runs 1',
    'runspan_store_damaged 0',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
  expect(text).toMatch(/^runspan_store_bytes\{file="main"\} [1-9]\d+$/m);
  expect(text).toMatch(/^runspan_disk_free_bytes [1-9]\d+$/m);
  // Each family has a type, and each sample a number.
  for (const line of text.trim().split('\n'))
    expect(line).toMatch(/^(# (HELP|TYPE) runspan_\w+ .+|runspan_\w+(\{.+\})? [\d.e-]+)$/);
});

test('/metrics has the cost, the unpriced calls, the model calls and the errors of each project', async () => {
  const { url, store, addKey } = await startService();
  const tokens = { input_tokens: 2, output_tokens: 1 };
  const call = (n: number, session_name: string, usage_metadata: object, fields = {}) =>
    simple(n, { run_type: 'llm', session_name, outputs: { usage_metadata }, ...fields });
  const odd = 'a "b"\\\n';
  await store.apply({ tenant: 'acme' }, [call(1, 'chat', tokens), call(2, 'chat', { ...tokens, total_cost: 1.5 })]);
  await store.apply({ tenant: 'bolt' }, [call(3, odd, { ...tokens, total_cost: 2 }, { error: 'Error: x' })]);
  const { text: key } = addKey({ tenant: 'acme', permission: 'metrics' });
  const { body } = await request(`${url}/metrics`, { headers: { 'x-api-key': key } });
  const lines = (await body.text()).split('\n').filter((line) => line.startsWith('runspan_project_'));
  const [chat, other] = ['tenant="acme",project="chat"', 'tenant="bolt",project="a \\"b\\"\\\\\\n"'];
  expect(lines).toEqual([
    `runspan_project_cost{${chat}} 1.5`,
    `runspan_project_cost{${other}} 2`,
    `runspan_project_unpriced_calls{${chat}} 1`,
    `runspan_project_unpriced_calls{${other}} 0`,
    `runspan_project_model_calls{${chat}} 2`,
    `runspan_project_model_calls{${other}} 1`,
    `runspan_project_errors{${chat}} 0`,
    `runspan_project_errors{${other}} 1`,
  ]);
});

test.each([
  [200, 'that is not limited, of the only tenant', ['acme'], {}],
  [403, 'that is limited to a project', ['acme'], { project: 'chat' }],
  [403, 'of one of two tenants', ['acme', 'bolt'], {}],
])('/metrics responds with %i to an admin key %s', async (status, _, tenants, limits) => {
  const { url, addKey } = await startService({}, undefined, tenants);
  const answerTo = async (permission: 'admin' | 'metrics') => {
    const { text } = addKey({ tenant: 'acme', permission, ...limits });
    const { statusCode, body } = await request(`${url}/metrics`, { headers: { 'x-api-key': text } });
    return [statusCode, await body.text()];
  };
  const text = status === 200 ? 'runspan_accepted_runs_total' : 'use a key with the scope metrics';
  expect(await answerTo('admin')).toEqual([status, expect.stringContaining(text)]);
  expect((await answerTo('metrics'))[0]).toBe(200);
});

test('/metrics has the figures of the process while the store fails, for a key that was used before', async () => {
  const later = fakeClock();
  const { url, store, addKey } = await startService({}, undefined, ['acme']);
  const keys = (['metrics', 'admin'] as const).map((permission) => addKey({ tenant: 'acme', permission }).text);
  const answers = () =>
    Promise.all(
      keys.map(async (key) => {
        const { statusCode, body } = await request(`${url}/metrics`, { headers: { 'x-api-key': key } });
        const text = await body.text();
        return [statusCode, ['open_streams', 'write_queue'].filter((name) => text.includes(name))];
      }),
    );
  const all = [200, ['open_streams', 'write_queue']];
  expect(await answers()).toEqual([all, all]);
  await store.close();
  later(CACHE_MS);
  for (let scrape = 0; scrape < 2; scrape += 1) {
    expect(await answers()).toEqual([
      [200, ['open_streams']],
      [500, []],
    ]);
    later(CACHE_MS);
  }
});

test('a login has a Secure cookie if the public URL is https', async () => {
  for (const [publicUrl, isSecure] of [
    ['https://runs.example', true] as const,
    ['http://runs.example', false] as const,
  ]) {
    const { url, addKey } = await startService({ publicUrl });
    const { text } = addKey({ tenant: 'acme', permission: 'read' });
    const { headers } = await sendJson({ url }, 'POST', '/login', { key: text });
    expect(`${headers['set-cookie']}`.endsWith('; Secure')).toBe(isSecure);
  }
});

test('feedback tokens have the public URL, and work without a key', async () => {
  const { url, store, addKey } = await startService({ publicUrl: 'https://runs.example' });
  const run = simple(1);
  await store.apply({ tenant: 'bolt' }, [run]);
  const key = { 'x-api-key': addKey({ tenant: 'bolt', permission: 'write' }).text };
  const asked = { run_id: run.id, feedback_key: 'liked' };
  const { body: token } = await sendJson({ url }, 'POST', '/feedback/tokens', asked, key);
  const [, base, path] = /^(.*)(\/feedback\/tokens\/[\w.-]+)$/.exec(`${token.url}`) ?? [];
  expect(base).toBe('https://runs.example/api/v1');
  expect((await get(url, {}, `${path}?score=1`)).status).toBe(200);
  expect(await store.feedback({ tenant: 'bolt' }, [run.id])).toMatchObject([{ key: 'liked', score: 1 }]);
});
