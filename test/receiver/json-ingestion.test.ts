import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonReader } from '#src/receiver/http/json.ts';
import { forAll } from '../support/campaign.ts';
import {
  CHILD,
  CHILD_ORDER,
  call,
  END,
  issueAt,
  makeRun,
  ROOT,
  ROOT_ORDER,
  refusal,
  START,
  sendJson,
  start,
} from './wire.ts';

function makePost(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { id: ROOT, name: 'answer', run_type: 'chain', inputs: { a: 1 }, start_time: START, ...fields };
}

describe.each([false, true])('simple ingestion (strict: %s)', (strict) => {
  const project = { session_name: 'default' };

  test('a post and a patch form a run, for which the receiver generates trace and order', async () => {
    const receiver = await start({ strict });
    const accepted = { status: 202, body: { accepted: 1 } };
    const [post, patch] = [makePost(project), { outputs: { b: 2 }, end_time: END }];
    expect(await sendJson(receiver, 'POST', '/runs', post)).toMatchObject(accepted);
    const hex = ROOT.replaceAll('-', '').toUpperCase();
    expect(await sendJson(receiver, 'PATCH', `/runs/${hex}`, patch)).toMatchObject(accepted);
    expect(await receiver.runs()).toEqual([{ ...post, ...patch, trace_id: ROOT, dotted_order: ROOT_ORDER }]);
  });

  test('trace and order may be sent, and ids may have no hyphens', async () => {
    const receiver = await start({ strict });
    const id = CHILD.replaceAll('-', '');
    const given = { ...project, id, trace_id: ROOT, dotted_order: CHILD_ORDER, parent_run_id: ROOT };
    expect((await sendJson(receiver, 'POST', '/runs', makePost(given))).status).toBe(202);
    expect(await receiver.trace(ROOT)).toMatchObject([{ id: CHILD, dotted_order: CHILD_ORDER }]);
  });

  test.each([
    ['{"id":', 'The body is not valid JSON'],
    ['', 'The body is not valid JSON'],
    ['[]', 'The body is not a JSON object'],
    ['null', 'The body is not a JSON object'],
  ])('the body %j gets 400', async (body, detail) => {
    const receiver = await start({ strict });
    expect(await sendJson(receiver, 'POST', '/runs', body)).toMatchObject(refusal(400, detail));
    expect(await sendJson(receiver, 'PATCH', `/runs/${ROOT}`, body)).toMatchObject(refusal(400, detail));
  });

  test.each<[Record<string, unknown>, string]>([
    ...['id', 'name', 'run_type', 'inputs', 'start_time'].map((field): [Record<string, unknown>, string] => [
      { [field]: undefined },
      field,
    ]),
    [{ id: 'abc' }, 'id'],
    [{ parent_run_id: ROOT }, 'parent_run_id'],
    [{ trace_id: CHILD, dotted_order: ROOT_ORDER }, 'trace_id'],
    [{ inputs: 'x' }, 'inputs'],
  ])('a post with %j gets 422', async (fields, field) => {
    const receiver = await start({ strict });
    const reply = await sendJson(receiver, 'POST', '/runs', makePost({ ...project, ...fields }));
    expect(reply).toMatchObject(issueAt('body', field));
    expect(await receiver.runs()).toEqual([]);
  });

  test('a patch applies to the run in the path', async () => {
    const receiver = await start({ strict });
    const patch = { end_time: END, outputs: {} };
    expect(await sendJson(receiver, 'PATCH', '/runs/abc', patch)).toMatchObject(issueAt('path', 'run_id'));
    expect(await sendJson(receiver, 'PATCH', `/runs/${ROOT}`, {})).toMatchObject({ status: 422 });
    const other = await sendJson(receiver, 'PATCH', `/runs/${ROOT}`, { ...patch, id: CHILD });
    expect(other).toMatchObject(issueAt('body', 'id'));
  });
});

