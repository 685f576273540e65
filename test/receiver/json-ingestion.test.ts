import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CHILD, CHILD_ORDER, call, END, makeRun, ROOT, ROOT_ORDER, START, sendJson, start } from './wire.ts';

/** The required fields of simple ingestion. */
function makePost(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { id: ROOT, name: 'answer', run_type: 'chain', inputs: { a: 1 }, start_time: START, ...fields };
}

describe.each([false, true])('simple ingestion (strict: %s)', (strict) => {
  test('a post and a patch form a run, for which the receiver generates trace and order', async () => {
    const receiver = await start({ strict });
    const post = makePost({ session_name: 'default' });
    expect(await sendJson(receiver, 'POST', '/runs', post)).toMatchObject({ status: 202, body: { accepted: 1 } });
    const patch = { outputs: { b: 2 }, end_time: END };
    expect(await sendJson(receiver, 'PATCH', `/runs/${ROOT}`, patch)).toMatchObject({
      status: 202,
      body: { accepted: 1 },
    });
    expect(await receiver.runs()).toEqual([{ ...post, ...patch, trace_id: ROOT, dotted_order: ROOT_ORDER }]);
  });

  test('ids may have no hyphens', async () => {
    const receiver = await start({ strict });
    const hex = ROOT.replaceAll('-', '');
    await sendJson(receiver, 'POST', '/runs', makePost({ id: hex, session_name: 'default' }));
    expect((await sendJson(receiver, 'PATCH', `/runs/${hex.toUpperCase()}`, { end_time: END })).status).toBe(202);
    expect(await receiver.trace(ROOT)).toMatchObject([{ id: ROOT, end_time: END }]);
  });

  test('trace and order may be sent', async () => {
    const receiver = await start({ strict });
    const given = {
      id: CHILD,
      trace_id: ROOT,
      dotted_order: CHILD_ORDER,
      parent_run_id: ROOT,
      session_name: 'default',
    };
    expect((await sendJson(receiver, 'POST', '/runs', makePost(given))).status).toBe(202);
    expect(await receiver.trace(ROOT)).toMatchObject([{ id: CHILD, dotted_order: CHILD_ORDER }]);
  });

  test.each([
    ['invalid JSON', '{"id":', 'The body is not valid JSON'],
    ['an empty body', '', 'The body is not valid JSON'],
    ['a list', '[]', 'The body is not a JSON object'],
    ['null', 'null', 'The body is not a JSON object'],
    ['text', '"x"', 'The body is not a JSON object'],
  ])('%s gets 400', async (_, body, detail) => {
    const receiver = await start({ strict });
    for (const [method, path] of [
      ['POST', '/runs'],
      ['PATCH', `/runs/${ROOT}`],
    ] as const) {
      const reply = await sendJson(receiver, method, path, body);
      expect(reply).toMatchObject({ status: 400, body: { detail: expect.stringContaining(detail) } });
    }
  });

  test.each(['id', 'name', 'run_type', 'inputs', 'start_time'])('a post without %s gets 422', async (field) => {
    const receiver = await start({ strict });
    const reply = await sendJson(receiver, 'POST', '/runs', makePost({ session_name: 'default', [field]: undefined }));
    expect(reply).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', field], type: 'missing' }] } });
    expect(await receiver.runs()).toEqual([]);
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['an id that is not a UUID', { id: 'abc' }, 'id'],
    ['its own parent', { parent_run_id: ROOT }, 'parent_run_id'],
    ['a trace other than that of its order', { trace_id: CHILD, dotted_order: ROOT_ORDER }, 'trace_id'],
    ['text as inputs', { inputs: 'x' }, 'inputs'],
  ])('a post with %s gets 422', async (_, fields, field) => {
    const receiver = await start({ strict });
    const reply = await sendJson(receiver, 'POST', '/runs', makePost({ session_name: 'default', ...fields }));
    expect(reply).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', field] }] } });
    expect(await receiver.runs()).toEqual([]);
  });

  test('a patch applies to the run in the path', async () => {
    const receiver = await start({ strict });
    const patch = { end_time: END, outputs: {} };
    expect(await sendJson(receiver, 'PATCH', '/runs/abc', patch)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['path', 'run_id'], type: 'value' }] },
    });
    expect(await sendJson(receiver, 'PATCH', `/runs/${ROOT}`, { ...patch, id: CHILD })).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['body', 'id'], type: 'mismatch' }] },
    });
  });
});

describe('simple ingestion by mode', () => {
  test.each<['POST' | 'PATCH', string, Record<string, unknown>, string]>([
    ['POST', '/runs', makePost(), 'session_name'],
    ['POST', '/runs', makePost({ session_name: 'a', child_runs: [] }), 'child_runs'],
    ['POST', '/runs', makePost({ session_name: 'a', start_time: 1795159360123 }), 'start_time'],
    ['POST', '/runs', makePost({ session_name: 'a', session_id: CHILD }), 'session_id'],
    ['POST', '/runs', makePost({ session_name: 'a', outputs: {} }), 'outputs'],
    ['PATCH', `/runs/${ROOT}`, { end_time: END, session_name: 'a', session_id: CHILD }, 'session_id'],
    ['PATCH', `/runs/${ROOT}`, { outputs: {} }, 'end_time'],
    ['PATCH', `/runs/${ROOT}`, { outputs: null, end_time: END }, 'outputs'],
  ])('%s %s %j is refused in strict mode only', async (method, path, body, field) => {
    const strict = await sendJson(await start({ strict: true }), method, path, body);
    expect(strict).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', field] }] } });
    expect((await sendJson(await start(), method, path, body)).status).toBe(202);
  });
});

