import { Readable } from 'node:stream';
import fc from 'fast-check';
import { FormDataEncoder } from 'form-data-encoder';
import { FormData, request } from 'undici';
import { describe, expect, test } from 'vitest';
import { MemoryStore, type Receiver, type RunOperation } from '#src/receiver.ts';
import { forAllAsync } from '../support/campaign.ts';
import {
  BOUNDARY,
  CHILD,
  CHILD_ORDER,
  call,
  END,
  makeChild,
  makeRun,
  multipart,
  part,
  type Reply,
  ROOT,
  ROOT_ORDER,
  refusal,
  START,
  sendMultipart,
  sendParts,
  start,
} from './wire.ts';

const HEX_ROOT = ROOT.replaceAll('-', '');
const JSON_TYPE = ['Content-Type: application/json'];
const post = (fields: Record<string, unknown> = {}) => part(`post.${ROOT}`, makeRun(fields));
const patch = (fields: Record<string, unknown> = {}) => part(`patch.${ROOT}`, makeRun({ end_time: END, ...fields }));
const payload = (field: string, value: unknown, headers?: string[]) => part(`post.${ROOT}.${field}`, value, headers);
const attachment = (name: string, bytes: Buffer, headers: string[] = []) =>
  part(`attachment.${ROOT}.${name}`, bytes, headers);

/** Starts a receiver whose store also records the operations of each request. */
async function startRecording(): Promise<{ receiver: Receiver; operations: RunOperation[] }> {
  const store = new MemoryStore();
  const operations: RunOperation[] = [];
  const apply = store.apply.bind(store);
  store.apply = (scope, more) => {
    operations.push(...more);
    return apply(scope, more);
  };
  return { receiver: await start({ store }), operations };
}

async function expectRefused(reply: Reply, receiver: Receiver, status: number, detail: string): Promise<void> {
  expect(reply).toMatchObject(refusal(status, detail));
  expect(await receiver.runs()).toEqual([]);
}

describe('a batch', () => {
  test.each([false, true])('combines runs, payloads and patches (strict: %s)', async (strict) => {
    const receiver = await start({ strict });
    const reply = await sendParts(
      receiver,
      post(),
      payload('inputs', { question: 'Where?' }),
      part(`post.${CHILD}`, makeChild({ tags: ['a'], extra: { metadata: { model: 'm' } } })),
      part(`patch.${CHILD}`, makeChild({ end_time: END, error: 'TypeError: no' })),
      part(`patch.${CHILD}.outputs`, { answer: 'There' }),
      part(`patch.${CHILD}.events`, [{ name: 'new_token', time: START }]),
    );
    expect(reply).toMatchObject({ status: 202, body: { accepted: 3 } });
    expect(await receiver.runs()).toEqual([
      { ...makeRun(), inputs: { question: 'Where?' } },
      {
        ...makeChild(),
        end_time: END,
        inputs: {},
        outputs: { answer: 'There' },
        events: [{ name: 'new_token', time: START }],
        error: 'TypeError: no',
        tags: ['a'],
        extra: { metadata: { model: 'm' } },
      },
    ]);
  });

  test('contains attachments with and without a file name, whose names may contain dots', async () => {
    const receiver = await start({ strict: true });
    const reply = await sendParts(
      receiver,
      post(),
      attachment('report.pdf', Buffer.from([0, 255, 13, 10]), ['Content-Type: application/pdf']),
      attachment('photo"; filename="p.png', Buffer.from('png'), ['Content-Type: image/png']),
      attachment('empty', Buffer.alloc(0)),
    );
    expect(reply.status).toBe(202);
    expect((await receiver.trace(ROOT))[0]?.attachments).toEqual([
      { name: 'report.pdf', mime_type: 'application/pdf', size: 4 },
      { name: 'photo', mime_type: 'image/png', size: 3 },
      { name: 'empty', mime_type: 'application/octet-stream', size: 0 },
    ]);
  });

  test('passes payloads to the store also as their original text', async () => {
    const { receiver, operations } = await startRecording();
    await sendParts(
      receiver,
      post({ outputs: { in: 'the record' }, events: [] }),
      payload('inputs', Buffer.from('{ "a": 1.0, "ü": "\\u0041" }'), JSON_TYPE),
      payload('outputs', null),
      payload('extra', {}),
      patch(),
      part(`patch.${ROOT}.events`, Buffer.from('[ ]'), JSON_TYPE),
    );
    expect(operations.map(({ kind, texts }) => [kind, texts])).toEqual([
      ['post', { inputs: '{ "a": 1.0, "ü": "\\u0041" }' }],
      ['patch', { events: '[ ]' }],
    ]);
    expect(operations[0]?.fields).toMatchObject({ inputs: { a: 1, ü: 'A' }, outputs: { in: 'the record' } });
  });
});

