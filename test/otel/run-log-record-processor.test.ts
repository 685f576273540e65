import { type Span, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import { describe, expect, test } from 'vitest';
import { type LogRecordLike, RunLogRecordProcessor, RunSpanProcessor } from '../../src/otel.ts';
import { told } from '../support/told.ts';
import { notingSink, runNamed, setUp } from './set-up.ts';

const chat = { attributes: { 'gen_ai.operation.name': 'chat' } };

/** Creates a log record of `@opentelemetry/sdk-logs` that was emitted inside `span`. */
function logRecord(span: Span, record: Partial<LogRecordLike>): LogRecordLike {
  return { spanContext: span.spanContext(), attributes: {}, ...record };
}

const userSays = (span: Span, content: unknown) =>
  logRecord(span, { attributes: { 'event.name': 'gen_ai.user.message' }, body: { content } });

describe('a log record with messages', () => {
  test('is added to the run of its span, with the event name in a field or an attribute', () => {
    const { tracer, recorder } = setUp();
    const logs = new RunLogRecordProcessor();
    const span = tracer.startSpan('chat', chat);
    const other = tracer.startSpan('other', chat);
    logs.onEmit(userSays(span, 'Rain?'));
    logs.onEmit(userSays(span, 'Now?'));
    logs.onEmit(
      logRecord(span, {
        eventName: 'gen_ai.client.inference.operation.details',
        attributes: { 'gen_ai.output.messages': [{ role: 'assistant', parts: [{ type: 'text', content: 'Yes.' }] }] },
      }),
    );
    other.end();
    span.end();
    expect(runNamed(recorder, 'chat')).toMatchObject({
      inputs: {
        messages: [
          { role: 'user', content: 'Rain?' },
          { role: 'user', content: 'Now?' },
        ],
      },
      outputs: { messages: [{ role: 'assistant', content: 'Yes.' }] },
    });
    expect(runNamed(recorder, 'other').inputs).toEqual({});
  });

  test('is recorded as it was when it was emitted', () => {
    const { tracer, recorder } = setUp();
    const span = tracer.startSpan('chat', chat);
    const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } };
    new RunLogRecordProcessor().onEmit(
      logRecord(span, { eventName: 'gen_ai.choice', body: { message: { tool_calls: [call] } } }),
    );
    call.function.name = 'changed';
    span.end();
    expect(runNamed(recorder, 'chat').outputs).toMatchObject({
      messages: [{ tool_calls: [{ function: { name: 'weather' } }] }],
    });
  });

  test('is ignored if the span has messages in attributes or events', () => {
    const { tracer, recorder } = setUp();
    const logs = new RunLogRecordProcessor();
    const attributes = { ...chat.attributes, 'gen_ai.input.messages': '[{"role":"user","content":"attribute"}]' };
    const spans = [tracer.startSpan('attribute', { attributes }), tracer.startSpan('event', chat)];
    for (const span of spans) logs.onEmit(userSays(span, 'record'));
    spans[1]?.addEvent('gen_ai.user.message', { content: 'event' });
    for (const span of spans) span.end();
    expect(runNamed(recorder, 'attribute').inputs).toEqual({ messages: [{ role: 'user', content: 'attribute' }] });
    expect(runNamed(recorder, 'event').inputs).toEqual({ messages: [{ role: 'user', content: 'event' }] });
  });

  test('is added to the run of every processor', () => {
    const sinks = [notingSink(), notingSink()];
    const processors = sinks.map(({ sink }) => new RunSpanProcessor({ exporter: sink }));
    const { tracer } = setUp({ processors });
    const span = tracer.startSpan('chat', chat);
    new RunLogRecordProcessor().onEmit(userSays(span, 'Rain?'));
    span.end();
    for (const { runs } of sinks) {
      expect(runs.at(-1)?.inputs).toBe('{"messages":[{"role":"user","content":"Rain?"}]}');
    }
  });

  test.each([
    [{ hideInputs: true }, undefined, '{"messages":[{"role":"assistant","content":"SECRET 2"}]}'],
    [{ hideOutputs: true }, '{"messages":[{"role":"user","content":"SECRET 1"}]}', undefined],
  ])('is hidden with %j', (hidden, inputs, outputs) => {
    const { sink, runs } = notingSink(hidden);
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const logs = new RunLogRecordProcessor();
    const span = tracer.startSpan('chat', chat);
    logs.onEmit(userSays(span, 'SECRET 1'));
    logs.onEmit(logRecord(span, { eventName: 'gen_ai.choice', body: { message: { content: 'SECRET 2' } } }));
    span.end();
    const run = runs.at(-1);
    expect([run?.inputs, run?.outputs]).toEqual([inputs, outputs]);
    expect(JSON.stringify([...(run?.metadata ?? []), run?.events])).not.toContain('SECRET');
  });

  test('is dropped beyond the payload limits, and counted in the metadata', () => {
    const payload = { depth: 64, width: 10_000, nodes: 100_000, bytes: 60 };
    const { sink, runs } = notingSink({ payload });
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const logs = new RunLogRecordProcessor();
    const span = tracer.startSpan('chat', chat);
    for (const content of ['x'.repeat(60), 'y', 'z']) logs.onEmit(userSays(span, content));
    span.end();
    expect(runs.at(-1)?.inputs).not.toContain('y');
    expect(runs.at(-1)?.metadata?.get('dropped_log_records')).toBe('2');
  });

  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;

  test.each<[string, unknown, RegExp]>([
    ['a bigint', 2n, /^"2"$/],
    ['bytes', new Uint8Array([7, 7]), /"base64":"Bwc="/],
    ['a key that names a prototype', JSON.parse('{"__proto__":{"b":1}}'), /^\{"__proto__":\{"b":1\}\}$/],
    ['more values than the limit', Array.from({ length: 20 }, () => 5), /^\[(5,){1,10}"\[Truncated[^"]*"\]$/],
    ['a cycle', cycle, /^(\{"self":){1,6}"\[Truncated[^"]*"\}+$/],
  ])('may have %s', (_, content, expected) => {
    const { sink, runs } = notingSink({ payload: { depth: 6, width: 100, nodes: 10, bytes: 1_000 } });
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const span = tracer.startSpan('chat', chat);
    new RunLogRecordProcessor().onEmit(userSays(span, content));
    if (content instanceof Uint8Array) content.fill(0);
    span.end();
    expect(JSON.stringify(JSON.parse(runs.at(-1)?.inputs ?? '').messages[0].content)).toMatch(expected);
  });

  test('is dropped and logged once if it arrives after the end of its span', () => {
    const lines = told();
    const { tracer, recorder } = setUp();
    const logs = new RunLogRecordProcessor();
    const span = tracer.startSpan('chat', chat);
    span.end();
    for (const content of ['late', 'later']) logs.onEmit(userSays(span, content));
    expect(runNamed(recorder, 'chat').inputs).toEqual({});
    expect(lines).toEqual([
      'warn: log records with messages or exceptions arrived after the end of their span and are dropped.',
    ]);
  });

  test('is ignored if its span is not recorded', () => {
    const lines = told();
    const { sink } = notingSink({}, false);
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const logs = new RunLogRecordProcessor();
    const ids = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: TraceFlags.SAMPLED };
    logs.onEmit({ spanContext: ids, eventName: 'gen_ai.user.message', attributes: {}, body: { content: 'a' } });
    logs.onEmit({ eventName: 'gen_ai.user.message', attributes: {}, body: { content: 'a' } });
    logs.onEmit(userSays(tracer.startSpan('refused', chat), 'a'));
    expect(lines).toEqual([]);
  });
});