test.each<['POST' | 'PATCH', string, Record<string, unknown>, string]>([
  ['POST', '/runs', makePost(), 'session_name'],
  ['POST', '/runs', makePost({ session_name: 'a', child_runs: [] }), 'child_runs'],
  ['POST', '/runs', makePost({ session_name: 'a', start_time: 1795159360123 }), 'start_time'],
  ['POST', '/runs', makePost({ session_name: 'a', session_id: CHILD }), 'session_id'],
  ['POST', '/runs', makePost({ session_name: 'a', outputs: {} }), 'outputs'],
  ['POST', '/runs', makePost({ session_name: 'a', end_time: END }), 'end_time'],
  ['POST', '/runs', makePost({ session_name: 'a', events: [] }), 'events'],
  ['PATCH', `/runs/${ROOT}`, { end_time: END, inputs: {}, name: 'answer', start_time: START }, 'inputs'],
  ['PATCH', `/runs/${ROOT}`, { end_time: END, events: [] }, 'events'],
  ['PATCH', `/runs/${ROOT}`, { end_time: END, session_name: 'a', session_id: CHILD }, 'session_id'],
  ['PATCH', `/runs/${ROOT}`, { outputs: {} }, 'end_time'],
  ['PATCH', `/runs/${ROOT}`, { outputs: null, end_time: END }, 'outputs'],
])('%s %s %j is refused in strict mode only', async (method, path, body, field) => {
  expect(await sendJson(await start({ strict: true }), method, path, body)).toMatchObject(issueAt('body', field));
  expect((await sendJson(await start(), method, path, body)).status).toBe(202);
});

describe('POST /runs/batch', () => {
  const send = async (batch: unknown) => {
    const receiver = await start();
    return { receiver, reply: await sendJson(receiver, 'POST', '/runs/batch', batch) };
  };

  test('stores posts and patches', async () => {
    const start_time = '2026-11-20T07:22:40.123460Z';
    const child = { id: CHILD, name: 'call', run_type: 'llm', start_time, parent_run_id: ROOT };
    const { receiver, reply } = await send({
      post: [child, makeRun({ inputs: { a: 1 } })],
      patch: [{ id: CHILD, end_time: END, outputs: { b: 2 } }],
    });
    expect(reply).toMatchObject({ status: 202, body: { accepted: 3 } });
    expect(await receiver.trace(ROOT)).toMatchObject([
      { id: ROOT, inputs: { a: 1 } },
      { id: CHILD, dotted_order: CHILD_ORDER, outputs: { b: 2 }, end_time: END },
    ]);
  });

  test('accepts up to 1000 posts and patches', async () => {
    const batch = (posts: number) => ({ post: Array(posts).fill(makeRun()), patch: [{ id: ROOT, end_time: END }] });
    expect((await send({ post: null })).reply).toMatchObject({ status: 202, body: { accepted: 0 } });
    expect((await send(batch(999))).reply).toMatchObject({ status: 202, body: { accepted: 1_000 } });
    expect((await send(batch(1_000))).reply).toMatchObject(refusal(413, '1000'));
  });

  test.each<[Record<string, unknown>, object]>([
    [{ post: {} }, refusal(400, 'Expected `post` to be an array, got an object')],
    [{ patch: [1] }, refusal(400, 'patch.0 is not a JSON object')],
    [{ post: [makePost(), makePost({ id: 'x' })] }, issueAt('body', 'post', 1, 'id')],
    [{ patch: [{ end_time: END }] }, issueAt('body', 'patch', 0, 'id')],
    [{ runs: [{ id: CHILD }] }, issueAt('body', 'runs')],
  ])('refuses the whole batch %j', async (batch, expected) => {
    const { receiver, reply } = await send({ post: [makeRun()], ...batch });
    expect(reply).toMatchObject(expected);
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
    ['name', '', 'a non-empty string, got ""'],
    ['session_id', [], 'a non-empty string, got an array'],
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
    ['error', {}, 'a string, got an object'],
    ['extra', { metadata: [] }, 'an object whose `metadata` and `runtime` are objects'],
  ])('refuse %s as %j', async (field, value, expected) => {
    const { status, detail } = await patchWith({ [field]: value });
    expect([status, detail?.[0]]).toMatchObject([422, { loc: ['body', field], type: 'value' }]);
    expect(detail?.[0]?.msg).toContain(`Expected \`${field}\` to be ${expected}`);
  });

  test('name the index of a tag that is not text, and may have a dotted order of 1000 segments', async () => {
    expect((await patchWith({ tags: ['a', 1] })).detail?.[0]).toMatchObject({ loc: ['body', 'tags', 1] });
    expect((await patchWith({ dotted_order: order(1_000) })).status).toBe(202);
  });
});