describe('the dialect of other clients', () => {
  const dialectPart = (name: string, value: unknown) =>
    part(name, value, [`Content-Type: application/json; length=${JSON.stringify(value).length}`]);

  test('has more parts, part lengths as a parameter, and times as numbers', async () => {
    const receiver = await start();
    const record = makeRun({ start_time: '2026-11-20T07:22:40.123Z', end_time: 1795159361500, child_runs: [] });
    const reply = await sendParts(
      receiver,
      dialectPart(`post.${ROOT}`, record),
      dialectPart(`post.${ROOT}.extra`, { metadata: { a: 1 }, runtime: { sdk: 'x' } }),
      dialectPart(`post.${ROOT}.error`, 'Error: no'),
      dialectPart(`post.${ROOT}.serialized`, { lc: 1 }),
      dialectPart(`post.${ROOT}.outputs`, {}),
    );
    expect(reply.status).toBe(202);
    const { child_runs: _, ...fields } = record;
    expect(await receiver.runs()).toEqual([
      {
        ...fields,
        start_time: '2026-11-20T07:22:40.123000Z',
        end_time: '2026-11-20T07:22:41.500000Z',
        extra: { metadata: { a: 1 }, runtime: { sdk: 'x' } },
        error: 'Error: no',
        inputs: {},
        outputs: {},
      },
    ]);
  });

  test('has payloads in the main part, ids without hyphens, and null in absent fields', async () => {
    const receiver = await start();
    const record = makeChild({
      id: CHILD.replaceAll('-', ''),
      trace_id: HEX_ROOT.toUpperCase(),
      parent_run_id: HEX_ROOT,
      dotted_order: CHILD_ORDER.replace(ROOT, HEX_ROOT),
      inputs: { a: 1 },
      outputs: null,
      error: null,
    });
    const name = `post.${CHILD.replaceAll('-', '').toUpperCase()}"; filename="a.json`;
    expect((await sendParts(receiver, dialectPart(name, record))).status).toBe(202);
    expect(await receiver.trace(HEX_ROOT)).toEqual([makeChild({ inputs: { a: 1 } })]);
  });

  test('has patches with only the place of the run', async () => {
    const receiver = await start();
    await sendParts(receiver, dialectPart(`post.${CHILD}`, makeChild()));
    const fields = { id: CHILD, trace_id: ROOT, dotted_order: CHILD_ORDER, end_time: END };
    expect((await sendParts(receiver, dialectPart(`patch.${CHILD}`, fields))).status).toBe(202);
    expect(await receiver.runs()).toMatchObject([{ name: 'call', parent_run_id: ROOT, end_time: END }]);
  });
});

