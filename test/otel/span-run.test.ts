import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { describe, expect, test } from 'vitest';
import { RunSpanProcessor, type SpanLike } from '../../src/otel.ts';
import { spanRunId } from '../../src/run/ids.ts';
import { recordRuns } from '../../src/testing.ts';
import { told } from '../support/told.ts';
import { notingSink, runNamed, setUp } from './set-up.ts';

const START_US = 1_795_159_360_123_456;
const seconds = (us: number): [number, number] => [Math.floor(us / 1e6), (us % 1e6) * 1_000];

describe('the run of a span', () => {
  test('has the times of the span in microseconds, and an id from its start and ids', () => {
    const { tracer, recorder } = setUp();
    const span = tracer.startSpan('a', { startTime: seconds(START_US) });
    span.end(seconds(START_US + 1_500_001));
    const { traceId, spanId } = span.spanContext();
    const id = spanRunId(START_US, traceId, spanId);
    expect(runNamed(recorder, 'a')).toMatchObject({
      id,
      dotted_order: `20261120T072240123456Z${id}`,
      start_time: '2026-11-20T07:22:40.123456Z',
      end_time: '2026-11-20T07:22:41.623457Z',
      run_type: 'chain',
      inputs: {},
    });
  });

  test('has the data URIs of its payloads as attachments', () => {
    const { sink, runs } = notingSink();
    const tracer = new BasicTracerProvider({
      spanProcessors: [new RunSpanProcessor({ exporter: sink })],
    }).getTracer('test');
    const url = (fill: number) => `data:image/png;base64,${Buffer.alloc(900, fill).toString('base64')}`;
    const span = tracer.startSpan('a', { attributes: { 'input.value': JSON.stringify({ image: url(1) }) } });
    expect(runs[0]?.attachments).toEqual([{ name: 'inputs_1', bytes: Buffer.alloc(900, 1), mimeType: 'image/png' }]);
    span.setAttribute('input.value', JSON.stringify({ image: url(2) }));
    span.setAttribute('output.value', JSON.stringify({ image: url(3) }));
    span.end();
    const [, run] = runs;
    expect(run).toMatchObject({
      inputs: '{"image":"[Attachment inputs_1: image/png, 900 bytes]"}',
      outputs: '{"image":"[Attachment outputs_1: image/png, 900 bytes]"}',
    });
    expect(run?.attachments?.map(({ name, bytes }) => [name, (bytes as Uint8Array)[0]])).toEqual([
      ['inputs_1', 2],
      ['outputs_1', 3],
    ]);
  });

  test('has the base64 media of its messages as attachments', () => {
    const { sink, runs } = notingSink();
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const content = Buffer.alloc(900, 1).toString('base64');
    const parts = [{ type: 'blob', modality: 'image', mime_type: 'image/png', content }];
    tracer.startSpan('a', { attributes: { 'gen_ai.input.messages': JSON.stringify([{ role: 'user', parts }]) } }).end();
    expect(JSON.parse(runs[0]?.inputs ?? '')).toEqual({
      messages: [
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: '[Attachment inputs_1: image/png, 900 bytes]' } }],
        },
      ],
    });
    expect(runs[0]?.attachments).toEqual([{ name: 'inputs_1', bytes: Buffer.alloc(900, 1), mimeType: 'image/png' }]);
  });

  test('has no end before the span ends', () => {
    const { tracer, recorder } = setUp();
    const span = tracer.startSpan('a');
    expect(runNamed(recorder, 'a')).not.toHaveProperty('end_time');
    span.end();
    expect(runNamed(recorder, 'a')).toHaveProperty('end_time');
  });

  test('has the last name of the span', () => {
    const { tracer, recorder } = setUp();
    tracer.startSpan('GET').updateName('GET /a').end();
    expect(recorder.runs.map(({ name }) => name)).toEqual(['GET /a']);
  });

  test('has a valid time if the times of the span are invalid', () => {
    const { tracer, recorder } = setUp();
    tracer.startSpan('a', { startTime: Number.NaN }).end(Number.NaN);
    const { start_time, end_time } = runNamed(recorder, 'a');
    expect(Math.abs(Date.parse(start_time) - Date.now())).toBeLessThan(10_000);
    expect(end_time).toBe(start_time);
  });

  test('has a random id if the ids of the span are not hexadecimal', () => {
    const recorder = recordRuns();
    const provider = new BasicTracerProvider({
      spanProcessors: [new RunSpanProcessor({ exporter: recorder.exporter })],
      idGenerator: { generateTraceId: () => 'trace', generateSpanId: () => 'span' },
    });
    provider.getTracer('test').startSpan('a').end();
    recorder.stop();
    expect(runNamed(recorder, 'a').id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test('has the error of a failed span, and the exception as an event', () => {
    const { tracer, recorder } = setUp();
    const span = tracer.startSpan('a', { startTime: seconds(START_US) });
    span.recordException(new TypeError('no such tool'), seconds(START_US + 5));
    span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
    const { error, events } = runNamed(recorder, 'a');
    expect(error).toMatch(/^TypeError: no such tool\n {4}at /);
    expect(events).toEqual([
      {
        name: 'exception',
        time: '2026-11-20T07:22:40.123461Z',
        kwargs: {
          'exception.type': 'TypeError',
          'exception.message': 'no such tool',
          'exception.stacktrace': expect.stringContaining('TypeError: no such tool\n'),
        },
      },
    ]);
  });

  test('has the events in order, with and without attributes', () => {
    const { tracer, recorder } = setUp();
    const span = tracer.startSpan('a', { startTime: seconds(START_US) });
    span
      .addEvent('first token', { index: 0 }, seconds(START_US + 1))
      .addEvent('done', seconds(START_US + 2))
      .end();
    expect(runNamed(recorder, 'a').events).toEqual([
      { name: 'first token', time: '2026-11-20T07:22:40.123457Z', kwargs: { index: 0 } },
      { name: 'done', time: '2026-11-20T07:22:40.123458Z' },
    ]);
  });

  test('has the attributes and the OpenTelemetry fields as metadata', () => {
    const recorder = recordRuns();
    const provider = new BasicTracerProvider({
      spanProcessors: [new RunSpanProcessor({ exporter: recorder.exporter })],
      resource: { attributes: { 'service.name': 'shop', 'service.version': '7', 'host.name': 'h' } } as never,
      spanLimits: { attributeCountLimit: 3, eventCountLimit: 1, linkCountLimit: 1 },
    });
    recorder.stop();
    const link = { context: { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 }, attributes: { a: 1 } };
    const tracer = provider.getTracer('scope', '1.2.3');
    const parent = tracer.startSpan('parent');
    const attributes = { 'net.peer.name': 'a.example', list: ['a', 'b'], n: 1.5, over: true };
    const span = tracer.startSpan(
      'a',
      { kind: SpanKind.CLIENT, attributes, links: [link, link] },
      trace.setSpan(context.active(), parent),
    );
    span.addEvent('1').addEvent('2').setStatus({ code: SpanStatusCode.OK }).end();
    const { traceId, spanId } = span.spanContext();
    expect(runNamed(recorder, 'a').extra?.metadata).toEqual({
      'net.peer.name': 'a.example',
      list: ['a', 'b'],
      n: 1.5,
      'service.name': 'shop',
      'service.version': '7',
      otel: {
        trace_id: traceId,
        span_id: spanId,
        parent_span_id: parent.spanContext().spanId,
        kind: 'CLIENT',
        status: 'OK',
        scope: { name: 'scope', version: '1.2.3' },
        dropped_attributes_count: 1,
        dropped_events_count: 1,
        dropped_links_count: 1,
        links: [{ trace_id: '1'.repeat(32), span_id: '2'.repeat(16), attributes: { a: 1 } }],
      },
    });
  });

  test('has its service and its ids next to an invalid link', () => {
    const { tracer, recorder } = setUp();
    const none = { context: trace.getSpanContext(ROOT_CONTEXT) as never };
    const there = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 };
    const span = tracer.startSpan('a', { links: [none, { context: there }] });
    span.end();
    expect(runNamed(recorder, 'a').extra?.metadata).toMatchObject({
      'service.name': expect.stringContaining('unknown_service'),
      otel: {
        span_id: span.spanContext().spanId,
        kind: 'INTERNAL',
        links: [{}, { trace_id: '1'.repeat(32), span_id: '2'.repeat(16) }],
      },
    });
  });

  test('has a scope name that is not text', () => {
    const { provider, recorder } = setUp();
    provider
      .getTracer(5n as never, { major: 2 } as never)
      .startSpan('a')
      .end();
    const scope = { name: '5', version: '[object Object]' };
    expect(runNamed(recorder, 'a').extra?.metadata?.otel).toMatchObject({ scope });
  });

  test.each<[string, object, object]>([
    [
      'invalid dropped counts',
      { droppedAttributesCount: 'many', droppedEventsCount: Number.NaN, droppedLinksCount: '2' },
      { otel: { kind: 'INTERNAL', dropped_links_count: 2 } },
    ],
    ['no status', { status: undefined }, { otel: { trace_id: 'c'.repeat(32) }, service: '"shop"' }],
    ['no resource', { resource: undefined }, { otel: { kind: 'INTERNAL' }, service: undefined }],
    ['no links', { links: undefined }, { otel: { trace_id: 'c'.repeat(32) }, service: '"shop"' }],
    ['null as its parent', { parentSpanContext: null }, { otel: { kind: 'INTERNAL' } }],
    ['a parent without an id', { parentSpanContext: {} }, { otel: { kind: 'INTERNAL' } }],
    ['null as its start', { startTime: null }, { otel: { kind: 'INTERNAL' } }],
  ])('of an invalid span with %s has the other fields', (_, odd, expected) => {
    told();
    const { sink, runs } = notingSink();
    const ids = { traceId: 'c'.repeat(32), spanId: 'd'.repeat(16), traceFlags: 1 };
    const span = {
      name: 'a',
      kind: 0,
      spanContext: () => ids,
      startTime: seconds(START_US),
      endTime: seconds(START_US + 1),
      status: { code: 0 },
      attributes: {},
      links: [],
      events: [],
      resource: { attributes: { 'service.name': 'shop' } },
      ...odd,
    } as unknown as SpanLike;
    const processor = new RunSpanProcessor({ exporter: sink });
    processor.onStart(span, ROOT_CONTEXT);
    processor.onEnd(span);
    const metadata = runs.at(1)?.metadata;
    const otel = JSON.parse(metadata?.get('otel') ?? '');
    expect({ otel, service: metadata?.get('service.name') }).toMatchObject(expected);
  });

  test('has the runtime if it is the root', () => {
    const { tracer, recorder } = setUp();
    const root = tracer.startSpan('root');
    tracer.startSpan('child', {}, trace.setSpan(context.active(), root)).end();
    expect(runNamed(recorder, 'root').extra?.runtime).toMatchObject({ sdk: 'runspan' });
    expect(runNamed(recorder, 'child').extra).not.toHaveProperty('runtime');
  });
});

