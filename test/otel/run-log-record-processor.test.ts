import { type Attributes, SpanStatusCode } from '@opentelemetry/api';
import { describe, expect, test } from 'vitest';
import { type LogRecordLike, RunLogRecordProcessor, RunSpanProcessor } from '#src/otel.ts';
import { logLines } from '../support/log-lines.ts';
import { notingSink, runNamed, setUp } from './set-up.ts';

const chat = { 'gen_ai.operation.name': 'chat' };

/** Starts spans of chat calls, and emits log records inside them. */
function logging(...sinks: ReturnType<typeof notingSink>['sink'][]) {
  const processors = sinks.map((exporter) => new RunSpanProcessor({ exporter, shouldExport: 'all' }));
  const created = setUp(sinks.length > 0 ? { processors } : {});
  const logs = new RunLogRecordProcessor();
  const start = (name: string, attributes: Attributes = {}) => {
    const span = created.tracer.startSpan(name, { attributes: { ...chat, ...attributes } });
    const emit = (record: Partial<LogRecordLike>) =>
      logs.onEmit({ spanContext: span.spanContext(), attributes: {}, ...record });
    const say = (content: unknown) => emit({ attributes: { 'event.name': 'gen_ai.user.message' }, body: { content } });
    return Object.assign(span, { emit, say });
  };
  return { ...created, logs, start, span: start('chat') };
}

const user = (content: string) => ({ role: 'user', content });
const choice = (message: object) => ({ eventName: 'gen_ai.choice', body: { message } });
const chatOf = ({ recorder }: ReturnType<typeof logging>) => runNamed(recorder, 'chat');