describe('a malformed batch gets 400 and is not stored', () => {
  const other = part(`post.${CHILD}`, makeChild());
  const empty = Buffer.alloc(0);
  test.each<[string, Buffer[], string]>([
    ['invalid JSON', [part(`post.${ROOT}`, Buffer.from('{"id":'))], `Part post.${ROOT} is not valid JSON`],
    ['invalid UTF-8', [part(`post.${ROOT}`, Buffer.from([34, 255, 34]))], `Part post.${ROOT} is not valid JSON`],
    ['an empty JSON part', [post(), payload('inputs', empty)], `Part post.${ROOT}.inputs is not valid JSON`],
    ['an array as the main part', [part(`post.${ROOT}`, [])], `Part post.${ROOT} is not a JSON object`],
    ['two main parts', [post(), part(`post.${HEX_ROOT}`, makeRun())], `two parts named "post.${HEX_ROOT}"`],
    ['two payloads', [post(), payload('inputs', {}), payload('inputs', {})], `two parts named "post.${ROOT}.inputs"`],
    ['a payload of the other operation', [post(), part(`patch.${ROOT}.outputs`, {})], `no main part patch.${ROOT}`],
    ['an attachment without a run', [attachment('a', empty)], `Part attachment.${ROOT}.a belongs to a run`],
    ['another type', [part(`post.${ROOT}`, makeRun(), ['Content-Type: text/plain'])], 'to be application/json, got'],
    ['a wrong length', [part(`post.${ROOT}`, 1, [...JSON_TYPE, 'Content-Length: 99'])], 'its Content-Length is 99'],
    ['a length that is not a number', [part(`post.${ROOT}`, 1, [...JSON_TYPE, 'Content-Length: x'])], 'is x'],
    ['a long part name', [part('n'.repeat(121), {})], `got "${'n'.repeat(120)}…"`],
  ])('%s', async (_, parts, detail) => {
    const receiver = await start();
    await expectRefused(await sendParts(receiver, other, ...parts), receiver, 400, detail);
  });

  test('no run, or another part name', async () => {
    const receiver = await start();
    await expectRefused(await sendParts(receiver), receiver, 400, 'contains no run');
    const names = ['', 'post', 'post.', 'post.abc', `post.${ROOT} `, `post.${ROOT}.`, `post.${ROOT}.feedback`];
    names.push('feedback.abc', `feedback.${ROOT}.score`, `post.${ROOT}.inputs.x`, `post.${ROOT}.__proto__`);
    names.push(`post.${ROOT.replace('-', '')}`, `put.${ROOT}`, `POST.${ROOT}`);
    names.push(`attachment.${ROOT}`, `attachment.${ROOT}.`, 'attachment.abc.a');
    for (const name of names) {
      const reply = await sendParts(receiver, other, part(name, {}));
      await expectRefused(reply, receiver, 400, `got ${JSON.stringify(name)}`);
    }
  });
});

describe('an invalid field gets 422 and its location, and the batch is not stored', () => {
  test('all issues of all runs are in one response', async () => {
    const receiver = await start();
    const reply = await sendParts(
      receiver,
      part(`post.${CHILD}`, makeChild()),
      post({ start_time: 'x', trace_id: 'y' }),
      payload('outputs', 'z'),
      part(`patch.${CHILD}`, makeChild({ end_time: {} })),
    );
    expect(reply).toMatchObject({
      status: 422,
      body: {
        detail: [
          {
            loc: ['body', `post.${ROOT}`, 'trace_id'],
            msg: 'Expected `trace_id` to be a UUID, got "y"',
            type: 'value',
          },
          { loc: ['body', `post.${ROOT}`, 'start_time'], type: 'value' },
          { loc: ['body', `post.${ROOT}.outputs`], msg: 'Expected `outputs` to be an object, got "z"' },
          { loc: ['body', `patch.${CHILD}`, 'end_time'] },
        ],
      },
    });
    expect(await receiver.runs()).toEqual([]);
  });

  test('a response has at most 100 issues and 120 characters of a name', async () => {
    const receiver = await start({ strict: true });
    const fields = Array.from({ length: 101 }, (_, index) => [`${index}`.padEnd(121, 'x'), 1]);
    const { body } = await sendParts(receiver, post(Object.fromEntries(fields)));
    expect(body.detail).toHaveLength(100);
    expect(body.detail?.[0]?.loc[2]).toBe(`${'0'.padEnd(120, 'x')}…`);
  });
});

