import zlib from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { version } from '#src/base/version.ts';
import {
  CHILD,
  call,
  END,
  makeChild,
  makeRun,
  part,
  ROOT,
  ROOT_ORDER,
  raw,
  refusal,
  sendJson,
  sendParts,
  start,
} from './wire.ts';

test('GET /info recommends multipart and a batch size, and lists the compressed bodies that this Node can read', async () => {
  const receiver = await start();
  expect(await call(`${receiver.url}/info`, 'GET')).toMatchObject({
    status: 200,
    body: {
      version,
      batch_ingest_config: { use_multipart_endpoint: true, size_limit: 1_000, size_limit_bytes: 20_971_520 },
      instance_flags: { gzip_body_enabled: true, zstd_compression_enabled: 'createZstdDecompress' in zlib },
    },
  });
});

describe('paths', () => {
  test.each(['/run', '/runs/', '/runs/a/b', '/info/', '/api/v1', '/api/v2/info', '/v1/profiles', '//runs'])(
    '%s gets 404',
    async (path) => {
      const receiver = await start();
      expect(await call(receiver.url + path, 'GET')).toMatchObject(refusal(404, 'No route matches'));
    },
  );

  test.each<['GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE', string, string]>([
    ['GET', '/runs', 'POST'],
    ['PUT', '/runs', 'POST'],
    ['GET', '/runs/multipart', 'POST'],
    ['PATCH', '/runs/multipart', 'POST'],
    ['PATCH', '/runs/batch', 'POST'],
    ['POST', `/runs/${ROOT}`, 'PATCH, GET'],
    ['DELETE', `/api/v1/runs/${ROOT}`, 'PATCH, GET'],
    ['POST', '/info', 'GET'],
    ['GET', '/v1/traces', 'POST'],
    ['PUT', '/otel/v1/traces', 'POST'],
    ['GET', '/feedback/tokens', 'POST, DELETE'],
  ])('%s %s gets 405 and the allowed methods', async (method, path, allow) => {
    const receiver = await start();
    const reply = await call(receiver.url + path, method, method === 'GET' ? undefined : '{}');
    expect(reply).toMatchObject({ ...refusal(405, allow), headers: { allow } });
  });

  test('also exist below /api/v1 and with a query string', async () => {
    const receiver = await start();
    expect((await call(`${receiver.url}/api/v1/info?a=b`, 'GET')).status).toBe(200);
    expect((await sendJson(receiver, 'POST', '/api/v1/runs', { ...makeRun(), inputs: {} })).status).toBe(202);
    expect((await sendJson(receiver, 'PATCH', `/api/v1/runs/${ROOT}`, { end_time: END })).status).toBe(202);
    expect((await receiver.runs())[0]?.end_time).toBe(END);
  });

  test('of other clients, and below /api/v1, do not exist in strict mode', async () => {
    const receiver = await start({ strict: true });
    expect((await call(`${receiver.url}/info`, 'GET')).status).toBe(200);
    expect((await call(`${receiver.url}/api/v1/info`, 'GET')).status).toBe(404);
    for (const path of ['/api/v1/runs', '/runs/batch', '/runs/query', '/v1/traces', '/feedback']) {
      expect((await sendJson(receiver, 'POST', path, {})).status, path).toBe(404);
    }
  });
});

test.each<['GET' | 'POST' | 'PATCH', string]>([
  ['GET', '/datasets'],
  ['POST', '/api/v1/datasets/upload'],
  ['PATCH', `/sessions/${ROOT}`],
  ['POST', '/api/v2/runs/query'],
  ['GET', '/public/schemas'],
])("routes of LangSmith's API that are not served: %s %s gets 501 and what to use instead", async (method, path) => {
  const receiver = await start();
  const body = method === 'GET' ? undefined : '{}';
  expect(await call(receiver.url + path, method, body)).toMatchObject(refusal(501, ':'));
  await receiver.close();
  const strict = await start({ strict: true });
  expect((await call(strict.url + path, method, body)).status).toBe(404);
});