// https://opentelemetry.io/docs/specs/semconv/exceptions/exceptions-logs/ and, of the conventions for generative AI,
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-exceptions.md
describe('an exception that is a log record', () => {
  const stack = 'RateLimitError: slow down\n    at call (file:///app.js:1:2)';
  const attributes = {
    'exception.type': 'RateLimitError',
    'exception.message': 'slow down',
    'exception.stacktrace': stack,
  };

  test.each(['exception', 'gen_ai.client.operation.exception'])(
    'with the event name %s becomes the error of its run',
    (eventName) => {
      const { tracer, recorder } = setUp();
      const logs = new RunLogRecordProcessor();
      const span = tracer.startSpan('chat', chat);
      expect(logs.enabled({ eventName })).toBe(true);
      logs.onEmit(logRecord(span, { eventName, attributes: { ...attributes, 'exception.message': 'first' } }));
      logs.onEmit(logRecord(span, { eventName, attributes }));
      span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
      expect(runNamed(recorder, 'chat').error).toBe(stack);
    },
  );

  test('yields to the exception event of its span, and alone is not an error', () => {
    const { tracer, recorder } = setUp();
    const logs = new RunLogRecordProcessor();
    const [failed, handled] = [tracer.startSpan('failed', chat), tracer.startSpan('handled', chat)];
    for (const span of [failed, handled]) logs.onEmit(logRecord(span, { eventName: 'exception', attributes }));
    failed.recordException({ name: 'TimeoutError', message: 'late' });
    failed.setStatus({ code: SpanStatusCode.ERROR });
    for (const span of [failed, handled]) span.end();
    expect(runNamed(recorder, 'failed').error).toBe('TimeoutError: late');
    expect(runNamed(recorder, 'handled').error).toBeUndefined();
  });

  test('is dropped and logged once if it arrives after its span has ended', () => {
    const lines = told();
    const { tracer } = setUp();
    const span = tracer.startSpan('chat', chat);
    span.end();
    new RunLogRecordProcessor().onEmit(logRecord(span, { eventName: 'exception', attributes }));
    expect(lines).toHaveLength(1);
  });
});