describe('strict mode', () => {
  test.each<[string, Buffer[], (string | number)[], string]>([
    ['null in a field', [post({ end_time: null })], [`post.${ROOT}`, 'end_time'], 'value'],
    ['no project', [post({ session_name: undefined })], [`post.${ROOT}`, 'session_name'], 'missing'],
    ['both names of a project', [post({ session_id: CHILD })], [`post.${ROOT}`, 'session_id'], 'conflict'],
    ['both in a patch', [patch({ session_id: CHILD })], [`patch.${ROOT}`, 'session_id'], 'conflict'],
    ['an unknown field', [post({ toString: 1 })], [`post.${ROOT}`, 'toString'], 'unknown_field'],
    ['outputs in the main part', [patch({ outputs: {} })], [`patch.${ROOT}`, 'outputs'], 'misplaced'],
    ['an id without hyphens', [post({ trace_id: HEX_ROOT })], [`post.${ROOT}`, 'trace_id'], 'value'],
    ['empty events', [post(), payload('events', [])], [`post.${ROOT}.events`], 'empty'],
    ['outputs of null', [post(), payload('outputs', null)], [`post.${ROOT}.outputs`], 'empty'],
  ])('refuses %s with 422', async (_, parts, loc, type) => {
    const receiver = await start({ strict: true });
    const reply = await sendParts(receiver, ...parts);
    expect(reply).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', ...loc], type }] } });
    expect(await receiver.runs()).toEqual([]);
  });

  test.each<[string, Buffer[], string]>([
    ['a payload without a length', [post(), payload('inputs', 1, JSON_TYPE)], 'inputs has no Content-Length'],
    ['a wrong length', [post(), payload('inputs', {}, [...JSON_TYPE, 'Content-Length: 3'])], 'has 2 bytes, but'],
    ['a length in the type of JSON', [part(`post.${ROOT}`, 1, [`${JSON_TYPE}; length=9`])], 'in Content-Type'],
    ['a length in another type', [attachment('a', Buffer.alloc(1), ['Content-Type: a/b;Length=2'])], 'in Content-Type'],
    ['a file name of JSON', [part(`post.${ROOT}"; filename="a.json`, makeRun())], 'has a filename'],
    ['feedback', [post(), part(`feedback.${CHILD}`, {})], `got "feedback.${CHILD}"`],
    ['parts of other clients', [post(), payload('extra', {})], `got "post.${ROOT}.extra"`],
    ['an id without hyphens in a name', [part(`post.${HEX_ROOT}`, makeRun())], `got "post.${HEX_ROOT}"`],
  ])('refuses %s with 400', async (_, parts, detail) => {
    const receiver = await start({ strict: true });
    await expectRefused(await sendParts(receiver, ...parts), receiver, 400, detail);
  });

  test('accepts a preamble and an epilogue, but no other text on the lines of the delimiters', async () => {
    const [strict, lenient] = [await start({ strict: true }), await start()];
    const body = multipart(post()).subarray(0, -2).toString('latin1');
    const answer = async (receiver: Receiver, text: string) => {
      const { status, body: reply } = await sendMultipart(receiver, Buffer.from(text, 'latin1'));
      return status === 202 ? reply.accepted : status;
    };
    const epilogues = ['', ' \t', '\r\n', '\r\nbye', `\r\n--${BOUNDARY}\r\n${body}`];
    for (const after of epilogues) expect(await answer(strict, `${body}${after}`)).toBe(1);
    for (const before of ['\r\n', 'hello\r\n']) expect(await answer(strict, before + body)).toBe(1);
    for (const after of ['x', '-', '\n', ' x\r\n']) {
      expect(await answer(strict, body + after)).toBe(400);
      expect(await answer(lenient, body + after)).toBe(1);
    }
    for (const before of ['x', 'hello\n'])
      for (const receiver of [strict, lenient]) expect(await answer(receiver, before + body)).toBe(400);
  });
});

