import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import type { Receiver, StoredRun } from '#src/receiver.ts';
import { forAllAsync } from '../support/campaign.ts';
import { openLocalStore, storePath } from './local-store.ts';
import { startService } from './service.ts';
import { refusal, sendJson, start } from './wire.ts';

const TRACE = 'a'.repeat(32);
const SPAN = 'b'.repeat(16);

interface Given {
  readonly spanId?: string;
  readonly seconds?: number;
  readonly [field: string]: unknown;
}

const anyValue = (value: unknown): object => {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'number') return { doubleValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } };
  return { kvlistValue: { values: attributes(value as object) } };
};
const attributes = (fields: object) => Object.entries(fields).map(([key, value]) => ({ key, value: anyValue(value) }));
const nanos = (seconds: number) => `${1_764_000_000 + seconds}000000000`;

const spanOf = ({ spanId = SPAN, given = {}, ...rest }: Given & { given?: object } = {}) => ({
  traceId: TRACE,
  spanId,
  name: 'chat small',
  startTimeUnixNano: nanos(0),
  endTimeUnixNano: nanos(9),
  attributes: attributes({ 'gen_ai.operation.name': 'chat', 'gen_ai.usage.input_tokens': 5, ...given }),
  ...rest,
});

const logOf = (
  eventName: string,
  { spanId = SPAN, seconds = 1, body, given = {}, ...rest }: Given & { given?: object },
) => ({
  traceId: TRACE,
  spanId,
  timeUnixNano: nanos(seconds),
  eventName,
  ...(body !== undefined && { body: anyValue(body) }),
  attributes: attributes(given),
  ...rest,
});

const user = (content: string, rest: Given = {}) => logOf('gen_ai.user.message', { body: { content }, ...rest });
const choice = (content: string, rest: Given = {}) => {
  const body = { finish_reason: 'stop', message: { role: 'assistant', content } };
  return logOf('gen_ai.choice', { body, seconds: 5, ...rest });
};
const exception = (rest: Given = {}) =>
  logOf('exception', {
    given: {
      'exception.type': 'RateLimited',
      'exception.message': 'slow down',
      'exception.stacktrace': 'RateLimited: slow down\n    at ask (app.js:1:1)',
    },
    ...rest,
  });
const FAILED = { code: 2, message: 'slow down' };
const evaluation = (score: number, rest: Given = {}) =>
  logOf('gen_ai.evaluation.result', {
    given: { 'gen_ai.evaluation.name': 'helpful', 'gen_ai.evaluation.score.value': score },
    ...rest,
  });

const sendSpans = (receiver: { url: string }, ...spans: object[]) =>
  sendJson(receiver, 'POST', '/v1/traces', { resourceSpans: [{ scopeSpans: [{ spans }] }] });
const sendLogs = (receiver: { url: string }, ...logRecords: object[]) =>
  sendJson(receiver, 'POST', '/v1/logs', { resourceLogs: [{ scopeLogs: [{ logRecords }] }] });

async function runOf(receiver: Receiver): Promise<StoredRun> {
  const [run, ...others] = await receiver.runs();
  expect(others).toEqual([]);
  return run as StoredRun;
}

test('the messages of log records are added to the run of their span', async () => {
  const receiver = await start();
  await sendSpans(receiver, spanOf());
  expect(await sendLogs(receiver, choice('There'), user('Where?'))).toMatchObject({ status: 200, body: {} });
  expect(await runOf(receiver)).toMatchObject({
    inputs: { messages: [{ role: 'user', content: 'Where?' }] },
    outputs: {
      messages: [{ role: 'assistant', content: 'There', finish_reason: 'stop' }],
      usage_metadata: { input_tokens: 5 },
    },
    extra: { metadata: { from_logs: ['inputs', 'outputs'] } },
  });
});

test('the current event with all messages is read', async () => {
  const receiver = await start();
  const message = (role: string, content: string) => [{ role, parts: [{ type: 'text', content }] }];
  const given = {
    'gen_ai.system_instructions': [{ type: 'text', content: 'Be brief.' }],
    'gen_ai.input.messages': message('user', 'Where?'),
    'gen_ai.output.messages': message('assistant', 'There'),
  };
  await sendLogs(receiver, logOf('gen_ai.client.inference.operation.details', { given }));
  await sendSpans(receiver, spanOf());
  expect(await runOf(receiver)).toMatchObject({
    inputs: {
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Where?' },
      ],
    },
    outputs: { messages: [{ role: 'assistant', content: 'There' }] },
  });
});

