import { describe, expect, test } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import { call, makeSpan, requestOf, SPAN, sendSpans as send, sendJson, start, TRACE } from './wire.ts';

const ANY_VALUE = (given: string) =>
  `Expected a value such as { "stringValue": "text" } or { "intValue": "1" }, got ${given}`;
const textAttribute = (key: string, stringValue: string) => ({ key, value: { stringValue } });

async function runOf(fields: Record<string, unknown>, resource?: unknown[], scope?: unknown) {
  const receiver = await start();
  expect((await send(receiver, requestOf([makeSpan(fields)], resource, scope))).body).toEqual({});
  return (await receiver.runs())[0];
}

test('a receiver records the resource attributes that `resource` names', async () => {
  const receiver = await start({ resource: ['cloud.*'] });
  const resource = [textAttribute('cloud.region', 'eu'), textAttribute('host.name', 'box')];
  await send(receiver, requestOf([makeSpan()], resource));
  const [run] = await receiver.runs();
  expect(run?.extra?.metadata).toMatchObject({ 'cloud.region': 'eu' });
  expect(run?.extra?.metadata).not.toHaveProperty(['host.name']);
  await expect(createReceiver({ resource: [''] })).rejects.toMatchObject({
    code: 'RUNSPAN_INVALID_OPTION',
    message: 'Expected `resource` to be a list of names, got an array',
  });
});

test('a receiver maps the attributes of its own vocabularies', async () => {
  const vocabulary = {
    attribute: 'acme.kind',
    runTypes: { model: 'llm' },
    inputs: { 'acme.question': 'question' },
    usage: { 'acme.tokens': 'input_tokens' },
    metadata: { 'acme.chat': 'thread_id' },
  };
  const receiver = await start({ vocabularies: [vocabulary] });
  const attributes = [
    textAttribute('acme.kind', 'model'),
    textAttribute('acme.question', 'Where is my order?'),
    textAttribute('acme.tokens', '20'),
    textAttribute('acme.chat', 't1'),
  ];
  await send(receiver, requestOf([makeSpan({ attributes })]));
  expect(await receiver.runs()).toMatchObject([
    {
      run_type: 'llm',
      inputs: { question: 'Where is my order?' },
      outputs: { usage_metadata: { input_tokens: 20 } },
      extra: { metadata: { thread_id: 't1' } },
    },
  ]);
});

test.each([
  ['{}', {}, 'Expected `vocabularies` to be a list of at most 10 vocabularies, got an object'],
  [
    'an unknown field',
    [{}, { input: {} }],
    'Expected `vocabularies[1]` to contain only attribute, runTypes, nameFrom, inputs, outputs, usage, parameters, metadata, tags, got `input`',
  ],
  [
    'a key that is no text',
    [{ inputs: { a: 1 } }],
    "Expected `inputs` to be an object that maps attributes to keys, for example { 'acme.question': 'question' }, got an object",
  ],
])('a receiver does not start with %s as vocabularies', async (_, vocabularies, message) => {
  await expect(createReceiver({ vocabularies: vocabularies as never })).rejects.toMatchObject({
    code: 'RUNSPAN_INVALID_OPTION',
    message,
  });
});