describe('the framing of parts', () => {
  const send = async (text: string): Promise<Reply> => sendMultipart(await start(), Buffer.from(text, 'latin1'));
  const disposition = `Content-Disposition: form-data; name="post.${ROOT}"`;
  const json = `\r\nContent-Type: application/json\r\n\r\n${JSON.stringify(makeRun())}`;

  test('preserves the bytes of every attachment, however the network splits the body', async () => {
    const { receiver, operations } = await startRecording();
    const chunk = fc.oneof(
      fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)),
      fc.constantFrom('\r\n', '--', `\r\n--${BOUNDARY.slice(0, -1)}`, '\r\n\r\n').map((text) => Buffer.from(text)),
    );
    const any = fc.array(chunk, { maxLength: 5 }).map((all) => Buffer.concat(all));
    // Random bytes may complete the boundary.
    const bytes = any.filter((all) => !all.includes(BOUNDARY));
    await forAllAsync(100, [fc.array(bytes, { maxLength: 5 }), fc.integer({ min: 1, max: 300 })], async (all, size) => {
      const body = multipart(...all.map((one, at) => attachment(`${at}`, one)), post());
      const chunks = Array.from({ length: Math.ceil(body.length / size) }, (_, at) =>
        body.subarray(at * size, (at + 1) * size),
      );
      operations.length = 0;
      const headers = { 'content-type': `multipart/form-data; boundary="${BOUNDARY}"` };
      const url = `${receiver.url}/runs/multipart`;
      const reply = await request(url, { method: 'POST', body: Readable.from(chunks), headers });
      await reply.body.dump();
      expect(reply.statusCode).toBe(202);
      expect(operations[0]?.attachments.map((one) => Buffer.from(one.bytes))).toEqual(all);
    });
  });

  test('accepts the output of form-data-encoder, including names with quotes and line breaks', async () => {
    const form = new FormData();
    const type = 'application/json';
    form.set(`post.${ROOT}`, new File([JSON.stringify(makeRun())], 'a', { type }));
    form.set(`attachment.${ROOT}.größe "a"\r\n.txt`, new File(['grün'], 'x.txt', { type: 'text/plain' }));
    const encoder = new FormDataEncoder(form, BOUNDARY);
    const chunks = await Readable.from(encoder.encode()).toArray();
    const { receiver, operations } = await startRecording();
    expect((await sendMultipart(receiver, Buffer.concat(chunks))).status).toBe(202);
    expect(operations[0]?.attachments).toEqual([
      { name: 'größe "a"\r\n.txt', mimeType: 'text/plain', bytes: Uint8Array.from(Buffer.from('grün')) },
    ]);
  });

  test('accepts spaces after a delimiter, and an empty part that shares its line break', async () => {
    const { receiver, operations } = await startRecording();
    const empty = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="attachment.${ROOT}.a"\r\n\r\n`;
    const body = `${empty}--${BOUNDARY} \t\r\ncontent-disposition: form-data; NAME=post.${ROOT}${json}\r\n--${BOUNDARY}--`;
    expect((await sendMultipart(receiver, Buffer.from(body))).status).toBe(202);
    expect(operations[0]?.attachments).toMatchObject([{ name: 'a', bytes: { length: 0 } }]);
  });

  test('refuses a body that is cut short anywhere', async () => {
    const receiver = await start();
    const body = multipart(post(), payload('inputs', { a: 1 }));
    for (let length = 0; length < body.length - 10; length += 7) {
      expect((await sendMultipart(receiver, body.subarray(0, length))).status, `${length}`).toBe(400);
    }
    const reply = await sendMultipart(receiver, body.subarray(0, -10));
    await expectRefused(reply, receiver, 400, 'Unexpected end of multipart data in part 2');
  });

  test('refuses a part without a disposition and a name, and names its position', async () => {
    const other = disposition.replace('form-data', 'attachment');
    for (const header of ['X: a', 'Content-Disposition: form-data', other, disposition.slice(0, -1), '']) {
      const reply = await send(`${part('x', 1)}--${BOUNDARY}\r\n${header}${json}\r\n--${BOUNDARY}--`);
      expect(reply).toMatchObject(refusal(400, 'Part 2 has no Content-Disposition'));
    }
  });

  test.each([
    ...['X', ': a', ' folded: a', 'X: a\rb', 'X: a\nY: b'].map((line) => [line, 'is malformed']),
    ['content-disposition: form-data; name="b"', 'contains content-disposition twice'],
    ['Content-Transfer-Encoding: base64', 'contains the unsupported transfer encoding "base64"'],
  ])('refuses the header line %j', async (line, problem) => {
    const reply = await send(`--${BOUNDARY}\r\n${disposition}\r\n${line}${json}\r\n--${BOUNDARY}--`);
    expect(reply).toMatchObject(refusal(400, `The header of part 1 ${problem}`));
  });

  test.each<[string, number, (count: number) => Buffer[], number]>([
    [
      'parts',
      10_000,
      (count) => Array.from({ length: count - 1 }, (_, at) => attachment(`${at % 100}-${at}`, Buffer.alloc(0))),
      413,
    ],
    ['bytes of a name', 1_000, (count) => [attachment('n'.repeat(count - 48), Buffer.alloc(0))], 400],
    ['bytes of a header', 16_384, (count) => [attachment('a', Buffer.alloc(0), [`X: ${'x'.repeat(count - 95)}`])], 400],
  ])('accepts %s up to %i [security 9]', async (_, limit, partsFor, status) => {
    const store = new MemoryStore();
    store.apply = async () => undefined;
    const receiver = await start({ store });
    for (const count of [limit - 1, limit]) {
      expect(await sendParts(receiver, post(), ...partsFor(count)), `${count}`).toMatchObject({ status: 202 });
    }
    expect((await sendParts(receiver, post(), ...partsFor(limit + 1))).status).toBe(status);
  });

  test.each<[string | undefined, number, string?]>([
    [`multipart/form-data;boundary="${BOUNDARY}"`, 202],
    [`Multipart/Form-Data; charset=utf-8; Boundary=${BOUNDARY}; x=y`, 202],
    [undefined, 415],
    ['application/json', 415],
    [`multipart/mixed; boundary=${BOUNDARY}`, 415],
    ['multipart/form-data', 400],
    ['multipart/form-data; boundary=', 400],
    ['multipart/form-data; boundary=""', 400],
    [`multipart/form-data; boundary=${'b'.repeat(70)}`, 202, 'b'.repeat(70)],
    [`multipart/form-data; boundary=${'b'.repeat(71)}`, 400, 'b'.repeat(71)],
  ])('answers the content type %s with %i', async (type, status, boundary = BOUNDARY) => {
    const { url } = await start();
    const body = multipart(post()).toString().replaceAll(BOUNDARY, boundary);
    const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
    expect((await call(`${url}/runs/multipart`, 'POST', body, headers)).status).toBe(status);
  });
});

test.each<[Record<string, unknown>, string]>([
  [{ parent_run_id: CHILD }, 'parent_run_id'],
  [{ id: CHILD }, 'id'],
  [{ dotted_order: ROOT_ORDER.replace(ROOT, CHILD), trace_id: CHILD }, 'dotted_order'],
  [{ dotted_order: `${ROOT_ORDER}.${ROOT_ORDER}`, parent_run_id: ROOT }, 'parent_run_id'],
])('the fields %j contradict other fields of the run', async (fields, field) => {
  const detail = [{ loc: ['body', `post.${ROOT}`, field], type: 'mismatch' }];
  expect(await sendParts(await start(), post(fields))).toMatchObject({ status: 422, body: { detail } });
});
