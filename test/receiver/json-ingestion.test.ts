import { describe, expect, test } from 'vitest';
import { BATCH_OPERATIONS_MAX } from '../../src/receiver/ingest/json-ingestion.ts';
import { CHILD, CHILD_ORDER, END, makeRun, ROOT, ROOT_ORDER, START, sendJson, start } from './wire.ts';

/** What simple ingestion needs of a run and no more. */
function makePost(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { id: ROOT, name: 'answer', run_type: 'chain', inputs: { a: 1 }, start_time: START, ...fields };
}

describe.each([false, true])('simple ingestion (strict: %s)', (strict) => {
  test('a post and a patch make a run; trace and order are made here', async () => {
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

  test('ids may come without hyphens', async () => {
    const receiver = await start({ strict });
    const hex = ROOT.replaceAll('-', '');
    await sendJson(receiver, 'POST', '/runs', makePost({ id: hex, session_name: 'default' }));
    expect((await sendJson(receiver, 'PATCH', `/runs/${hex.toUpperCase()}`, { end_time: END })).status).toBe(202);
    expect(await receiver.trace(ROOT)).toMatchObject([{ id: ROOT, end_time: END }]);
  });

  test('trace and order may also be given', async () => {
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
    ['no JSON', '{"id":', 'The body is no JSON'],
    ['an empty body', '', 'The body is no JSON'],
    ['a list', '[]', 'The body is no JSON object'],
    ['null', 'null', 'The body is no JSON object'],
    ['text', '"x"', 'The body is no JSON object'],
  ])('%s is answered with 400', async (_, body, detail) => {
    const receiver = await start({ strict });
    for (const [method, path] of [
      ['POST', '/runs'],
      ['PATCH', `/runs/${ROOT}`],
    ] as const) {
      const reply = await sendJson(receiver, method, path, body);
      expect(reply).toMatchObject({ status: 400, body: { detail: expect.stringContaining(detail) } });
    }
  });

  test.each(['id', 'name', 'run_type', 'inputs', 'start_time'])(
    'a post without %s is answered with 422',
    async (field) => {
      const receiver = await start({ strict });
      const reply = await sendJson(
        receiver,
        'POST',
        '/runs',
        makePost({ session_name: 'default', [field]: undefined }),
      );
      expect(reply).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', field], type: 'missing' }] } });
      expect(await receiver.runs()).toEqual([]);
    },
  );

  test.each<[string, Record<string, unknown>, string]>([
    ['an id that is no UUID', { id: 'abc' }, 'id'],
    ['its own parent', { parent_run_id: ROOT }, 'parent_run_id'],
    ['a trace that is not in the order', { trace_id: CHILD, dotted_order: ROOT_ORDER }, 'trace_id'],
    ['inputs that are text', { inputs: 'x' }, 'inputs'],
  ])('a post with %s is answered with 422', async (_, fields, field) => {
    const receiver = await start({ strict });
    const reply = await sendJson(receiver, 'POST', '/runs', makePost({ session_name: 'default', ...fields }));
    expect(reply).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', field] }] } });
    expect(await receiver.runs()).toEqual([]);
  });

  test('a patch is of the run in the path', async () => {
    const receiver = await start({ strict });
    const patch = { end_time: END, outputs: {} };
    expect(await sendJson(receiver, 'PATCH', '/runs/abc', patch)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['path', 'run_id'], type: 'uuid' }] },
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
  ])('%s %s %j departs from the interface, and is taken otherwise', async (method, path, body, field) => {
    const strict = await sendJson(await start({ strict: true }), method, path, body);
    expect(strict).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', field] }] } });
    expect((await sendJson(await start(), method, path, body)).status).toBe(202);
  });
});

describe("the field's batch of JSON", () => {
  test('brings posts and patches together', async () => {
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

  test('holds so many posts and patches together and no more', async () => {
    const receiver = await start();
    const posts = (count: number) => Array.from({ length: count }, () => makeRun());
    const patch = [{ id: ROOT, end_time: END }];
    const send = (count: number) => sendJson(receiver, 'POST', '/runs/batch', { post: posts(count - 1), patch });
    for (const count of [BATCH_OPERATIONS_MAX - 1, BATCH_OPERATIONS_MAX]) {
      expect(await send(count)).toMatchObject({ status: 202, body: { accepted: count } });
    }
    expect((await send(BATCH_OPERATIONS_MAX + 1)).status).toBe(413);
  });

  test('of 200 000 posts is refused whole', async () => {
    const receiver = await start();
    const posts = Array.from({ length: 200_000 }, () => ({ id: CHILD }));
    expect(await sendJson(receiver, 'POST', '/runs/batch', { post: [makeRun(), ...posts] })).toMatchObject({
      status: 413,
      body: { detail: expect.stringContaining('1000') },
    });
    expect(await receiver.runs()).toEqual([]);
  });

  test('may be empty', async () => {
    const receiver = await start();
    expect(await sendJson(receiver, 'POST', '/runs/batch', { post: null })).toMatchObject({ body: { accepted: 0 } });
  });

  test.each<[Record<string, unknown>, number, unknown]>([
    [{ post: {} }, 400, 'Expected `post` to be an array, got an object'],
    [{ patch: [1] }, 400, 'patch[0] is no JSON object'],
    [{ post: [makePost(), makePost({ id: 'x' })] }, 422, [expect.objectContaining({ loc: ['body', 'post', 1, 'id'] })]],
    [{ patch: [{ end_time: END }] }, 422, [expect.objectContaining({ loc: ['body', 'patch', 0, 'id'] })]],
  ])('%j is refused whole', async (batch, status, detail) => {
    const receiver = await start();
    const body = { ...batch, post: batch.post ?? [makeRun()] };
    expect(await sendJson(receiver, 'POST', '/runs/batch', body)).toMatchObject({ status, body: { detail } });
    expect(await receiver.runs()).toEqual([]);
  });
});