describe('the JSON of a request', () => {
  const send = async (text: string | Buffer) =>
    call(`${(await start()).url}/runs`, 'POST', text, { 'content-type': 'application/json' });
  const inputs = (json: string) => JSON.stringify(makePost({ inputs: 'INPUTS' })).replace('"INPUTS"', () => json);
  const parse = (texts: string[], limits = {}) => {
    const reader = new JsonReader(limits);
    return texts.map((text) => reader.parse(Buffer.from(text), 'The body').value);
  };
  const refused = (status: number, detail: string) =>
    expect.objectContaining({ status, detail: expect.stringContaining(detail) });
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
  const zeros = (count: number) => `[0${',0'.repeat(count - 1)}]`;

  test('may have 512 levels, and 2 000 000 values over all parts [security 9]', async () => {
    for (const levels of [511, 512]) parse([nested(levels)]);
    expect(() => parse([nested(513)])).toThrow(refused(400, '512'));
    parse([`[${'[],{},'.repeat(600)}0]`]);
    parse([zeros(9), '[]'], { valuesMax: 10 });
    expect(() => parse([zeros(8), '[0,0,0]'], { valuesMax: 10 })).toThrow(refused(413, '10 values'));
    expect(await send(inputs(`{"a":${nested(511)}}`))).toMatchObject(refusal(400, '512'));
    expect(await send(inputs(`{"a":${zeros(2_000_000)}}`))).toMatchObject(refusal(413, '2000000 values'));
  });

  test('may have 200 000 distinct keys over all parts, which are known if they follow the same keys [security 9]', async () => {
    const limits = { distinctMax: 10 };
    const object = (...keys: string[]) => `{${keys.map((key) => `"${key}":"a:b"`).join(',')}}`;
    const rows = Array.from({ length: 100 }, () => object('a', 'b:', 'c\\"'));
    parse([`[${rows.join(',')}]`, `[${rows.join(',')}]`], limits);
    parse([object(...'abcdefghij'), object(...'abc')], limits);
    const other = refused(413, '10 distinct keys');
    expect(() => parse([object(...'abcdefghijk')], limits)).toThrow(other);
    expect(() => parse([`[${object(...'abcde')},${object(...'edcbaf')}]`], limits)).toThrow(other);
    expect(() => parse([`[${[...'abcdefghijk'].map((key) => object(key)).join(',')}]`], limits)).toThrow(other);
    // A few keys have equal hashes.
    const keys = Array.from({ length: 200_100 }, (_, at) => `"k${at}":0`);
    expect(await send(inputs(`{${keys.join(',')}}`))).toMatchObject(refusal(413, '200000 distinct keys'));
  });

  test('is limited before it is parsed, but not within strings, and must be UTF-8', async () => {
    for (const end of ['\\"', '\\\\', '\\\\\\"', 'x']) {
      expect(() => parse([`["${end}"${',['.repeat(600)}${']'.repeat(601)}`])).toThrow(refused(400, '512'));
      parse([`["${end}${'['.repeat(600)}${','.repeat(20)}"]`], { valuesMax: 10 });
    }
    expect((await send(Buffer.from(inputs('{"a":"ü"}'), 'latin1'))).status).toBe(400);
  });

  test('is read as JSON.parse reads it', async () => {
    forAll(100, [fc.json()], (json) => {
      expect(parse([json])).toEqual([JSON.parse(json)]);
    });
    const receiver = await start();
    const json = '{"a":[1e3,"\\u00fc\\ud83d",{"__proto__":{"b":null}}]}';
    expect((await sendJson(receiver, 'POST', '/runs', inputs(json))).status).toBe(202);
    expect((await receiver.runs())[0]?.inputs).toEqual(JSON.parse(json));
  });
});