describe('POST /runs/batch', () => {
  test('stores posts and patches', async () => {
    const receiver = await start();
    const child = {
      id: CHILD,
      name: 'call',
      run_type: 'llm',
      start_time: '2026-11-20T07:22:40.123460Z',
      parent_run_id: ROOT,
    };
    const batch = {
      post: [child, makeRun({ inputs: { a: 1 } })],
      patch: [{ id: CHILD, end_time: END, outputs: { b: 2 } }],
    };
    expect(await sendJson(receiver, 'POST', '/runs/batch', batch)).toMatchObject({
      status: 202,
      body: { accepted: 3 },
    });
    expect(await receiver.trace(ROOT)).toMatchObject([
      { id: ROOT, inputs: { a: 1 } },
      { id: CHILD, dotted_order: CHILD_ORDER, outputs: { b: 2 }, end_time: END },
    ]);
  });

  test('accepts up to 1000 posts and patches', async () => {
    const receiver = await start();
    const patch = [{ id: ROOT, end_time: END }];
    const send = (count: number) =>
      sendJson(receiver, 'POST', '/runs/batch', { post: Array.from({ length: count - 1 }, () => makeRun()), patch });
    for (const count of [999, 1_000]) {
      expect(await send(count)).toMatchObject({ status: 202, body: { accepted: count } });
    }
    expect(await send(1_001)).toMatchObject({ status: 413, body: { detail: expect.stringContaining('1000') } });
  });

  test('may be empty', async () => {
    const receiver = await start();
    expect(await sendJson(receiver, 'POST', '/runs/batch', { post: null })).toMatchObject({ body: { accepted: 0 } });
  });

  test.each<[Record<string, unknown>, number, unknown]>([
    [{ post: {} }, 400, 'Expected `post` to be an array, got an object'],
    [{ patch: [1] }, 400, 'patch[0] is not a JSON object'],
    [{ post: [makePost(), makePost({ id: 'x' })] }, 422, [expect.objectContaining({ loc: ['body', 'post', 1, 'id'] })]],
    [{ patch: [{ end_time: END }] }, 422, [expect.objectContaining({ loc: ['body', 'patch', 0, 'id'] })]],
  ])('refuses the whole batch %j', async (batch, status, detail) => {
    const receiver = await start();
    const body = { ...batch, post: batch.post ?? [makeRun()] };
    expect(await sendJson(receiver, 'POST', '/runs/batch', body)).toMatchObject({ status, body: { detail } });
    expect(await receiver.runs()).toEqual([]);
  });
});

