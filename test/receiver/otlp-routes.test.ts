import { gzipSync } from 'node:zlib';
import { context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { ExportResultCode } from '@opentelemetry/core';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createExporter } from '#src/index.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import { MemoryStore, type Receiver, StoreError } from '#src/receiver.ts';
import { openLocalStore, storePath } from './local-store.ts';
import { call, makeRun, makeSpan, refusal, requestOf, sendSpans as send, sendJson, start } from './wire.ts';

/** Returns finished spans by name. The processors receive them too. */
function finishedSpans(make: (tracer: Tracer) => void, processors: SpanProcessor[] = []): Record<string, ReadableSpan> {
  const memory = new InMemorySpanExporter();
  const resource = resourceFromAttributes({ 'service.name': 'shop', 'service.version': '1.2', 'host.name': 'box' });
  const provider = new BasicTracerProvider({
    resource,
    spanProcessors: [new SimpleSpanProcessor(memory), ...processors],
  });
  make(provider.getTracer('shop-tracer', '3.4'));
  return Object.fromEntries(memory.getFinishedSpans().map((span) => [span.name, span]));
}

const below = (span: Span) => trace.setSpan(context.active(), span);

const answered = (...processors: SpanProcessor[]) =>
  finishedSpans((tracer) => {
    const root = tracer.startSpan('answer', {
      kind: SpanKind.SERVER,
      attributes: { 'openinference.span.kind': 'AGENT', 'input.value': 'Where?' },
    });
    const chat = tracer.startSpan(
      'chat small',
      {
        kind: SpanKind.CLIENT,
        attributes: {
          'gen_ai.operation.name': 'chat',
          'gen_ai.request.model': 'small',
          'gen_ai.input.messages': JSON.stringify([{ role: 'user', parts: [{ type: 'text', content: 'Where?' }] }]),
          'gen_ai.output.messages': JSON.stringify([
            { role: 'assistant', parts: [{ type: 'text', content: 'There' }] },
          ]),
          'gen_ai.usage.input_tokens': 5,
          'gen_ai.usage.output_tokens': 7,
          'gen_ai.request.temperature': 0.5,
          'shop.tags': ['a', 'b'],
          'shop.big': 2 ** 53,
          'shop.on': true,
        },
        links: [{ context: root.spanContext(), attributes: { why: 'x' } }],
      },
      below(root),
    );
    tracer.startSpan('lookup', {}, below(chat)).end();
    chat.addEvent('retry', { attempt: 2 });
    chat.recordException(new TypeError('no'));
    chat.setStatus({ code: SpanStatusCode.ERROR, message: 'no' });
    chat.end();
    // An aborted stream of AI SDK 7.
    let above = root;
    const aborted = ['invoke_agent', 'agent_step', 'chat'].map((name) => {
      above = tracer.startSpan(name, { attributes: { 'gen_ai.operation.name': name } }, below(above));
      return above;
    });
    for (const span of [...aborted.reverse(), root]) span.end();
  }, processors);

const exporters = {
  json: (receiver: Receiver, options = {}) => new JsonExporter({ url: `${receiver.url}/v1/traces`, ...options }),
  protobuf: (receiver: Receiver, options = {}) =>
    new ProtobufExporter({ url: `${receiver.url}/v1/traces`, ...options }),
};

async function exported(exporter: JsonExporter | ProtobufExporter, ...spans: (ReadableSpan | undefined)[]) {
  const result = await new Promise<{ code: number }>((resolve) => exporter.export(spans as ReadableSpan[], resolve));
  await exporter.shutdown();
  return result.code;
}