describe('the payloads of a run', () => {
  test('contain the inputs from the start, and again if they change', () => {
    const { sink, runs } = notingSink();
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const [same, changed] = ['same', 'changed'].map((name) =>
      tracer.startSpan(name, { attributes: { 'input.value': '{"q":1}', 'openinference.span.kind': 'TOOL' } }),
    );
    changed?.setAttribute('input.value', '{"q":2}');
    for (const span of [same, changed]) span?.setAttribute('output.value', 'yes').end();
    expect(runs.map(({ name, runType, inputs, outputs }) => [name, runType, inputs, outputs])).toEqual([
      ['same', 'tool', '{"q":1}', undefined],
      ['changed', 'tool', '{"q":1}', undefined],
      ['same', 'tool', '{"q":1}', '{"output":"yes"}'],
      ['changed', 'tool', '{"q":2}', '{"output":"yes"}'],
    ]);
    expect(runs.at(-1)?.metadata?.has('input.value')).toBe(false);
  });

  test('are missing in all fields if they are hidden', () => {
    const { sink, runs } = notingSink({ hideInputs: true, hideOutputs: true });
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const attributes = {
      'openinference.span.kind': 'LLM',
      'input.value': 'SECRET',
      'llm.input_messages.0.message.content': 'SECRET',
      'llm.output_messages.0.message.content': 'SECRET',
      'gen_ai.input.messages': '[{"role":"user","parts":[{"type":"text","content":"SECRET"}]}]',
      'gen_ai.prompt.0.content': 'SECRET',
      'ai.prompt.messages': 'SECRET',
      'ai.response.text': 'SECRET',
      'traceloop.entity.input': 'SECRET',
      'db.statement': 'SECRET',
      'llm.token_count.prompt': 3,
      'llm.model_name': 'small',
    };
    tracer
      .startSpan('a', { attributes })
      .addEvent('gen_ai.user.message', { content: 'SECRET' })
      .addEvent('step', { 'gen_ai.completion': 'SECRET', index: 1 })
      .end();
    const sent = runs.map((run) => JSON.stringify({ ...run, metadata: [...(run.metadata ?? [])] }));
    expect(sent.join()).not.toContain('SECRET');
    expect(runs.at(-1)?.metadata?.get('usage_metadata')).toBe('{"input_tokens":3,"total_tokens":3}');
    expect(runs.at(-1)?.metadata?.get('ls_model_name')).toBe('"small"');
    expect(runs.at(-1)?.events).toContain('"kwargs":{"index":1}');
  });

  test('keep their JSON text, with the token counts added', () => {
    const { sink, runs } = notingSink();
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const attributes = {
      'openinference.span.kind': 'LLM',
      'input.value': '{ "id": 12345678901234567890 }',
      'output.value': '{ "score": 1.0 } ',
      'llm.token_count.total': 3,
    };
    tracer.startSpan('a', { attributes }).end();
    tracer.startSpan('b', { attributes: { ...attributes, 'output.value': '{}' } }).end();
    tracer.startSpan('c', { attributes: { ...attributes, 'output.value': '{"usage_metadata":1}' } }).end();
    expect(runs[0]?.inputs).toBe('{ "id": 12345678901234567890 }');
    expect(runs.filter(({ endTime }) => endTime !== undefined).map(({ outputs }) => outputs)).toEqual([
      '{ "score": 1.0 ,"usage_metadata":{"total_tokens":3}}',
      '{"usage_metadata":{"total_tokens":3}}',
      '{"usage_metadata":{"total_tokens":3}}',
    ]);
  });

  test('do not change the structured values of the application', () => {
    const { sink, runs } = notingSink();
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const span = tracer.startSpan('a', {
      attributes: { 'openinference.span.kind': 'LLM', 'llm.token_count.total': 3 },
    });
    const output = { text: 'yes' };
    (span as unknown as { attributes: Record<string, unknown> }).attributes['output.value'] = output;
    span.end();
    expect(output).toEqual({ text: 'yes' });
    expect(runs.at(-1)?.outputs).toBe('{"text":"yes","usage_metadata":{"total_tokens":3}}');
  });

  test('are cut at the limits of the exporter, like the metadata', () => {
    const payload = { depth: 64, width: 10_000, nodes: 100_000, bytes: 40 };
    const { sink, runs } = notingSink({ payload });
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const attributes = { 'input.value': `{"q":"${'x'.repeat(100)}"}`, note: 'y'.repeat(100) };
    tracer.startSpan('a', { attributes }).end();
    expect(runs.at(-1)?.inputs).toContain('[Truncated: 61 characters]');
    expect(runs.at(-1)?.metadata?.get('note')).toContain('[Truncated: 60 characters]');
  });

  test('are read if other attributes are invalid', () => {
    const { tracer, recorder } = setUp();
    const attributes: Record<string, never> = JSON.parse(`{
      "__proto__": "a", "constructor": "b", "openinference.span.kind": 7, "input.value": "{broken",
      "input.mime_type": "application/json", "llm.token_count.prompt": "many", "llm.invocation_parameters": "[1]",
      "llm.input_messages.__proto__.x": "c", "llm.input_messages.0.message": "d", "tag.tags": 4, "metadata": "{"
    }`);
    const many = Object.fromEntries(Array.from({ length: 90 }, (_, index) => [`key ${index}`, index]));
    tracer.startSpan('a', { attributes: { ...many, ...attributes } }).end();
    const { inputs, run_type, extra } = runNamed(recorder, 'a');
    expect(run_type).toBe('chain');
    expect(inputs).toEqual({ input: '{broken' });
    expect(extra?.metadata).toMatchObject({
      constructor: 'b',
      'llm.token_count.prompt': 'many',
      'llm.invocation_parameters': '[1]',
      'llm.input_messages.0.message': 'd',
      'tag.tags': 4,
      metadata: '{',
      'key 89': 89,
    });
    expect({}).not.toHaveProperty('x');
  });
});

test('a span that is not sampled is ignored', () => {
  const { sink, asked } = notingSink();
  const processor = new RunSpanProcessor({ exporter: sink });
  const ids = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: TraceFlags.NONE };
  processor.onStart({ spanContext: () => ids } as never, context.active());
  expect(asked).toEqual([]);
});