test('an evaluation with any fields harms no other, and has a time', async () => {
  const valid = fc.constantFrom('2026-11-20T07:22:40Z', '2026-11-20T07:22:40.5+01:00');
  const given = fc.record(
    { key: fc.string(), created_at: fc.oneof(fc.jsonValue(), valid), modified_at: fc.oneof(fc.jsonValue(), valid) },
    { requiredKeys: ['key'] },
  );
  await forAllAsync(100, [fc.array(given, { maxLength: 4 })], async (all) => {
    const receiver = await start();
    const records = all.map((own) => logOf('any', { given: { 'runspan.feedback': JSON.stringify(own) } }));
    const named = records.map((record) => ({ ...record, eventName: 'gen_ai.evaluation.result' }));
    expect((await sendLogs(receiver, ...named, evaluation(0.5))).status).toBe(200);
    for (const _ of [1, 2]) expect((await sendSpans(receiver, spanOf())).status).toBe(200);
    const { id } = await runOf(receiver);
    const feedback = (await (await request(`${receiver.url}/feedback?run=${id}`)).body.json()) as {
      key: string;
      created_at: string;
    }[];
    expect(feedback.map(({ key }) => key)).toContain('helpful');
    for (const { created_at } of feedback) expect(created_at).toMatch(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{6}Z$/);
    expect((await request(`${receiver.url}/query/export?format=otlp`)).statusCode).toBe(200);
    await receiver.close();
  });
});

test('a request has at most 10,000 log records of spans', async () => {
  const receiver = await start();
  const many = (count: number) => Array.from({ length: count }, (_, at) => evaluation(at));
  expect((await sendLogs(receiver, ...many(10_001))).status).toBe(413);
  expect((await sendLogs(receiver, ...many(1_000))).status).toBe(200);
});

test('everything that the span itself contains takes precedence', async () => {
  const receiver = await start();
  const text = (role: string, content: string) => JSON.stringify([{ role, parts: [{ type: 'text', content }] }]);
  const given = { 'gen_ai.input.messages': text('user', 'own'), 'gen_ai.output.messages': text('assistant', 'mine') };
  await sendLogs(receiver, user('Where?'), choice('There'));
  await sendSpans(receiver, spanOf({ given }));
  const run = await runOf(receiver);
  expect(run.inputs).toEqual({ messages: [{ role: 'user', content: 'own' }] });
  expect(run.outputs?.messages).toEqual([{ role: 'assistant', content: 'mine' }]);
  expect(run.extra?.metadata).not.toHaveProperty('from_logs');
});

test('messages follow a system message that the span contains, however many requests they arrive in', async () => {
  const receiver = await start();
  await sendSpans(receiver, spanOf({ given: { 'gen_ai.system_instructions': 'Be brief.' } }));
  await sendLogs(receiver, user('Where?'));
  await sendLogs(receiver, user('And when?', { seconds: 2 }));
  expect((await runOf(receiver)).inputs.messages).toEqual([
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Where?' },
    { role: 'user', content: 'And when?' },
  ]);
});

test('secrets are masked before they are stored', async () => {
  const path = storePath();
  const store = await openLocalStore(path);
  const receiver = await start({ store });
  const arguments_ = { password: 'hunter2-abc' };
  const tool_calls = [{ id: 'c1', type: 'function', function: { name: 'login', arguments: arguments_ } }];
  await sendLogs(receiver, logOf('gen_ai.assistant.message', { body: { tool_calls } }));
  await sendSpans(receiver, spanOf());
  expect((await runOf(receiver)).inputs.messages).toMatchObject([{ tool_calls: [{ function: { name: 'login' } }] }]);
  await store.close();
  expect(readFileSync(path).includes('hunter2-abc')).toBe(false);
});

test('other log records are counted as rejected', async () => {
  const receiver = await start();
  const rejected = [
    logOf('app.started', {}),
    logOf('', { body: 'plain text' }),
    user('no span', { spanId: '' }),
    user('zero', { traceId: '0'.repeat(32) }),
  ];
  expect(await sendLogs(receiver, ...rejected, user('Where?'))).toMatchObject({
    status: 200,
    body: {
      partialSuccess: {
        rejectedLogRecords: '4',
        errorMessage: expect.stringContaining(
          '4 log records that are not messages, exceptions or evaluations of a span',
        ),
      },
    },
  });
});

test('a span has at most 1,000 log records', async () => {
  const receiver = await start();
  const many = (from: number, count: number) => Array.from({ length: count }, (_, at) => user(`${from + at}`));
  expect((await sendLogs(receiver, ...many(0, 900))).body).toEqual({});
  const { body } = await sendLogs(receiver, ...many(800, 300), user('1099'));
  expect(body).toMatchObject({ partialSuccess: { rejectedLogRecords: '101' } });
  await sendSpans(receiver, spanOf());
  expect((await runOf(receiver)).inputs.messages).toHaveLength(1_000);
});

test('invalid requests are refused', async () => {
  const receiver = await start();
  expect(await sendJson(receiver, 'POST', '/v1/logs', { resource_logs: [{}] })).toMatchObject(
    refusal(400, 'Expected `resourceLogs`, got `resource_logs`'),
  );
  expect(await sendJson(receiver, 'POST', '/v1/logs', { resourceLogs: {} })).toMatchObject(
    refusal(400, 'Expected `resourceLogs` to be an array'),
  );
});

