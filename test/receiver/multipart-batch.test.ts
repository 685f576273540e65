import { describe, expect, test } from 'vitest';
import { VALUES_MAX } from '../../src/receiver/ingest/json.ts';
import { MemoryStore, type RunOperation } from '../../src/receiver.ts';
import {
  CHILD,
  CHILD_ORDER,
  END,
  makeChild,
  makeRun,
  multipart,
  part,
  ROOT,
  ROOT_ORDER,
  START,
  sendMultipart,
  sendParts,
  start,
} from './wire.ts';

const hex = (id: string) => id.replaceAll('-', '');

describe('a batch of the interface', () => {
  test.each([false, true])('puts together runs, payloads and patches (strict: %s)', async (strict) => {
    const receiver = await start({ strict });
    const reply = await sendParts(
      receiver,
      part(`post.${ROOT}`, makeRun()),
      part(`post.${ROOT}.inputs`, { question: 'Where?' }),
      part(`post.${CHILD}`, makeChild({ tags: ['a'], extra: { metadata: { model: 'm' } } })),
      part(`patch.${CHILD}`, makeChild({ end_time: END, error: 'TypeError: no' })),
      part(`patch.${CHILD}.outputs`, { answer: 'There' }),
      part(`patch.${CHILD}.events`, [{ name: 'new_token', time: START }]),
    );
    expect(reply).toMatchObject({ status: 202, body: { accepted: 3 } });
    expect(await receiver.runs()).toEqual([
      {
        id: ROOT,
        trace_id: ROOT,
        dotted_order: ROOT_ORDER,
        name: 'answer',
        run_type: 'chain',
        start_time: START,
        session_name: 'default',
        inputs: { question: 'Where?' },
      },
      {
        id: CHILD,
        trace_id: ROOT,
        dotted_order: CHILD_ORDER,
        parent_run_id: ROOT,
        name: 'call',
        run_type: 'llm',
        start_time: START,
        end_time: END,
        session_name: 'default',
        inputs: {},
        outputs: { answer: 'There' },
        events: [{ name: 'new_token', time: START }],
        error: 'TypeError: no',
        tags: ['a'],
        extra: { metadata: { model: 'm' } },
      },
    ]);
  });

  test('keeps attachments beside the run, with filename and without, dots in the name included', async () => {
    const receiver = await start({ strict: true });
    const reply = await sendParts(
      receiver,
      part(`post.${ROOT}`, makeRun()),
      part(`attachment.${ROOT}.report.pdf`, Buffer.from([0, 255, 13, 10]), ['Content-Type: application/pdf']),
      part(`attachment.${ROOT}.photo"; filename="p.png`, Buffer.from('png'), ['Content-Type: image/png']),
      part(`attachment.${ROOT}.empty`, Buffer.alloc(0), []),
    );
    expect(reply.status).toBe(202);
    expect((await receiver.trace(ROOT))[0]?.attachments).toEqual([
      { name: 'report.pdf', mime_type: 'application/pdf', size: 4 },
      { name: 'photo', mime_type: 'image/png', size: 3 },
      { name: 'empty', mime_type: 'application/octet-stream', size: 0 },
    ]);
  });

  test('takes a filename of JSON, and what stands around the parts, when not strict', async () => {
    const receiver = await start();
    const body = multipart(part(`post.${ROOT}"; filename="a.json`, makeRun()));
    const around = Buffer.concat([Buffer.from('hello\r\n'), body, Buffer.from('bye')]);
    expect((await sendMultipart(receiver, around)).status).toBe(202);
  });

  test('counts the values of JSON over all parts', async () => {
    const receiver = await start({ strict: true });
    const half = Buffer.from(`{"a":[0${',0'.repeat(VALUES_MAX / 2)}]}`);
    const one = [part(`post.${ROOT}`, makeRun()), part(`post.${ROOT}.inputs`, half)];
    const two = [part(`patch.${ROOT}`, makeRun({ end_time: END })), part(`patch.${ROOT}.outputs`, half)];
    expect((await sendParts(receiver, ...one)).status).toBe(202);
    expect((await sendParts(receiver, ...one, ...two)).status).toBe(413);
  });

  test('takes keys like __proto__ as data', async () => {
    const receiver = await start();
    const inputs = Buffer.from('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
    const record = Buffer.from(JSON.stringify(makeRun()).replace('{', '{"__proto__":{"end_time":1},'));
    expect(await sendParts(receiver, part(`post.${ROOT}`, record), part(`post.${ROOT}.inputs`, inputs))).toMatchObject({
      status: 202,
    });
    const [run] = await receiver.runs();
    expect(JSON.stringify(run?.inputs)).toBe(inputs.toString());
    expect(run).not.toHaveProperty('end_time');
    expect({}).not.toHaveProperty('polluted');
  });
});

test('gives payloads to the store as text as well, as it came, those of the interface that came in parts of their own', async () => {
  const store = new MemoryStore();
  const applied: RunOperation[] = [];
  const apply = store.apply.bind(store);
  store.apply = (operations) => {
    applied.push(...operations);
    return apply(operations);
  };
  const receiver = await start({ store });
  const json = ['Content-Type: application/json'];
  await sendParts(
    receiver,
    part(`post.${ROOT}`, makeRun({ outputs: { in: 'the record' }, events: [] })),
    part(`post.${ROOT}.inputs`, Buffer.from('{ "a": 1.0, "ü": "\\u0041" }'), json),
    part(`post.${ROOT}.outputs`, Buffer.from('null'), json),
    part(`post.${ROOT}.extra`, Buffer.from('{}'), json),
    part(`patch.${ROOT}`, makeRun({ end_time: END })),
    part(`patch.${ROOT}.events`, Buffer.from('[ ]'), json),
  );
  expect(applied.map(({ kind, texts }) => [kind, texts])).toEqual([
    ['post', { inputs: '{ "a": 1.0, "ü": "\\u0041" }' }],
    ['patch', { events: '[ ]' }],
  ]);
  expect(applied[0]?.fields).toMatchObject({ inputs: { a: 1, ü: 'A' }, outputs: { in: 'the record' } });
});

describe('the dialect of the field', () => {
  const type = (bytes: string) => [`Content-Type: application/json; length=${bytes.length}`];
  const fieldPart = (name: string, value: unknown) => part(name, value, type(JSON.stringify(value)));

  test('splits out more parts, has lengths as a parameter and times as numbers', async () => {
    const receiver = await start();
    const reply = await sendParts(
      receiver,
      fieldPart(
        `post.${ROOT}`,
        makeRun({ start_time: '2026-11-20T07:22:40.123Z', end_time: 1795159361500, child_runs: [] }),
      ),
      fieldPart(`post.${ROOT}.extra`, { metadata: { a: 1 }, runtime: { sdk: 'x' } }),
      fieldPart(`post.${ROOT}.error`, 'Error: no'),
      fieldPart(`post.${ROOT}.serialized`, { lc: 1 }),
      fieldPart(`post.${ROOT}.outputs`, {}),
    );
    expect(reply.status).toBe(202);
    expect(await receiver.runs()).toMatchObject([
      {
        start_time: '2026-11-20T07:22:40.123000Z',
        end_time: '2026-11-20T07:22:41.500000Z',
        extra: { metadata: { a: 1 }, runtime: { sdk: 'x' } },
        error: 'Error: no',
        outputs: {},
      },
    ]);
  });

  test('has payloads in the main part, ids without hyphens and null for nothing', async () => {
    const receiver = await start();
    const record = makeChild({
      id: hex(CHILD),
      trace_id: hex(ROOT).toUpperCase(),
      parent_run_id: hex(ROOT),
      dotted_order: CHILD_ORDER.replace(ROOT, hex(ROOT)),
      inputs: { a: 1 },
      outputs: null,
      error: null,
      events: [{ name: 'start', time: START }],
    });
    expect(await sendParts(receiver, fieldPart(`post.${hex(CHILD)}`, record))).toMatchObject({ status: 202 });
    const [run] = await receiver.trace(hex(ROOT));
    expect(run).toMatchObject({
      id: CHILD,
      trace_id: ROOT,
      parent_run_id: ROOT,
      dotted_order: CHILD_ORDER,
      inputs: { a: 1 },
    });
    expect(run).not.toHaveProperty('outputs');
    expect(run).not.toHaveProperty('error');
  });

  test('has patches that name little but their place', async () => {
    const receiver = await start();
    await sendParts(receiver, fieldPart(`post.${CHILD}`, makeChild()));
    const patch = { id: CHILD, trace_id: ROOT, dotted_order: CHILD_ORDER, end_time: END };
    expect(await sendParts(receiver, fieldPart(`patch.${CHILD}`, patch))).toMatchObject({ status: 202 });
    expect(await receiver.runs()).toMatchObject([{ name: 'call', parent_run_id: ROOT, end_time: END }]);
  });
});

describe('a batch that cannot be read is answered with 400 and the part, and nothing of it is stored', () => {
  const good = part(`post.${CHILD}`, makeChild());
  const main = part(`post.${ROOT}`, makeRun());
  const json = ['Content-Type: application/json'];
  test.each<[string, Buffer[], string]>([
    ['bad JSON', [part(`post.${ROOT}`, Buffer.from('{"id":'), json)], `Part post.${ROOT} is no JSON`],
    [
      'bytes that are no UTF-8',
      [part(`post.${ROOT}`, Buffer.from([34, 255, 34]), json)],
      `Part post.${ROOT} is no JSON`,
    ],
    [
      'an empty JSON part',
      [main, part(`post.${ROOT}.inputs`, Buffer.alloc(0), json)],
      `Part post.${ROOT}.inputs is no JSON`,
    ],
    ['a main part that is an array', [part(`post.${ROOT}`, [])], `Part post.${ROOT} is no JSON object`],
    ['an id that is no UUID', [part('post.abc', {})], 'got "post.abc"'],
    ['two main parts for one run', [main, part(`post.${hex(ROOT)}`, makeRun())], `two parts "post.${hex(ROOT)}"`],
    [
      'two payload parts',
      [main, part(`post.${ROOT}.inputs`, {}), part(`post.${ROOT}.inputs`, {})],
      `two parts "post.${ROOT}.inputs"`,
    ],
    [
      'a payload without a main part',
      [part(`post.${ROOT}.inputs`, {})],
      `post.${ROOT}.inputs has no main part post.${ROOT}`,
    ],
    ['a payload of the other operation', [main, part(`patch.${ROOT}.outputs`, {})], `has no main part patch.${ROOT}`],
    ['an attachment without a run', [part(`attachment.${ROOT}.a`, {})], `Part attachment.${ROOT}.a is of a run`],
    [
      'a part of another type',
      [part(`post.${ROOT}`, makeRun(), ['Content-Type: text/plain'])],
      `Expected part post.${ROOT} to be application/json`,
    ],
    [
      'a length that is too long',
      [part(`post.${ROOT}`, makeRun(), [...json, 'Content-Length: 9999'])],
      `Part post.${ROOT} has `,
    ],
    [
      'a length that is no number',
      [part(`post.${ROOT}`, makeRun(), [...json, 'Content-Length: x'])],
      'its Content-Length is x',
    ],
  ])('%s', async (_, parts, detail) => {
    const receiver = await start();
    const reply = await sendParts(receiver, good, ...parts);
    expect(reply).toMatchObject({ status: 400, body: { detail: expect.stringContaining(detail) } });
    expect(await receiver.runs()).toEqual([]);
  });

  test('a body that is cut short', async () => {
    const receiver = await start();
    const body = multipart(good, main);
    expect((await sendMultipart(receiver, body.subarray(0, -20))).status).toBe(400);
    expect(await receiver.runs()).toEqual([]);
  });

  test('a body without any part', async () => {
    const receiver = await start();
    expect((await sendParts(receiver)).status).toBe(400);
  });
});

describe('a field that is wrong is answered with 422 and its place, and nothing of the batch is stored', () => {
  test('a field of one run among others', async () => {
    const receiver = await start();
    const wrong = part(`post.${ROOT}`, makeRun({ end_time: {} }));
    const reply = await sendParts(receiver, part(`post.${CHILD}`, makeChild()), wrong);
    expect(reply).toMatchObject({
      status: 422,
      body: {
        detail: [
          { loc: ['body', `post.${ROOT}`, 'end_time'], type: 'timestamp', msg: expect.stringContaining('end_time') },
        ],
      },
    });
    expect(await receiver.runs()).toEqual([]);
  });

  test('a payload is named by its part, and all errors come in one answer', async () => {
    const receiver = await start();
    const reply = await sendParts(
      receiver,
      part(`post.${ROOT}`, makeRun({ start_time: 'x', trace_id: 'y' })),
      part(`post.${ROOT}.outputs`, 'z'),
    );
    expect(reply.body.detail?.map(({ loc }) => loc)).toEqual([
      ['body', `post.${ROOT}`, 'trace_id'],
      ['body', `post.${ROOT}`, 'start_time'],
      ['body', `post.${ROOT}.outputs`],
    ]);
  });
});

describe('strict mode names what departs from the interface', () => {
  const json = ['Content-Type: application/json'];
  const patch = (fields: Record<string, unknown>) => part(`patch.${ROOT}`, makeRun({ end_time: END, ...fields }));
  const post = (fields: Record<string, unknown>) => part(`post.${ROOT}`, makeRun(fields));
  const payload = (field: string, value: unknown, headers?: string[]) => part(`post.${ROOT}.${field}`, value, headers);

  test.each<[string, Buffer[], (string | number)[], string]>([
    ['no name', [post({ name: undefined })], [`post.${ROOT}`, 'name'], 'missing'],
    ['no end_time in a patch', [patch({ end_time: undefined })], [`patch.${ROOT}`, 'end_time'], 'missing'],
    ['inputs in the main part', [post({ inputs: { a: 1 } })], [`post.${ROOT}`, 'inputs'], 'misplaced'],
    ['outputs in the main part', [patch({ outputs: {} })], [`patch.${ROOT}`, 'outputs'], 'misplaced'],
    ['events in the main part', [post({ events: [] })], [`post.${ROOT}`, 'events'], 'misplaced'],
    ['both names of a project', [post({ session_id: CHILD })], [`post.${ROOT}`, 'session_id'], 'conflict'],
    ['both in a patch', [patch({ session_id: CHILD })], [`patch.${ROOT}`, 'session_id'], 'conflict'],
    ['an id that is none', [post({ trace_id: 'abc' })], [`post.${ROOT}`, 'trace_id'], 'uuid'],
    ['an id without hyphens', [post({ parent_run_id: hex(CHILD) })], [`post.${ROOT}`, 'parent_run_id'], 'uuid'],
    ['empty inputs', [post({}), payload('inputs', {})], [`post.${ROOT}.inputs`], 'empty'],
    ['empty events', [post({}), payload('events', [])], [`post.${ROOT}.events`], 'empty'],
  ])('%s: 422', async (_, parts, loc, type) => {
    const receiver = await start({ strict: true });
    const reply = await sendParts(receiver, ...parts);
    expect(reply).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', ...loc], type }] } });
    expect(await receiver.runs()).toEqual([]);
  });

  test.each<[string, Buffer[], string]>([
    ['a payload that is null', [post({}), payload('outputs', null)], ''],
    [
      'a main part without its own length',
      [part(`post.${ROOT}`, makeRun(), json)],
      `Part post.${ROOT} has no Content-Length`,
    ],
    ['feedback', [post({}), part(`feedback.${CHILD}`, { run_id: ROOT, key: 'a' })], `got "feedback.${CHILD}"`],
    [
      'a payload without its own length',
      [post({}), payload('inputs', { a: 1 }, json)],
      `Part post.${ROOT}.inputs has no Content-Length`,
    ],
    [
      'a wrong length',
      [post({}), payload('inputs', {}, [...json, 'Content-Length: 3'])],
      'has 2 bytes, and its Content-Length is 3',
    ],
    [
      'a length in the type of JSON',
      [part(`post.${ROOT}`, makeRun(), ['Content-Type: application/json; length=9'])],
      `Part post.${ROOT} gives its length in Content-Type`,
    ],
    [
      'a length in the type of an attachment',
      [post({}), part(`attachment.${ROOT}.a`, {}, ['Content-Type: image/png;Length=2'])],
      `Part attachment.${ROOT}.a gives its length in Content-Type`,
    ],
    ['a filename of JSON', [part(`post.${ROOT}"; filename="a.json`, makeRun())], `Part post.${ROOT} has a filename`],
    ['a part before the first boundary', [Buffer.from('hello\r\n'), post({})], 'does not begin with the delimiter'],
    ['an id without hyphens in a name', [part(`post.${hex(ROOT)}`, makeRun())], `got "post.${hex(ROOT)}"`],
  ])('%s', async (_, parts, detail) => {
    const receiver = await start({ strict: true });
    const reply = await sendParts(receiver, ...parts);
    expect(reply.status).toBe(detail === '' ? 422 : 400);
    expect(JSON.stringify(reply.body.detail)).toContain(JSON.stringify(detail).slice(1, -1));
    expect(await receiver.runs()).toEqual([]);
  });

  test('a run may name its project with either of the two fields', async () => {
    const receiver = await start({ strict: true });
    const record = makeRun({ session_name: undefined, session_id: CHILD });
    expect((await sendParts(receiver, part(`post.${ROOT}`, record))).status).toBe(202);
    expect(await receiver.runs({ project: CHILD })).toHaveLength(1);
  });
});