describe('a log record with messages', () => {
  test('is added to the run of its span, with the event name in a field or an attribute', () => {
    const created = logging();
    const { span } = created;
    const other = created.start('other');
    span.say('Rain?');
    span.say('Now?');
    span.emit({
      eventName: 'gen_ai.client.inference.operation.details',
      attributes: { 'gen_ai.output.messages': [{ role: 'assistant', parts: [{ type: 'text', content: 'Yes.' }] }] },
    });
    other.end();
    span.end();
    expect(chatOf(created)).toMatchObject({
      inputs: { messages: [user('Rain?'), user('Now?')] },
      outputs: { messages: [{ role: 'assistant', content: 'Yes.' }] },
    });
    expect(runNamed(created.recorder, 'other').inputs).toEqual({});
  });

  test('is recorded as it was when it was emitted', () => {
    const created = logging();
    const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } };
    created.span.emit(choice({ tool_calls: [call] }));
    call.function.name = 'changed';
    created.span.end();
    expect(chatOf(created).outputs).toMatchObject({ messages: [{ tool_calls: [{ function: { name: 'weather' } }] }] });
  });

  test('is ignored if the span has messages in attributes or events', () => {
    const { start, recorder } = logging();
    const messages = { 'gen_ai.input.messages': '[{"role":"user","content":"attribute"}]' };
    const spans = [start('attribute', messages), start('event')];
    for (const span of spans) span.say('record');
    spans[1]?.addEvent('gen_ai.user.message', { content: 'event' });
    for (const span of spans) span.end();
    for (const name of ['attribute', 'event'])
      expect(runNamed(recorder, name).inputs).toEqual({ messages: [user(name)] });
  });

  test('is added to the run of every processor', () => {
    const sinks = [notingSink(), notingSink()];
    const { span } = logging(...sinks.map(({ sink }) => sink));
    span.say('Rain?');
    span.end();
    for (const { runs } of sinks) expect(runs.at(-1)?.inputs).toBe('{"messages":[{"role":"user","content":"Rain?"}]}');
  });

  test.each([
    [{ hideInputs: true }, undefined, '{"messages":[{"role":"assistant","content":"SECRET 2"}]}'],
    [{ hideOutputs: true }, '{"messages":[{"role":"user","content":"SECRET 1"}]}', undefined],
  ])('is hidden with %j', (hidden, inputs, outputs) => {
    const { sink, runs } = notingSink(hidden);
    const { span } = logging(sink);
    span.say('SECRET 1');
    span.emit(choice({ content: 'SECRET 2' }));
    span.end();
    const run = runs.at(-1);
    expect([run?.inputs, run?.outputs]).toEqual([inputs, outputs]);
    expect(JSON.stringify([...(run?.metadata ?? []), run?.events])).not.toContain('SECRET');
  });

  test('is dropped beyond the payload limits, and counted in the metadata', () => {
    const { sink, runs } = notingSink({ payload: { depth: 64, width: 10_000, nodes: 100_000, bytes: 60 } });
    const { span } = logging(sink);
    for (const content of ['x'.repeat(60), 'y', 'z']) span.say(content);
    span.end();
    expect(runs.at(-1)?.inputs).not.toContain('y');
    expect(runs.at(-1)?.metadata?.get('dropped_log_records')).toBe('2');
  });

  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;

  test.each<[string, unknown, RegExp]>([
    ['a bigint', 2n, /^"2n"$/],
    ['bytes', new Uint8Array([7, 7]), /"base64":"Bwc="/],
    ['a key that names a prototype', JSON.parse('{"__proto__":{"b":1}}'), /^\{"__proto__":\{"b":1\}\}$/],
    ['more values than the limit', Array.from({ length: 20 }, () => 5), /^\[(5,){1,10}"\[Truncated[^"]*"\]$/],
    ['a cycle', cycle, /^\{"self":"\[Circular\]"\}$/],
  ])('may have %s', (_, content, expected) => {
    const { sink, runs } = notingSink({ payload: { depth: 6, width: 100, nodes: 10, bytes: 1_000 } });
    const { span } = logging(sink);
    span.say(content);
    if (content instanceof Uint8Array) content.fill(0);
    span.end();
    expect(JSON.stringify(JSON.parse(runs.at(-1)?.inputs ?? '').messages[0].content)).toMatch(expected);
  });

  test('is ignored if its span is not recorded', () => {
    const lines = logLines();
    const { logs, span } = logging(notingSink({}, false).sink);
    const record = { ...choice({ content: 'a' }), attributes: {} };
    logs.onEmit({ ...record, spanContext: { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 } });
    logs.onEmit(record);
    span.say('a');
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

  test.each(['exception', 'gen_ai.client.operation.exception'])('with the name %s is an error', (eventName) => {
    const created = logging();
    const { span, logs } = created;
    expect(logs.enabled({ eventName })).toBe(true);
    span.emit({ eventName, attributes: { ...attributes, 'exception.message': 'first' } });
    span.emit({ eventName, attributes });
    span.setStatus({ code: SpanStatusCode.ERROR }).end();
    expect(chatOf(created).error).toBe(stack);
  });

  test('yields to the exception event of its span, and alone is not an error', () => {
    const { start, recorder } = logging();
    const [failed, handled] = [start('failed'), start('handled')];
    for (const span of [failed, handled]) span.emit({ eventName: 'exception', attributes });
    failed.recordException({ name: 'TimeoutError', message: 'late' });
    failed.setStatus({ code: SpanStatusCode.ERROR });
    for (const span of [failed, handled]) span.end();
    expect(runNamed(recorder, 'failed').error).toBe('TimeoutError: late');
    expect(runNamed(recorder, 'handled').error).toBeUndefined();
  });
});

describe('the processor', () => {
  test.each(['gen_ai.user.message', 'exception'])(
    'drops late records of the name %s and logs one line',
    (eventName) => {
      const lines = logLines();
      const created = logging();
      created.span.end();
      for (const content of ['late', 'later'])
        created.span.emit({ eventName, attributes: { 'exception.type': content }, body: { content } });
      expect(chatOf(created).inputs).toEqual({});
      expect(lines).toEqual([
        'warn: log records with messages or exceptions arrived after the end of their span and are dropped.',
      ]);
    },
  );

  test('is enabled only for its own events, and ignores the others', async () => {
    const created = logging();
    const { logs, span } = created;
    expect([{}, { eventName: 'gen_ai.choice' }].map((record) => logs.enabled(record))).toEqual([true, true]);
    expect(logs.enabled({ eventName: 'order.placed' })).toBe(false);
    span.emit({ body: 'gen_ai.user.message' });
    span.emit({ eventName: 'order.placed', body: { content: 'a' } });
    span.emit({ attributes: { 'event.name': 7 }, body: { content: 'a' } });
    span.end();
    expect(chatOf(created)).toMatchObject({ inputs: {} });
  });

  test('never throws', () => {
    const lines = logLines();
    const created = logging();
    const body = {
      get content() {
        throw new Error('no');
      },
    };
    created.span.emit({ eventName: 'gen_ai.user.message', body });
    created.logs.onEmit(undefined as never);
    created.span.emit(choice({ content: 'Yes.' }));
    created.span.end();
    expect(chatOf(created).outputs).toMatchObject({ messages: [{ content: 'Yes.' }] });
    expect(lines).toEqual([
      expect.stringMatching(/^warn: RunLogRecordProcessor.onEmit failed, the application is not/),
    ]);
  });

  test('ignores records after its shutdown', async () => {
    const created = logging();
    const { logs, span } = created;
    await logs.forceFlush();
    await logs.shutdown();
    await logs.shutdown();
    expect(logs.enabled({})).toBe(false);
    span.say('Rain?');
    span.end();
    expect(chatOf(created).inputs).toEqual({});
  });
});