/** Sends requests in order or at the same time. Returns the runs and the feedback scores of a store. */
async function resultOf(
  open: () => Promise<Receiver>,
  requests: readonly (readonly object[])[],
  isParallel: boolean,
): Promise<unknown> {
  const send = async (items: readonly object[]): Promise<void> => {
    const receiver = await open();
    const spans = items.filter((item) => 'name' in item);
    const records = items.filter((item) => !('name' in item));
    await Promise.all([sendSpans(receiver, ...spans), sendLogs(receiver, ...records)]);
  };
  if (isParallel) await Promise.all(requests.map(send));
  else for (const items of requests) await send(items);
  const receiver = await open();
  const runs = (await receiver.runs()).sort((a, b) => (a.id < b.id ? -1 : 1));
  const feedback = await Promise.all(
    runs.map(async ({ id }) => {
      const reply = await request(`${receiver.url}/feedback?run=${id}`);
      return ((await reply.body.json()) as { score: number }[]).map(({ score }) => score).sort();
    }),
  );
  return runs.map(({ inputs, outputs, error, extra }, at) => {
    const from = ((extra?.metadata?.from_logs ?? []) as string[]).toSorted();
    return { inputs, outputs, error, from, feedback: feedback[at] };
  });
}

describe.each<[string, () => () => Promise<Receiver>]>([
  [
    'a memory store',
    () => {
      const receiver = start();
      return () => receiver;
    },
  ],
  [
    'a store on disk, whose receiver restarts before each request',
    () => {
      const path = storePath();
      let close = async (): Promise<void> => {};
      return async () => {
        await close();
        const store = await openLocalStore(path);
        const receiver = await start({ store });
        close = async () => {
          await receiver.close();
          await store.close();
        };
        return receiver;
      };
    },
  ],
])('with %s', (name, makeOpen) => {
  test('log records and spans give the same runs in any order, split into any requests, sent twice', async () => {
    const spanIds = ['1', '2', '3'].map((digit) => digit.repeat(16));
    const spans = spanIds.map((spanId) => spanOf({ spanId, ...(spanId[0] === '3' && { status: FAILED }) }));
    const records = spanIds.flatMap((spanId) => [
      user(`first of ${spanId}`, { spanId }),
      user(`second of ${spanId}`, { spanId, seconds: 2 }),
      choice(`answer of ${spanId}`, { spanId }),
      exception({ spanId, seconds: 3 }),
      evaluation(0.5, { spanId, seconds: 4 }),
      evaluation(0.25, { spanId, seconds: 6 }),
    ]);
    const items: object[] = [...spans, ...records];
    const expected = await resultOf(makeOpen(), [spans, records], false);
    expect(expected).toMatchObject([
      {
        inputs: { messages: [{ content: `first of ${spanIds[0]}` }, { content: `second of ${spanIds[0]}` }] },
        outputs: { messages: [{ content: `answer of ${spanIds[0]}` }] },
        error: undefined,
        feedback: [0.25, 0.5],
      },
      { error: undefined },
      { error: expect.stringContaining('RateLimited: slow down\n    at ask'), from: ['error', 'inputs', 'outputs'] },
    ]);
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray([...items, ...items], { minLength: 2 * items.length }),
        fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1 }),
        fc.boolean(),
        async (order, sizes, isParallel) => {
          const requests: object[][] = [];
          for (let at = 0, turn = 0; at < order.length; turn += 1) {
            const size = sizes[turn % sizes.length] as number;
            requests.push(order.slice(at, at + size));
            at += size;
          }
          expect(await resultOf(makeOpen(), requests, isParallel && name === 'a memory store')).toEqual(expected);
        },
      ),
      { numRuns: name === 'a memory store' ? 12 : 2 },
    );
  });
});

test('a key for a project adds log records only to runs that a key for this project has sent', async () => {
  const service = await startService();
  const send = (project: string, path: string, body: object) => {
    const { text } = service.addKey({ tenant: 'acme', project, permission: 'write' });
    return sendJson(service, 'POST', path, body, { 'x-api-key': text });
  };
  const traces = { resourceSpans: [{ scopeSpans: [{ spans: [spanOf()] }] }] };
  const bodyOf = (record: object) => ({ resourceLogs: [{ scopeLogs: [{ logRecords: [record] }] }] });
  await send('lab', '/v1/logs', bodyOf(user('early')));
  await send('shop', '/v1/traces', traces);
  await send('lab', '/v1/logs', bodyOf(user('late')));
  await send('shop', '/v1/logs', bodyOf(user('own')));
  const [run] = await service.store.mergedRuns({ tenant: 'acme' }, [{ traceId: TRACE, spanId: SPAN }]);
  expect(run?.fields.inputs).toEqual({ messages: [{ role: 'user', content: 'own' }] });
  expect(await service.store.mergedRuns({ tenant: 'bolt' }, [{ traceId: TRACE, spanId: SPAN }])).toEqual([]);
});