describe.each(Object.entries(exporters))("OpenTelemetry's own exporter over %s", (_, exporterTo) => {
  test('produces the same runs as RunSpanProcessor', async () => {
    const reference = await start();
    const exporter = createExporter({ endpoint: reference.url, project: 'shop' });
    onTestFinished(() => void exporter.close());
    const spans = answered(new RunSpanProcessor({ exporter, shouldExport: 'all' }));
    await exporter.flush();

    const receiver = await start();
    expect(await exported(exporterTo(receiver), ...Object.values(spans))).toBe(ExportResultCode.SUCCESS);
    const withoutRuntime = (await reference.runs()).map(({ extra: { runtime: _runtime, ...extra } = {}, ...run }) => ({
      ...run,
      extra,
    }));
    expect(await receiver.runs()).toEqual(withoutRuntime);
    const ends = withoutRuntime.map(({ name, session_name, extra }) => [session_name, name, extra.runspan_end_reason]);
    expect(ends.sort()).toEqual([
      ['shop', 'agent_step', undefined],
      ['shop', 'answer', undefined],
      ['shop', 'chat small', undefined],
      ['shop', 'chat', 'cancelled'],
      ['shop', 'invoke_agent', 'cancelled'],
      ['shop', 'lookup', undefined],
    ]);
  });

  test('works with gzip and a key', async () => {
    const { answer } = answered();
    const receiver = await start({ apiKey: 'secret' });
    const compression = 'gzip';
    expect(await exported(exporterTo(receiver, { compression }), answer)).toBe(ExportResultCode.FAILED);
    expect(await exported(exporterTo(receiver, { compression, headers: { 'x-api-key': 'secret' } }), answer)).toBe(
      ExportResultCode.SUCCESS,
    );
    expect(await receiver.runs()).toHaveLength(1);
  });

  test('selects a project by a header', async () => {
    const { answer } = answered();
    const receiver = await start();
    await exported(exporterTo(receiver, { headers: { 'Langsmith-Project': 'mine' } }), answer);
    expect(await receiver.runs({ project: 'mine' })).toHaveLength(1);
  });
});

const protobuf = { 'content-type': 'application/x-protobuf' };

async function bytesOf(receiver: Receiver, body: Buffer) {
  const reply = await request(`${receiver.url}/v1/traces`, { method: 'POST', body, headers: protobuf });
  const bytes = Buffer.from(await reply.body.arrayBuffer());
  return { status: reply.statusCode, type: reply.headers['content-type'], text: bytes.toString('latin1') };
}

describe('JSON', () => {
  test('is accepted at any compression ratio: spans often repeat a long prompt', async () => {
    const receiver = await start();
    const prompt = { key: 'gen_ai.system_instructions', value: { stringValue: 'You answer questions. '.repeat(400) } };
    const spans = Array.from({ length: 512 }, (_, at) => {
      return makeSpan({ spanId: (at + 1).toString(16).padStart(16, '0'), attributes: [prompt] });
    });
    const body = Buffer.from(JSON.stringify(requestOf(spans)));
    const compressed = gzipSync(body);
    expect(body.length / compressed.length).toBeGreaterThan(100);
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    expect((await call(`${receiver.url}/v1/traces`, 'POST', compressed, headers)).status).toBe(200);
    expect(await receiver.runs()).toHaveLength(512);
  });

  test('hides values under names of secrets', async () => {
    const receiver = await start();
    const attributes = [{ key: 'db.password', value: { stringValue: 'canary' } }];
    await send(receiver, requestOf([makeSpan({ attributes })]));
    expect(JSON.stringify(await receiver.runs())).not.toContain('canary');
  });

  test('with large data in a payload creates an attachment', async () => {
    const receiver = await start();
    const image = Buffer.alloc(3_000, 7);
    const value = JSON.stringify({ image: `data:image/png;base64,${image.toString('base64')}` });
    const attributes = [
      { key: 'openinference.span.kind', value: { stringValue: 'LLM' } },
      { key: 'input.value', value: { stringValue: value } },
      { key: 'input.mime_type', value: { stringValue: 'application/json' } },
    ];
    await send(receiver, requestOf([makeSpan({ attributes })]));
    expect((await receiver.runs())[0]?.attachments).toMatchObject([{ mime_type: 'image/png', size: 3_000 }]);
  });
});