test('a span has the fields of its run', async () => {
  const fields = {
    traceId: TRACE.toUpperCase(),
    parentSpanId: 'eee19b7ec3c1b173',
    kind: 3,
    flags: 0x301,
    status: { code: 2, message: 'no' },
    attributes: [textAttribute('a', 'b')],
    events: [{ timeUnixNano: '1763622160500000000', name: 'retry', attributes: [textAttribute('c', 'd')] }],
    links: [{ traceId: TRACE, spanId: SPAN, attributes: [textAttribute('e', 'f')] }],
    droppedAttributesCount: 1,
    droppedEventsCount: 2,
    droppedLinksCount: 3,
  };
  const run = await runOf(fields, [textAttribute('service.name', 'shop')], { name: 'tracer', version: '1' });
  expect(run).toMatchObject({
    name: 'answer',
    session_name: 'shop',
    start_time: '2025-11-20T07:02:40.123456Z',
    end_time: '2025-11-20T07:02:41.000000Z',
    error: 'no',
    events: [{ name: 'retry', time: '2025-11-20T07:02:40.500000Z', kwargs: { c: 'd' } }],
    extra: {
      metadata: {
        a: 'b',
        otel: {
          trace_id: TRACE,
          span_id: SPAN,
          parent_span_id: 'eee19b7ec3c1b173',
          kind: 'CLIENT',
          scope: { name: 'tracer', version: '1' },
          links: [{ trace_id: TRACE, span_id: SPAN, attributes: { e: 'f' } }],
          dropped_attributes_count: 1,
          dropped_events_count: 2,
          dropped_links_count: 3,
        },
      },
    },
  });
});

test('a call whose service also sends spans counts once', async () => {
  const receiver = await start();
  // The service's spans are synthetic. They have the shape that Anthropic documents.
  const chat = (spanId: string, name: string, kind: number, fields = {}) => {
    const counts = ['input_tokens', 'output_tokens'].map((key, at) => ({
      key: `gen_ai.usage.${key}`,
      value: { intValue: at === 0 ? 100 : 10 },
    }));
    const names = { 'gen_ai.operation.name': 'chat', 'gen_ai.response.id': 'msg_1' };
    const attributes = [...Object.entries(names).map(([key, text]) => textAttribute(key, text)), ...counts];
    return makeSpan({ spanId: spanId.repeat(16), name, kind, attributes, ...fields });
  };
  const server = chat('2', 'anthropic.messages.create', 2, { parentSpanId: '1'.repeat(16) });
  await send(receiver, requestOf([server], [], { name: 'com.anthropic.claude-platform' }));
  await send(receiver, requestOf([chat('1', 'chat', 3)], [], { name: 'com.anthropic.sdk.typescript' }));
  const { items } = (await call(`${receiver.url}/query/traces`, 'GET')).body as { items: Record<string, unknown>[] };
  expect(items).toMatchObject([{ name: 'chat', trace: { runs: 2, usage: { total_tokens: 110 } } }]);
  expect((await call(`${receiver.url}/query/statistics`, 'GET')).body).toMatchObject({
    total: { runs: 2, usage: { total_tokens: 110 }, model_calls: { runs: 1 } },
  });
});

test.each<[string, unknown]>([
  ['traceId', undefined],
  ['traceId', '0'.repeat(32)],
  ['traceId', TRACE.slice(1)],
  ['traceId', `${TRACE.slice(1)}g`],
  ['traceId', 'W47/95gDgQPSabYzgT/GDA=='],
  ['spanId', undefined],
  ['spanId', '0'.repeat(16)],
  ['spanId', 5],
  ['parentSpanId', 'x'],
  ['startTimeUnixNano', undefined],
  ['startTimeUnixNano', '0'],
  ['startTimeUnixNano', '-1'],
  ['startTimeUnixNano', 'now'],
  ['startTimeUnixNano', {}],
  ['startTimeUnixNano', '8993721600000000000'],
  ['endTimeUnixNano', '8993721600000000000'],
  ['endTimeUnixNano', 1.5],
  ['startTimeUnixNano', 1763622160],
  ['startTimeUnixNano', 1763622160123],
  ['startTimeUnixNano', '1763622160123456'],
])('a span with %s of %j is rejected, and the others are stored', async (field, value) => {
  const receiver = await start();
  const spans = [makeSpan({ [field]: value }), makeSpan({ traceId: 'x' }), makeSpan()];
  const errorMessage = expect.stringContaining(`\`${field}\``);
  const body = { partialSuccess: { rejectedSpans: '2', errorMessage } };
  expect(await send(receiver, requestOf(spans))).toMatchObject({ status: 200, body });
  expect(await receiver.runs()).toHaveLength(1);
});