describe('hostile paths', () => {
  test.each<['GET' | 'PATCH' | 'POST', string, number]>([
    ['PATCH', '/runs/..%2f..%2fetc%2fpasswd', 422],
    ['PATCH', '/runs/%00', 422],
    ['PATCH', `/runs/${ROOT}%00`, 422],
    ['PATCH', `/runs/${ROOT}%2fx`, 422],
    ['PATCH', '/runs/__proto__', 422],
    ['PATCH', '/runs/%', 400],
    ['PATCH', `/runs/${'x'.repeat(10_000)}`, 422],
    ['GET', '/runs/../info', 200],
    ['GET', '/%69nfo', 404],
    ['GET', '/info%00', 404],
    ['GET', '/..%2f..%2fetc%2fpasswd', 404],
    ['GET', '/query/runs/__proto__', 422],
    ['GET', `/query/runs/${ROOT}/__proto__`, 404],
    ['GET', '/feedback/tokens/constructor', 404],
    ['POST', '/api/v1/api/v1/runs', 404],
    ['GET', '//evil.example/info', 404],
    ['GET', '/\\evil.example', 404],
  ])('%s %s', async (method, path, status) => {
    const receiver = await start();
    const { host } = new URL(receiver.url);
    // Sent by hand, because HTTP clients normalize paths.
    const head = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close', 'Content-Type: application/json'];
    const text = await raw(receiver.url, `${head.join('\r\n')}\r\nContent-Length: 2\r\n\r\n{}`);
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    if (status !== 200) expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n')))).toHaveProperty('detail');
  });

  test('a request may have an absolute URL of this receiver only', async () => {
    const receiver = await start();
    const { host } = new URL(receiver.url);
    const asked = (target: string) =>
      raw(receiver.url, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(await asked(`http://${host}/info`)).toMatch(/^HTTP\/1.1 200 /);
    expect(await asked('http://evil.example/info')).toMatch(/^HTTP\/1.1 400 /);
    expect(await asked('info')).toMatch(/^HTTP\/1.1 400 /);
    expect(await asked('http://[/info')).toMatch(/^HTTP\/1.1 400 /);
  });
});

describe('POST /runs/query', () => {
  test('returns the runs of a trace, parents first, up to the limit', async () => {
    const receiver = await start();
    await sendParts(receiver, part(`post.${CHILD}`, makeChild()), part(`post.${ROOT}`, makeRun()));
    const runs = await receiver.trace(ROOT);
    const ask = (body: unknown) => sendJson(receiver, 'POST', '/runs/query', body);

    expect(await ask({ trace: ROOT })).toMatchObject({ status: 200, body: { runs } });
    expect((await ask({ trace: ROOT.replaceAll('-', '') })).body.runs).toEqual(runs);
    expect((await ask({ trace: ROOT, limit: 1 })).body.runs).toEqual(runs.slice(0, 1));
    expect((await ask({ trace: CHILD })).body.runs).toEqual([]);
  });

  test('returns at most 100 runs', async () => {
    const receiver = await start();
    const children = Array.from({ length: 100 }, (_, n) => {
      const id = `0193b3a0-2222-7000-8000-${String(n).padStart(12, '0')}`;
      return part(`post.${id}`, makeChild({ id, dotted_order: `${ROOT_ORDER}.20261120T072240123460Z${id}` }));
    });
    await sendParts(receiver, part(`post.${ROOT}`, makeRun()), ...children);
    const { body } = await sendJson(receiver, 'POST', '/runs/query', { trace: ROOT, limit: 1_000 });
    expect(body.runs).toHaveLength(100);
  });
});

describe('content types', () => {
  // The first three are those that a form of any page may send.
  test.each(['application/x-www-form-urlencoded', 'text/plain;charset=UTF-8', '', 'application/jsonp'])(
    'a body of type %j is refused [security 8]',
    async (type) => {
      const receiver = await start();
      for (const path of ['/runs', '/runs/batch', '/runs/multipart']) {
        const reply = await call(receiver.url + path, 'POST', JSON.stringify(makeRun()), { 'content-type': type });
        expect(reply).toMatchObject(refusal(415, JSON.stringify(type)));
      }
      expect(await receiver.runs()).toEqual([]);
    },
  );

  test('a charset is ignored', async () => {
    const receiver = await start();
    const body = JSON.stringify({ ...makeRun({ name: 'grün' }), inputs: {} });
    const headers = { 'content-type': 'Application/JSON; charset=utf-8' };
    expect((await call(`${receiver.url}/runs`, 'POST', body, headers)).status).toBe(202);
    expect(await receiver.runs({ filter: 'name:grün' })).toHaveLength(1);
  });
});

test('one connection serves many requests, including refused ones with a body', async () => {
  const receiver = await start();
  for (let round = 0; round < 3; round += 1) {
    expect((await sendJson(receiver, 'POST', '/nowhere', 'x'.repeat(200_000))).status).toBe(404);
    expect((await sendParts(receiver, part(`post.${ROOT}`, makeRun()))).status).toBe(202);
  }
});

test('a HEAD request gets the headers of open routes, gets 405 for others, and stores no feedback', async () => {
  const receiver = await start();
  for (const path of ['/info', '/']) {
    const { status, headers } = await call(`${receiver.url}${path}`, 'HEAD');
    expect([status, Number(headers['content-length'])]).toEqual([200, expect.toSatisfy((length) => length > 0)]);
  }
  expect((await call(`${receiver.url}/query/projects`, 'HEAD')).status).toBe(405);
  expect((await call(`${receiver.url}/api/v1/feedback/tokens/${ROOT}`, 'HEAD')).status).toBe(405);
});