describe('the processor', () => {
  test('ignores other records', () => {
    const { tracer, recorder } = setUp();
    const logs = new RunLogRecordProcessor();
    const span = tracer.startSpan('chat', chat);
    logs.onEmit(logRecord(span, { body: 'gen_ai.user.message' }));
    logs.onEmit(logRecord(span, { eventName: 'order.placed', body: { content: 'a' } }));
    logs.onEmit(logRecord(span, { attributes: { 'event.name': 7 }, body: { content: 'a' } }));
    span.end();
    expect(runNamed(recorder, 'chat')).toMatchObject({ inputs: {} });
  });

  test('is enabled only for its own events', async () => {
    const logs = new RunLogRecordProcessor();
    expect(logs.enabled({})).toBe(true);
    expect(logs.enabled({ eventName: 'gen_ai.choice' })).toBe(true);
    expect(logs.enabled({ eventName: 'order.placed' })).toBe(false);
    await logs.shutdown();
    expect(logs.enabled({})).toBe(false);
  });

  test('never throws', () => {
    const lines = told();
    const { tracer, recorder } = setUp();
    const logs = new RunLogRecordProcessor();
    const span = tracer.startSpan('chat', chat);
    const body = {
      get content() {
        throw new Error('no');
      },
    };
    logs.onEmit(logRecord(span, { eventName: 'gen_ai.user.message', body }));
    logs.onEmit(undefined as never);
    logs.onEmit(logRecord(span, { eventName: 'gen_ai.choice', body: { message: { content: 'Yes.' } } }));
    span.end();
    expect(runNamed(recorder, 'chat').outputs).toMatchObject({ messages: [{ content: 'Yes.' }] });
    expect(lines).toEqual([
      expect.stringMatching(/^warn: RunLogRecordProcessor.onEmit failed, the application is not/),
    ]);
  });

  test('ignores records after its shutdown', async () => {
    const { tracer, recorder } = setUp();
    const logs = new RunLogRecordProcessor();
    const span = tracer.startSpan('chat', chat);
    await logs.forceFlush();
    await logs.shutdown();
    await logs.shutdown();
    logs.onEmit(userSays(span, 'Rain?'));
    span.end();
    expect(runNamed(recorder, 'chat').inputs).toEqual({});
  });
});