test.each([
  [{ resource_spans: [{}] }, '`resourceSpans`, got `resource_spans`'],
  [{ resourceSpans: [{ scope_spans: [{}] }] }, '`scopeSpans`, got `scope_spans`'],
  [{ batches: [{}] }, '`resourceSpans`, got `batches`'],
  [{ resourceSpans: [{ instrumentationLibrarySpans: [{}] }] }, '`scopeSpans`, got `instrumentationLibrarySpans`'],
  [{ resourceSpans: [{ scopeSpans: [{ spans: [], Spans: [{}] }] }] }, '`spans`, got `Spans`'],
])('the fields of %j are refused, because their records would be lost', async (body, detail) => {
  expect(await send(await start(), body)).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining(detail) },
  });
});

test('records in a list that is not read are counted beside spans that are', async () => {
  const receiver = await start();
  const { resourceSpans } = requestOf([makeSpan()]);
  const unread = { instrumentationLibrarySpans: [{}, {}] };
  const errorMessage = 'Expected `scopeSpans`, got `instrumentationLibrarySpans`, which is not read';
  const body = { partialSuccess: { rejectedSpans: '2', errorMessage } };
  expect(await send(receiver, { resourceSpans: [unread, ...resourceSpans] })).toMatchObject({ status: 200, body });
  expect(await receiver.runs()).toHaveLength(1);
});

test('evaluations in events become feedback, once, however often the span arrives', async () => {
  const receiver = await start();
  const event = (attributes: object[]) => ({
    name: 'gen_ai.evaluation.result',
    timeUnixNano: '1763622160500000000',
    attributes,
  });
  const double = (key: string, doubleValue: number) => ({ key, value: { doubleValue } });
  const events = [
    event([
      textAttribute('gen_ai.evaluation.name', 'relevance'),
      double('gen_ai.evaluation.score.value', 0.75),
      textAttribute('gen_ai.evaluation.score.label', 'good'),
      textAttribute('gen_ai.evaluation.explanation', 'to the point'),
    ]),
    event([textAttribute('gen_ai.evaluation.score.label', 'without a name')]),
    event([textAttribute('gen_ai.evaluation.name', 'x'.repeat(181))]),
  ];
  const attributes = [
    textAttribute('annotations.0.annotation.name', 'tone'),
    textAttribute('annotations.0.annotation.label', 'friendly'),
    textAttribute('annotations.0.annotation.annotator_kind', 'HUMAN'),
    textAttribute('trace.evaluations.0.evaluation.name', 'success'),
    { key: 'trace.evaluations.0.evaluation.score', value: { intValue: '1' } },
  ];
  for (let times = 0; times < 2; times++)
    expect((await send(receiver, requestOf([makeSpan({ events, attributes })]))).body).toEqual({});
  const { body } = await call(`${receiver.url}/query/export`, 'GET');
  const { feedback, id } = body as { feedback?: unknown; id?: string };
  const of = { run_id: id, id: expect.any(String), created_at: expect.any(String), modified_at: expect.any(String) };
  expect(feedback).toHaveLength(3);
  expect(feedback).toEqual(
    expect.arrayContaining([
      {
        ...of,
        key: 'relevance',
        score: 0.75,
        value: 'good',
        comment: 'to the point',
        created_at: '2025-11-20T07:02:40.500000Z',
        modified_at: '2025-11-20T07:02:40.500000Z',
      },
      { ...of, key: 'tone', value: 'friendly', metadata: { annotator_kind: 'HUMAN' } },
      { ...of, key: 'success', score: 1 },
    ]),
  );
});

