import { ROOT_CONTEXT, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { describe, expect, test, vi } from 'vitest';
import { createExporter } from '#src/index.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import { spanRunId } from '#src/run/ids.ts';
import { recordRuns } from '#src/testing.ts';
import { tune } from '../support/environment.ts';
import { logLines } from '../support/log-lines.ts';
import { moduleText, runNode } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { expectRun, mapped } from './mapped.ts';
import { below, finished, noting, runNamed, setUp } from './set-up.ts';

const START_US = 1_795_159_360_123_456;
const seconds = (us: number): [number, number] => [Math.floor(us / 1e6), (us % 1e6) * 1_000];

const dataUrl = (fill: number) => `data:image/png;base64,${Buffer.alloc(900, fill).toString('base64')}`;

describe('the run of a span', () => {
  test('has the times of the span in microseconds, and an id from its start and ids', () => {
    const { tracer, recorder } = setUp();
    const span = tracer.startSpan('a', { startTime: seconds(START_US) });
    expect(runNamed(recorder, 'a')).not.toHaveProperty('end_time');
    span.updateName('GET /a').end(seconds(START_US + 1_500_001));
    const { traceId, spanId } = span.spanContext();
    const id = spanRunId(START_US, traceId, spanId);
    expect(recorder.runs).toMatchObject([
      {
        id,
        name: 'GET /a',
        dotted_order: `20261120T072240123456Z${id}`,
        start_time: '2026-11-20T07:22:40.123456Z',
        end_time: '2026-11-20T07:22:41.623457Z',
        run_type: 'chain',
        inputs: {},
      },
    ]);
  });

  test('has data URIs and base64 media as attachments, those of its end in place of those of its start', () => {
    const { tracer, runs } = noting();
    const span = tracer.startSpan('a', { attributes: { 'input.value': JSON.stringify({ image: dataUrl(1) }) } });
    expect(runs[0]?.attachments).toEqual([{ name: 'inputs_1', bytes: Buffer.alloc(900, 1), mimeType: 'image/png' }]);
    span.setAttribute('input.value', JSON.stringify({ image: dataUrl(2) }));
    span.setAttribute('output.value', JSON.stringify({ image: dataUrl(3) })).end();
    expect(runs[1]).toMatchObject({
      inputs: '{"image":"[Attachment inputs_1: image/png, 900 bytes]"}',
      outputs: '{"image":"[Attachment outputs_1: image/png, 900 bytes]"}',
    });
    const firstBytes = runs[1]?.attachments?.map(({ name, bytes }) => [name, (bytes as Uint8Array)[0]]);
    expect(firstBytes).toEqual([
      ['inputs_1', 2],
      ['outputs_1', 3],
    ]);

    const parts = [{ type: 'blob', modality: 'image', mime_type: 'image/png', content: dataUrl(4).split(',')[1] }];
    tracer.startSpan('b', { attributes: { 'gen_ai.input.messages': JSON.stringify([{ role: 'user', parts }]) } }).end();
    expect(runs[2]?.inputs).toContain('{"url":"[Attachment inputs_1: image/png, 900 bytes]"}');
    expect(runs[2]?.attachments).toMatchObject([{ name: 'inputs_1', bytes: Buffer.alloc(900, 4) }]);
  });

  test('has a valid time if the times of the span are invalid', () => {
    const { tracer, recorder } = setUp();
    tracer.startSpan('a', { startTime: Number.NaN }).end(Number.NaN);
    const { start_time, end_time } = runNamed(recorder, 'a');
    expect(Math.abs(Date.parse(start_time) - Date.now())).toBeLessThan(10_000);
    expect(end_time).toBe(start_time);
  });

  test('has a random id if the ids of the span are not hexadecimal', () => {
    const { processor, runs } = noting();
    const idGenerator = { generateTraceId: () => 'trace', generateSpanId: () => 'span' };
    new BasicTracerProvider({ spanProcessors: [processor], idGenerator }).getTracer('test').startSpan('a').end();
    expect(runs[0]?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test('has the error of a failed span, and its events in order', () => {
    const { tracer, recorder } = setUp();
    const span = tracer.startSpan('a', { startTime: seconds(START_US) });
    span.recordException(new TypeError('no such tool'), seconds(START_US + 5));
    span.addEvent('first token', { index: 0 }, seconds(START_US + 6)).addEvent('done', seconds(START_US + 7));
    span.setStatus({ code: SpanStatusCode.ERROR }).end();
    const { error, events } = runNamed(recorder, 'a');
    expect(error).toMatch(/^TypeError: no such tool\n {4}at /);
    const exception = {
      'exception.type': 'TypeError',
      'exception.message': 'no such tool',
      'exception.stacktrace': expect.stringContaining('TypeError: no such tool\n'),
    };
    expect(events).toEqual([
      { name: 'exception', time: '2026-11-20T07:22:40.123461Z', kwargs: exception },
      { name: 'first token', time: '2026-11-20T07:22:40.123462Z', kwargs: { index: 0 } },
      { name: 'done', time: '2026-11-20T07:22:40.123463Z' },
    ]);
  });

  test('has the attributes and the OpenTelemetry fields as metadata', () => {
    const recorder = recordRuns();
    const provider = new BasicTracerProvider({
      spanProcessors: [new RunSpanProcessor({ exporter: recorder.exporter, shouldExport: 'all' })],
      resource: { attributes: { 'service.name': 'shop', 'service.version': '7', 'host.name': 'h' } } as never,
      spanLimits: { attributeCountLimit: 3, eventCountLimit: 1, linkCountLimit: 1 },
    });
    recorder.stop();
    const link = { context: { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 }, attributes: { a: 1 } };
    const tracer = provider.getTracer('scope', '1.2.3');
    const parent = tracer.startSpan('parent');
    const attributes = { 'net.peer.name': 'a.example', list: ['a', 'b'], n: 1.5, over: true };
    const span = tracer.startSpan('a', { kind: SpanKind.CLIENT, attributes, links: [link, link] }, below(parent));
    span.addEvent('1').addEvent('2').setStatus({ code: SpanStatusCode.OK }).end();
    const { traceId, spanId } = span.spanContext();
    expect(runNamed(recorder, 'a').extra).toEqual({
      metadata: {
        'net.peer.name': 'a.example',
        list: ['a', 'b'],
        n: 1.5,
        'service.name': 'shop',
        'service.version': '7',
        'host.name': 'h',
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
      },
    });
    expect(runNamed(recorder, 'parent').extra?.runtime).toMatchObject({ sdk: 'runspan' });
  });

  const INTERNAL = { kind: 'INTERNAL' };
  test.each<[string, object, object]>([
    [
      'invalid links',
      { links: [{ context: undefined }, { context: { traceId: '1', spanId: '2' } }] },
      { links: [{}, { trace_id: '1', span_id: '2' }] },
    ],
    [
      'a scope name that is not text',
      { instrumentationScope: { name: 5n, version: { major: 2 } } },
      { scope: { name: '5', version: '[object Object]' } },
    ],
    [
      'invalid dropped counts',
      { droppedAttributesCount: 'many', droppedEventsCount: Number.NaN, droppedLinksCount: '2' },
      { dropped_links_count: 2 },
    ],
    ['no status', { status: undefined }, {}],
    ['no links', { links: undefined }, {}],
    ['null as its parent', { parentSpanContext: null }, INTERNAL],
    ['a parent without an id', { parentSpanContext: {} }, INTERNAL],
    ['null as its start', { startTime: null }, INTERNAL],
    ['no resource', { resource: undefined }, INTERNAL],
  ])('of an invalid span with %s has the other fields', (_, odd, otel) => {
    logLines();
    const { processor, runs } = noting();
    const span = finished({ resource: { attributes: { 'service.name': 'shop' } }, ...odd });
    processor.onStart(span, ROOT_CONTEXT);
    processor.onEnd(span);
    const { metadata } = runs.at(-1) ?? {};
    expect(JSON.parse(metadata?.get('otel') ?? '')).toMatchObject({ trace_id: 'c'.repeat(32), ...otel });
    expect(metadata?.get('service.name')).toBe('resource' in odd ? undefined : '"shop"');
  });
});

describe('the end of a span', () => {
  test('before its start becomes the start', () => {
    const { processor, runs } = noting();
    const span = finished({ startTime: [1_795_159_360, 0], endTime: [1_795_159_300, 0] });
    processor.onStart(span, ROOT_CONTEXT);
    processor.onEnd(span);
    expect(runs.at(-1)?.endTime).toBe('2026-11-20T07:22:40.000000Z');
  });

  test('counts once, and may be reported by a wrapper', () => {
    const { processor, asked, runs } = noting();
    const span = finished({ startTime: [1_795_159_360, 0], endTime: [1_795_159_361, 0] });
    processor.onStart(span, ROOT_CONTEXT);
    processor.onEnd({ ...span });
    processor.onEnd({ ...span, endTime: [1_795_159_399, 0] });
    expect(asked).toEqual(['start a', 'end a']);
    expect(runs.at(-1)?.endTime).toBe('2026-11-20T07:22:41.000000Z');
  });

  test('completes its run if the exporter has already sent it as incomplete', async () => {
    logLines();
    const receiver = await startReceiver();
    tune({ openRuns: 1 });
    const exporter = createExporter({ endpoint: receiver.url, apiKey: 'key' });
    const { tracer, provider } = setUp({ processors: [new RunSpanProcessor({ exporter, shouldExport: 'all' })] });
    const first = tracer.startSpan('first', { attributes: { 'input.value': 'hi' } });
    tracer.startSpan('second').end();
    first.setAttribute('output.value', 'ho').end();
    await provider.forceFlush();
    await exporter.close();
    const [run] = await receiver.runs({ filter: 'name:first' });
    expect(run).toMatchObject({ inputs: { input: 'hi' }, outputs: { output: 'ho' }, error: '' });
    expect(exporter.stats()).toMatchObject({ created: 2, sent: 2, dropped: 0 });
  });

  test('completes its run after the start was due and sent with the inputs', async () => {
    const receiver = await startReceiver();
    const exporter = createExporter({
      endpoint: receiver.url,
      apiKey: 'key',
      limits: { startDelayMs: 1, lingerMs: 1 },
    });
    const { tracer, provider } = setUp({ processors: [new RunSpanProcessor({ exporter, shouldExport: 'all' })] });
    const span = tracer.startSpan('a', { attributes: { 'openinference.span.kind': 'LLM', 'input.value': 'hi' } });
    await expect.poll(() => receiver.runs()).toMatchObject([{ run_type: 'llm', inputs: { input: 'hi' } }]);
    const [sent] = await receiver.runs();
    expect(sent).not.toHaveProperty('end_time');
    span.setAttribute('output.value', 'ho').end();
    await provider.forceFlush();
    expect(await receiver.runs()).toMatchObject([{ id: sent?.id, inputs: { input: 'hi' }, outputs: { output: 'ho' } }]);
    await exporter.close();
  });
});

describe('a span that never ends', () => {
  const interrupted = 'Interrupted: the span had not ended when its provider was shut down';

  test('is interrupted at the shutdown of its provider, with its attributes at this time', async () => {
    const { tracer, provider, recorder } = setUp();
    const span = tracer.startSpan('open', { attributes: { 'input.value': 'hi' } });
    tracer.startSpan('failed').setStatus({ code: 2, message: 'no tea' });
    span.setAttributes({ 'output.value': 'ho', 'shop.user': 'ann' });
    await provider.shutdown();
    span.setAttribute('shop.user', 'bob').end();
    const { end_time = '', start_time, ...run } = runNamed(recorder, 'open');
    expect(run).toMatchObject({
      error: interrupted,
      inputs: { input: 'hi' },
      outputs: { output: 'ho' },
      extra: { metadata: { 'shop.user': 'ann' }, runspan_end_reason: 'interrupted' },
    });
    expect(end_time >= start_time).toBe(true);
    expect(runNamed(recorder, 'failed').error).toBe('no tea');
  });

  test('is interrupted with the fields of its start if the application has released the span', async () => {
    // A reference to a released span.
    vi.stubGlobal(
      'WeakRef',
      class {
        deref() {}
      },
    );
    const { tracer, provider, runs } = noting();
    tracer.startSpan('open', { attributes: { 'input.value': 'hi' } });
    await provider.shutdown();
    expect(runs[1]).toMatchObject({ error: interrupted, inputs: '{"input":"hi"}', endTime: expect.any(String) });
    expect(runs[1]?.endReason).toBe('interrupted');
  });

  test('is not kept in memory after its start is recorded', async () => {
    const program = `
      import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
      const { RunSpanProcessor } = await import('./dist/otel.js');
      const { recordRuns } = await import('./dist/testing.js');
      const recorder = recordRuns();
      const tracer = new BasicTracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] }).getTracer('t');
      const ref = new WeakRef(tracer.startSpan('open'));
      const { length } = recorder.runs;
      for (let round = 0; round < 200 && ref.deref() !== undefined; round++) {
        await new Promise((resolve) => setTimeout(resolve, 10));
        gc();
      }
      console.log(ref.deref() === undefined, length);`;
    expect(await runNode(['--expose-gc', ...moduleText(program)])).toMatchObject({ stdout: 'true 1\n' });
  });
});

describe('the payloads of a run', () => {
  test('contain the inputs from the start, and again if they change', () => {
    const { tracer, runs } = noting();
    const attributes = { 'input.value': '{"q":1}', 'openinference.span.kind': 'TOOL' };
    const [same, changed] = ['same', 'changed'].map((name) => tracer.startSpan(name, { attributes }));
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
    const { tracer, runs } = noting({ hideInputs: true, hideOutputs: true });
    const attributes = {
      'openinference.span.kind': 'LLM',
      'input.value': 'SECRET',
      'llm.output_messages.0.message.content': 'SECRET',
      'llm.token_count.prompt': 3,
      'llm.model_name': 'small',
    };
    const span = tracer.startSpan('a', { attributes }).addEvent('gen_ai.user.message', { content: 'SECRET' });
    span.addEvent('step', { 'gen_ai.completion': 'SECRET', index: 1 }).end();
    const sent = runs.map((run) => JSON.stringify({ ...run, metadata: [...(run.metadata ?? [])] }));
    expect(sent.join()).not.toContain('SECRET');
    expect(runs.at(-1)?.metadata?.get('usage_metadata')).toBe('{"input_tokens":3}');
    expect(runs.at(-1)?.metadata?.get('ls_model_name')).toBe('"small"');
    expect(runs.at(-1)?.events).toContain('"kwargs":{"index":1}');
  });

  test.each([
    ['{ "score": 1.0 } ', '{ "score": 1.0 ,"usage_metadata":{"total_tokens":3}}'],
    ['{}', '{"usage_metadata":{"total_tokens":3}}'],
    ['{"usage_metadata":1}', '{"usage_metadata":{"total_tokens":3}}'],
  ])('keep the JSON text %s and add the token counts', (output, expected) => {
    const { tracer, runs } = noting();
    const kind = { 'openinference.span.kind': 'LLM', 'llm.token_count.total': 3 };
    const input = '{ "id": 12345678901234567890 }';
    tracer.startSpan('a', { attributes: { ...kind, 'input.value': input, 'output.value': output } }).end();
    expect([runs[0]?.inputs, runs.at(-1)?.outputs]).toEqual([input, expected]);
  });

  test('do not change the structured values of the application', () => {
    const output = { text: 'yes' };
    const attributes = { 'openinference.span.kind': 'LLM', 'llm.token_count.total': 3, 'output.value': output };
    expect(mapped(attributes).outputs).toEqual({ text: 'yes', usage_metadata: { total_tokens: 3 } });
    expect(output).toEqual({ text: 'yes' });
  });

  test('are cut at the limits of the exporter, like the metadata', () => {
    const { tracer, runs } = noting({ payload: { depth: 64, width: 10_000, nodes: 100_000, bytes: 40 } });
    const attributes = { 'input.value': `{"q":"${'x'.repeat(100)}"}`, note: 'y'.repeat(100) };
    tracer.startSpan('a', { attributes }).end();
    expect(runs.at(-1)?.inputs).toContain('[Truncated: 61 characters]');
    expect(runs.at(-1)?.metadata?.get('note')).toContain('[Truncated: 60 characters]');
  });

  test('are read if other attributes are invalid, which stay in the metadata', () => {
    const metadata: Record<string, unknown> = JSON.parse(`{
      "__proto__": "a", "constructor": "b", "llm.token_count.prompt": "many", "llm.invocation_parameters": "[1]",
      "llm.input_messages.0.message": "d", "tag.tags": 4, "metadata": "{"
    }`);
    const input = { 'openinference.span.kind': 7, 'input.value': '{broken', 'input.mime_type': 'application/json' };
    expectRun(mapped({ ...metadata, ...input }), { runType: 'chain', inputs: { input: '{broken' }, metadata });
  });
});