describe('protobuf', () => {
  test('gets a response in protobuf', async () => {
    const receiver = await start();
    expect(await bytesOf(receiver, Buffer.alloc(0))).toEqual({ status: 200, type: 'application/x-protobuf', text: '' });
    // One empty span.
    const refused = await bytesOf(receiver, Buffer.from([0x0a, 4, 0x12, 2, 0x12, 0]));
    expect(refused).toMatchObject({ status: 200, type: 'application/x-protobuf' });
    // Field 1 is the partial success, whose field 1 is the number.
    expect([refused.text.charCodeAt(0), refused.text.slice(2, 4)]).toEqual([0x0a, '\b\u0001']);
    expect(refused.text).toContain('`traceId` is missing');
  });

  test('that is invalid gets an error in protobuf', async () => {
    const reply = await bytesOf(await start(), Buffer.from('{}'));
    expect(reply).toMatchObject({ status: 400, type: 'application/x-protobuf' });
    expect(reply.text.charCodeAt(0)).toBe(0x12);
    expect(reply.text).toContain('The body is not a valid ExportTraceServiceRequest');
  });
});

test.each(['text/plain', 'application/protobuf', 'application/jsonx', ''])('the type %j is refused', async (type) => {
  const reply = await call(`${(await start()).url}/v1/traces`, 'POST', '{}', { 'content-type': type });
  expect(reply).toMatchObject(refusal(415, 'application/x-protobuf'));
});

test('a span sent by OTLP and by RunSpanProcessor is one run', async () => {
  for (const order of ['otlp first', 'processor first']) {
    const receiver = await start();
    const exporter = createExporter({ endpoint: receiver.url, project: 'shop' });
    const memory = new InMemorySpanExporter();
    const provider = new BasicTracerProvider({
      spanProcessors: [new RunSpanProcessor({ exporter, shouldExport: 'all' }), new SimpleSpanProcessor(memory)],
    });
    const tracer = provider.getTracer('shop');
    const root = tracer.startSpan('root');
    tracer.startSpan('child', {}, below(root)).end();
    root.end();
    const byOtlp = () => exported(exporters.json(receiver), ...memory.getFinishedSpans());
    if (order === 'otlp first') await byOtlp();
    await exporter.close();
    if (order === 'processor first') await byOtlp();
    const [first, second, ...more] = await receiver.runs();
    expect(more).toEqual([]);
    expect([first?.name, second?.name]).toEqual(['root', 'child']);
    expect(second).toMatchObject({ parent_run_id: first?.id, trace_id: first?.id });
  }
});

test('a span finds its parent after a restart, and its children at another receiver of the store', async () => {
  const spans = answered();
  const path = storePath();
  const before = await openLocalStore(path);
  await exported(exporters.json(await start({ store: before })), spans.answer);
  await before.close();

  const store = await openLocalStore(path);
  const [one, another] = [await start({ store }), await start({ store })];
  await exported(exporters.protobuf(one), spans.lookup);
  await exported(exporters.json(another), spans['chat small']);
  const traces = await call(`${one.url}/query/traces`, 'GET');
  expect(traces.body).toMatchObject({ items: [{ name: 'answer', trace: { runs: 3 } }] });
  const runs = await another.runs();
  expect(runs.map(({ name }) => name)).toEqual(['answer', 'chat small', 'lookup']);
  expect(runs.map((run) => run.parent_run_id)).toEqual([undefined, runs[0]?.id, runs[1]?.id]);
  expect(new Set(runs.map((run) => run.trace_id))).toEqual(new Set([runs[0]?.id]));
});

test.each([
  ['busy', 429],
  ['unavailable', 503],
  ['too_large', 413],
] as const)('a store that rejects runs as %s makes the receiver respond with %i', async (reason, status) => {
  const store = new MemoryStore();
  store.apply = () => Promise.reject(new StoreError(reason, 'the store rejects the runs', 7));
  const receiver = await start({ store });
  const expected = { status, body: { detail: 'the store rejects the runs' }, headers: { 'retry-after': '7' } };
  expect(await send(receiver, requestOf([makeSpan()]))).toMatchObject(expected);
  expect(await sendJson(receiver, 'POST', '/runs', makeRun({ inputs: {} }))).toMatchObject(expected);
});