// The protojson names of enum values in opentelemetry/proto/trace/v1/trace.proto.
test.each<[object, string | undefined, string]>([
  [{ kind: 3, status: { code: 2, message: 'no' } }, 'no', 'CLIENT'],
  [{ kind: 'SPAN_KIND_CLIENT', status: { code: 'STATUS_CODE_ERROR', message: 'no' } }, 'no', 'CLIENT'],
  [{ kind: 'SPAN_KIND_SERVER', status: { code: 'STATUS_CODE_OK' } }, undefined, 'SERVER'],
])('enums are numbers or names: %j', async (fields, error, kind) => {
  const run = await runOf({ ...fields });
  expect(run?.error).toBe(error);
  expect(run?.extra?.metadata?.otel).toMatchObject({ kind });
});

test('a time is text or a number, up to the end of 2254', async () => {
  const start_time = '2025-11-20T07:02:40.000000Z';
  expect(await runOf({ startTimeUnixNano: 1_763_622_160_000_000_000 })).toMatchObject({ start_time });
  const last = await runOf({ endTimeUnixNano: '8993721599999999999' });
  expect(last?.end_time).toBe('2254-12-31T23:59:59.999999Z');
});

test('a span without an end is a pending run, and a parent of zeros is no parent', async () => {
  const receiver = await start();
  for (const endTimeUnixNano of ['0', 0, null, undefined]) {
    await send(receiver, requestOf([makeSpan({ endTimeUnixNano })]));
    expect((await receiver.runs())[0]).not.toHaveProperty('end_time');
  }
  await send(receiver, requestOf([makeSpan()]));
  expect(await receiver.runs()).toMatchObject([{ end_time: '2025-11-20T07:02:41.000000Z' }]);
  for (const parentSpanId of [undefined, null, '', '0'.repeat(16)]) {
    expect((await runOf({ parentSpanId }))?.extra?.metadata?.otel).not.toHaveProperty('parent_span_id');
  }
});

test('attributes have every type of value, under any name', async () => {
  const values: [unknown, unknown][] = [
    [{ stringValue: '' }, ''],
    [{ boolValue: false }, false],
    [{ intValue: '7' }, 7],
    [{ intValue: -7 }, -7],
    [{ intValue: '9007199254740993' }, '9007199254740993'],
    [{ intValue: '-9223372036854775808' }, '-9223372036854775808'],
    [{ intValue: '1.5e3' }, 1500],
    [{ intValue: 7.0, stringValue: null }, 7],
    [{ doubleValue: 0.5 }, 0.5],
    [{ doubleValue: '1.5' }, 1.5],
    [{ doubleValue: '-1E-3' }, -0.001],
    [{ doubleValue: '-Infinity' }, '-Infinity'],
    [{ bytesValue: '-_8' }, { type: 'Uint8Array', byteLength: 2, base64: '+/8=' }],
    [{ stringValue: null }, undefined],
    [{ arrayValue: { values: [{ stringValue: 'a' }, { intValue: 1 }] } }, ['a', 1]],
    [{ arrayValue: {} }, []],
    [{ kvlistValue: { values: [textAttribute('a', 'b')] } }, { a: 'b' }],
    [{}, undefined],
    [null, undefined],
  ];
  const names = ['__proto__', 'constructor', 'toString'];
  const attributes = [
    ...values.map(([value], at) => ({ key: `a${at}`, value })),
    ...names.map((name) => textAttribute(name, 'x')),
  ];
  const { metadata = {} } = (await runOf({ attributes }))?.extra ?? {};
  for (const [at, [, expected]] of values.entries()) expect([at, metadata[`a${at}`]]).toEqual([at, expected]);
  expect(Object.keys(metadata)).toEqual(expect.arrayContaining(names));
  expect({}).not.toHaveProperty('x');
});