describe('the fields of a run', () => {
  const hex = (text: string) => text.replaceAll('-', '');
  const order = (levels: number) => Array.from({ length: levels }, () => ROOT_ORDER).join('.');

  async function patchWith(fields: Record<string, unknown>, strict = false) {
    const receiver = await start({ strict });
    await sendJson(receiver, 'POST', '/runs', makePost({ session_name: 'default' }));
    const { status, body } = await sendJson(receiver, 'PATCH', `/runs/${ROOT}`, { end_time: END, ...fields });
    const [run] = await receiver.runs();
    return { status, detail: body.detail, run };
  }

  test.each<[string, unknown, unknown]>([
    ['id', ROOT.toUpperCase(), ROOT],
    ['end_time', '2026-11-20T08:22:40.123456+01:00', START],
    ['dotted_order', ROOT_ORDER.toLowerCase(), ROOT_ORDER],
    ['trace_id', hex(ROOT), ROOT],
    ['outputs', { a: [1] }, { a: [1] }],
    ['events', [{ name: 'a', time: START }], [{ name: 'a', time: START }]],
    ['error', '', ''],
    ['tags', [], []],
    ['extra', { metadata: {}, a: 1 }, { metadata: {}, a: 1 }],
    ['run_type', 'anything', 'anything'],
  ])('accept %s as %j in both modes', async (field, value, stored) => {
    for (const strict of [false, true]) {
      expect(await patchWith({ [field]: value }, strict)).toMatchObject({ status: 202, run: { [field]: stored } });
    }
  });

  test.each<[string, unknown, unknown]>([
    ['end_time', 1795159360123, '2026-11-20T07:22:40.123000Z'],
    ['end_time', Date.UTC(2255, 0) - 1, '2254-12-31T23:59:59.999000Z'],
    ['error', null, undefined],
    ['extra', { metadata: null, runtime: null }, {}],
    ['unknown', 1, undefined],
  ])('accept %s as %j unless the receiver is strict', async (field, value, stored) => {
    const { status, run } = await patchWith({ [field]: value });
    expect([status, run?.[field as keyof typeof run]]).toEqual([202, stored]);
    expect((await patchWith({ [field]: value }, true)).status).toBe(422);
  });

  test.each<[string, unknown, string]>([
    ['id', 5, 'a UUID, got the number 5'],
    ['trace_id', ROOT.replace('-', ''), 'a UUID, got "'],
    ['parent_run_id', {}, 'a UUID, got an object'],
    ['name', '', 'text that is not empty, got ""'],
    ['session_id', [], 'text that is not empty, got an array'],
    ['start_time', 'yesterday', 'an ISO 8601 time'],
    ['start_time', '1969-12-31T23:59:59Z', 'an ISO 8601 time'],
    ['end_time', '2026-02-30T00:00:00Z', 'an ISO 8601 time'],
    ['end_time', Date.UTC(2255, 0), 'an ISO 8601 time'],
    ['dotted_order', `20261120T072240Z${ROOT}`, 'at most 1000 segments'],
    ['dotted_order', `20261320T072240123456Z${ROOT}`, 'at most 1000 segments'],
    ['dotted_order', `.${ROOT_ORDER}`, 'at most 1000 segments'],
    ['dotted_order', order(1_001), 'at most 1000 segments'],
    ['dotted_order', '.'.repeat(100_000), 'at most 1000 segments'],
    ['outputs', 'x', 'an object, got "x"'],
    ['events', ['x'], 'an array of objects, got an array'],
    ['error', {}, 'text, got an object'],
    ['extra', { metadata: [] }, 'an object whose `metadata` and `runtime` are objects'],
  ])('refuse %s as %j', async (field, value, expected) => {
    const { status, detail } = await patchWith({ [field]: value });
    expect([status, detail?.[0]]).toMatchObject([422, { loc: ['body', field], type: 'value' }]);
    expect(detail?.[0]?.msg).toContain(`Expected \`${field}\` to be ${expected}`);
  });

  test('refuse a tag that is not text, and name its index', async () => {
    expect((await patchWith({ tags: ['a', 1] })).detail?.[0]).toMatchObject({ loc: ['body', 'tags', 1] });
  });

  test('accept a dotted order of 1000 segments', async () => {
    expect((await patchWith({ dotted_order: order(1_000) })).status).toBe(202);
  });
});

describe('the JSON of a request', () => {
  const send = async (text: string | Buffer) =>
    call(`${(await start()).url}/runs`, 'POST', text, { 'content-type': 'application/json' });
  const inputs = (json: string) => JSON.stringify(makePost({ inputs: 'INPUTS' })).replace('"INPUTS"', () => json);
  const nested = (levels: number) => `{"a":${'['.repeat(levels - 2)}${']'.repeat(levels - 2)}}`;
  const zeros = (count: number) => `{"a":[0${',0'.repeat(count - 1)}]}`;

  test('may have 512 levels', async () => {
    for (const levels of [511, 512]) expect((await send(inputs(nested(levels)))).status).toBe(202);
    expect(await send(inputs(nested(513)))).toMatchObject({
      status: 400,
      body: { detail: expect.stringMatching(/512/) },
    });
    expect(
      (
        await send(
          inputs(`[${'[],{},'.repeat(600)}0]`)
            .replace('[[]', '{"a":[[]')
            .replace(/0]/, '0]}'),
        )
      ).status,
    ).toBe(202);
  });

  test('may have 2 000 000 values over all parts', async () => {
    const others = inputs('{}').split(',').length + 2;
    for (const count of [1_999_998 - others, 1_999_999 - others])
      expect((await send(inputs(zeros(count)))).status).toBe(202);
    expect((await send(inputs(zeros(2_000_002 - others)))).status).toBe(413);
  });

  test('is limited before it is parsed, but not within strings', async () => {
    const deep = (end: string) => inputs(`{"a":["${end}"${',['.repeat(600)}${']'.repeat(601)}}`);
    const long = (end: string) => inputs(`{"a":"${end}${'['.repeat(600)}${','.repeat(2_000_001)}"}`);
    for (const end of ['\\"', '\\\\', '\\\\\\"', 'x']) {
      expect((await send(deep(end))).status).toBe(400);
      expect((await send(long(end))).status).toBe(202);
    }
    const bytes = gzipSync(`[${'{},'.repeat(40_000_000)}0]`);
    const receiver = await start();
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    expect((await call(`${receiver.url}/runs`, 'POST', bytes, headers)).status).toBe(413);
  });

  test('is read as JSON.parse reads it', async () => {
    const receiver = await start();
    await fc.assert(
      fc.asyncProperty(fc.json(), async (json) => {
        expect((await sendJson(receiver, 'POST', '/runs', inputs(`{"a":${json}}`))).status).toBe(202);
        expect((await receiver.runs())[0]?.inputs).toEqual({ a: JSON.parse(json) });
      }),
    );
  });

  test('must be UTF-8', async () => {
    expect((await send(Buffer.from(inputs('{"a":"ü"}'), 'latin1'))).status).toBe(400);
  });
});