test('each signal is received on every path', async () => {
  const receiver = await start();
  for (const prefix of ['', '/otel', '/api/v1/otel']) {
    for (const path of ['traces', 'traces/', 'logs', 'logs/', 'metrics', 'metrics/']) {
      const { status } = await sendJson(receiver, 'POST', `${prefix}/v1/${path}`, {});
      expect([prefix, path, status]).toEqual([prefix, path, 200]);
    }
  }
});

test('metrics are accepted and counted as rejected', async () => {
  const { url } = await start();
  const metrics = [{ gauge: { dataPoints: [{}, {}] } }, { summary: { dataPoints: [{}] } }];
  const json = await sendJson({ url }, 'POST', '/v1/metrics', { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] });
  const partialSuccess = { rejectedDataPoints: '3', errorMessage: 'the receiver stores no metrics' };
  expect(json).toMatchObject({ status: 200, body: { partialSuccess } });
  const gauge = gzipSync(Buffer.from('0a08120612042a020a00', 'hex'));
  const headers = { 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' };
  const protobuf = await request(`${url}/v1/metrics`, { method: 'POST', headers, body: gauge });
  expect(await protobuf.body.text()).toBe('\n\x22\b\x01\x12\x1ethe receiver stores no metrics');
  const figures = await request(`${url}/metrics`);
  expect(await figures.body.text()).toContain('ignored_metrics_requests_total 2');
});

describe('a page of another origin', () => {
  const origin = 'https://shop.example';
  const headers = { origin, 'content-type': 'application/json', 'sec-fetch-site': 'cross-site' };
  const preflight = {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'content-type',
  };

  test('may send spans if its origin is allowed, and nothing else', async () => {
    const receiver = await start({ allowedOrigins: [origin] });
    const asked = await call(`${receiver.url}/v1/traces`, 'OPTIONS', undefined, preflight);
    expect(asked).toMatchObject({
      status: 204,
      headers: { 'access-control-allow-origin': origin, 'access-control-allow-methods': 'POST' },
    });
    const sent = await call(`${receiver.url}/v1/traces`, 'POST', '{"resourceSpans":[]}', headers);
    expect(sent).toMatchObject({ status: 200, headers: { 'access-control-allow-origin': origin, vary: 'origin' } });
    expect((await call(`${receiver.url}/query/traces`, 'GET', undefined, headers)).status).toBe(403);
    expect((await call(`${receiver.url}/runs`, 'POST', '{}', headers)).status).toBe(403);
    expect((await call(`${receiver.url}/runs`, 'OPTIONS', undefined, preflight)).status).toBe(403);
  });

  test.each([undefined, [], ['https://shop.example:8443'], ['http://shop.example']])(
    'is refused with allowedOrigins %j',
    async (allowedOrigins) => {
      const receiver = await start(allowedOrigins === undefined ? {} : { allowedOrigins });
      expect((await call(`${receiver.url}/v1/traces`, 'OPTIONS', undefined, preflight)).status).toBe(403);
      expect((await call(`${receiver.url}/v1/traces`, 'POST', '{"resourceSpans":[]}', headers)).status).toBe(403);
    },
  );

  test('needs the key of the receiver', async () => {
    const receiver = await start({
      allowedOrigins: [origin],
      apiKey: 'a-long-random-text',
      writeKey: 'a-write-key-of-pages',
    });
    const send = (key: object) =>
      call(`${receiver.url}/v1/traces`, 'POST', '{"resourceSpans":[]}', { ...headers, ...key });
    expect((await send({})).status).toBe(401);
    expect((await send({ 'x-api-key': 'a-write-key-of-pages' })).status).toBe(200);
  });

  test.each(['*', 'https://*.shop.example', 'shop.example', 'https://shop.example/', 'null'])(
    'cannot be named %s',
    async (name) => {
      await expect(start({ allowedOrigins: [name] })).rejects.toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
    },
  );
});