test.each<[Record<string, unknown>, string]>([
  [{ kind: 'ROUND' }, 'Expected a number, or a name such as SPAN_KIND_INTERNAL, got "ROUND"'],
  [{ status: { code: 'ERROR' } }, 'Expected a number, or a name such as STATUS_CODE_OK, got "ERROR"'],
  [{ attributes: { a: 'b' } }, 'Expected `attributes` to be an array of objects with `key` and `value`'],
  [{ attributes: [{ key: 'a', value: { string_value: 'x' } }] }, ANY_VALUE('string_value')],
  [{ attributes: [{ key: 'a', value: { intValue: 'x' } }] }, ANY_VALUE('intValue')],
  [{ attributes: [{ key: 'a', value: { intValue: '1.5' } }] }, ANY_VALUE('intValue')],
  [{ attributes: [{ key: 'a', value: { intValue: '9223372036854775808' } }] }, ANY_VALUE('intValue')],
  [{ attributes: [{ key: 'a', value: { doubleValue: '' } }] }, ANY_VALUE('doubleValue')],
  [{ events: [{ name: 'e', attributes: [{ key: 'a', value: 'x' }] }] }, ANY_VALUE('"x"')],
  [{ end_time_unix_nano: '1' }, 'Expected fields in lowerCamelCase, got `end_time_unix_nano`'],
])('a malformed part of a span is left out, and the response says so: %j', async (fields, errorMessage) => {
  const receiver = await start();
  const { status, body } = await send(receiver, requestOf([makeSpan({ spanId: 'b'.repeat(16) }), makeSpan(fields)]));
  expect([status, body]).toEqual([200, { partialSuccess: { rejectedSpans: '0', errorMessage } }]);
  expect(await receiver.runs()).toHaveLength(2);
});

test.each<[unknown[], string]>([
  [[textAttribute('service.name', 'shop')], 'shop'],
  [[textAttribute('service.name', 'shop'), textAttribute('openinference.project.name', 'mine')], 'mine'],
  [[textAttribute('service.name', 'unknown_service')], 'default'],
  [[textAttribute('service.name', 'unknown_service:node')], 'default'],
  [[textAttribute('service.name', '')], 'default'],
  [[], 'default'],
])('a resource of %j belongs to the project %s', async (resource, project) => {
  const receiver = await start();
  await send(receiver, requestOf([makeSpan()], resource));
  expect(await receiver.runs({ project })).toMatchObject([{ name: 'answer' }]);
});

test('a span without a project keeps the project of a RunSpanProcessor', async () => {
  const receiver = await start();
  await send(receiver, requestOf([makeSpan()]));
  const [{ dotted_order: _, ...run } = {}] = await receiver.runs();
  await sendJson(receiver, 'POST', '/runs', { ...run, session_name: 'shop' });
  await send(receiver, requestOf([makeSpan()]));
  expect((await receiver.runs()).map(({ session_name }) => session_name)).toEqual(['shop']);
});

describe('a request', () => {
  test.each<[unknown]>([
    ['{'],
    [[]],
    ['"x"'],
    ['null'],
    [{ resourceSpans: {} }],
    [{ resourceSpans: [5] }],
    [{ resourceSpans: [{ scopeSpans: 'x' }] }],
    [{ resourceSpans: [{ scopeSpans: [{ spans: [[]] }] }] }],
    [`{"a":${'['.repeat(600)}${']'.repeat(600)}}`],
  ])('of %j gets 400 with a Status', async (body) => {
    const text = { message: expect.any(String), detail: expect.any(String) };
    expect(await send(await start(), body)).toMatchObject({ status: 400, body: text });
  });

  test('may have no spans', async () => {
    const receiver = await start();
    const bodies = [{}, { resourceSpans: [] }, { resourceSpans: [{}] }, { resourceSpans: [{ scopeSpans: [{}] }] }];
    for (const body of bodies) expect(await send(receiver, body)).toMatchObject({ status: 200, body: {} });
  });

  test('may have 10 000 spans, including invalid ones', async () => {
    const receiver = await start();
    const many = (count: number) => send(receiver, requestOf(Array(count).fill({})));
    expect((await many(10_000)).body).toMatchObject({ partialSuccess: { rejectedSpans: '10000' } });
    expect((await many(10_001)).status).toBe(413);
  });
});
