import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { describe, expect, onTestFinished, test } from 'vitest';
import { RunSpanProcessor, type ShouldExport } from '#src/otel.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { logLines } from '../support/log-lines.ts';
import { finished, inSpan, nest, notingSink, setUp, soon, tree } from './set-up.ts';

const filtering = (shouldExport: unknown) =>
  setUp({ processors: [new RunSpanProcessor({ shouldExport: shouldExport as ShouldExport })] });

const PLACE = 'warn: shouldExport';
test.each<[string, unknown, string]>([
  [
    'throws',
    () => {
      throw new Error('no');
    },
    `${PLACE} failed, the application is not affected: no`,
  ],
  [
    'returns a promise',
    () => Promise.reject(new Error('no')),
    `${PLACE}: expected true or false synchronously, got a promise; the span is kept.`,
  ],
  [
    'returns nothing',
    () => undefined,
    `${PLACE}: expected true or false synchronously, got undefined; the span is kept.`,
  ],
])('`shouldExport` keeps the spans and logs one line if it %s', async (_, shouldExport, line) => {
  const lines = logLines();
  const rejections = unhandledRejections();
  const { tracer, recorder } = filtering(shouldExport);
  await nest(tracer, 'a > b');
  expect(tree(recorder)).toEqual(['a', '  b']);
  expect(lines).toEqual([line]);
  expect(await rejections()).toEqual([]);
});

test('the filter is llm if `shouldExport` is invalid, and one line says so', async () => {
  const lines = logLines();
  const { tracer, recorder } = filtering('some');
  await nest(tracer, 'a > b');
  expect(tree(recorder)).toEqual([]);
  expect(lines).toEqual([
    "warn: RunSpanProcessor: expected `shouldExport` to be 'llm', 'all' or a function; the option is ignored.",
  ]);
});

const CHAT = { attributes: { 'gen_ai.operation.name': 'chat' } };

describe('the filter llm', () => {
  const isKept = (fields: object): boolean => {
    const { sink, asked } = notingSink();
    const processor = new RunSpanProcessor({ exporter: sink, shouldExport: 'llm' });
    onTestFinished(() => processor.shutdown());
    const span = finished({ instrumentationScope: { name: 'http' }, instrumentationLibrary: undefined, ...fields });
    processor.onStart(span, ROOT_CONTEXT);
    return asked.includes('start a');
  };

  const names = (text: string) => text.trim().split(/\s+/);

  test.each(
    names(`gen_ai.operation.name llm.model_name ai.operationId traceloop.span.kind openinference.span.kind
      langsmith.span.kind langfuse.observation.type runspan.run_type mcp.method.name input.value`),
  )('keeps a span with %s, with or without a scope', (key) => {
    const attributes = { 'http.request.method': 'GET', [key]: 'x' };
    expect([isKept({ attributes }), isKept({ attributes, instrumentationScope: undefined })]).toEqual([true, true]);
  });

  test.each(
    names(`ai gen_ai langsmith langfuse-sdk @ai-sdk/otel @arizeai/openinference-instrumentation-langchain
      @traceloop/instrumentation-openai @opentelemetry/instrumentation-openai`),
  )('keeps a span of the scope %s in SDK 1.x and 2.x', (name) => {
    const ofVersion1 = { instrumentationScope: undefined, instrumentationLibrary: { name } };
    expect([isKept({ instrumentationScope: { name } }), isKept(ofVersion1)]).toEqual([true, true]);
  });

  test.each([
    ['@opentelemetry/instrumentation-http', { 'url.full': 'https://a.example/ai.gen_ai' }],
    ['@opentelemetry/instrumentation-pg', { 'db.system.name': 'postgresql' }],
    ['aid', { airline: 'x', ai: 'x', 'air.line': 'x', 'input.size': 1, 'llms.count': 1 }],
    ['express', {}],
    [undefined, {}],
  ])('skips a span of the scope %s with %j', (name, attributes) => {
    expect(isKept({ attributes, instrumentationScope: name && { name } })).toBe(false);
  });

  test('keeps a span that gets LLM attributes later', async () => {
    const { tracer, recorder } = filtering('llm');
    await inSpan(tracer, 'POST /ask', async () => {
      tracer.startSpan('chat', CHAT).end();
      await inSpan(tracer, 'agent', (agent) => agent.setAttribute('traceloop.span.kind', 'agent'));
      await inSpan(tracer, 'GET /models', soon);
    });
    expect(tree(recorder)).toEqual(['POST /ask', '  agent', '  chat']);
  });

  test('keeps the open spans above a model call, and nothing before it starts', async () => {
    const { tracer, recorder } = filtering(undefined);
    const started: unknown[] = [];
    const { startSpan } = tracer;
    await inSpan(tracer, 'POST /ask', async (request) => {
      await inSpan(tracer, 'middleware', soon);
      await inSpan(tracer, 'handler', async () => {
        started.push(recorder.runs.length);
        startSpan.call(tracer, 'chat', CHAT).end();
        await inSpan(tracer, 'GET /after', soon);
      });
      request.setAttribute('http.response.status_code', 200);
    });
    await inSpan(tracer, 'GET /health', soon);
    expect(started).toEqual([0]);
    expect(tree(recorder)).toEqual(['POST /ask', '  handler', '    chat']);
    const [request] = recorder.runs.filter(({ name }) => name === 'POST /ask');
    expect(request).toMatchObject({ extra: { metadata: { 'http.response.status_code': 200 } } });
    const ids = recorder.runs.map(({ trace_id }) => trace_id);
    expect(new Set(ids)).toEqual(new Set([request?.id]));
  });

  test('records a span once that two processors with one exporter keep', async () => {
    const { sink, asked } = notingSink();
    const processors = (['llm', 'all'] as const).map(
      (shouldExport) => new RunSpanProcessor({ exporter: sink, shouldExport }),
    );
    const { tracer } = setUp({ processors });
    await inSpan(tracer, 'request', async () => tracer.startSpan('chat', CHAT).end());
    expect(asked).toEqual(['start request', 'start chat', 'end chat', 'end request']);
  });

  test('ends an open span at shutdown, however many spans it has kept for the model calls below', async () => {
    const { sink, asked } = notingSink();
    const { tracer, provider } = setUp({ processors: [new RunSpanProcessor({ exporter: sink, shouldExport: 'llm' })] });
    tracer.startSpan('open', CHAT);
    for (let count = 0; count < 10_100; count++) {
      const request = tracer.startSpan('request');
      tracer.startSpan('chat', CHAT, trace.setSpan(ROOT_CONTEXT, request)).end();
      request.end();
    }
    expect(asked).not.toContain('end open');
    await provider.shutdown();
    expect(asked).toContain('end open');
  });

  test('starts the trace of a model call below an ended span', async () => {
    const { tracer, recorder } = filtering(undefined);
    const outer = tracer.startSpan('outer');
    const within = trace.setSpan(ROOT_CONTEXT, outer);
    outer.end();
    tracer.startSpan('chat', CHAT, within).end();
    expect(tree(recorder)).toEqual(['chat']);
  });

  test('keeps the open spans above a traced function', async () => {
    const { tracer, recorder } = filtering(undefined);
    await nest(tracer, 'POST /ask > run answer > GET /a', () => tracer.startSpan('chat', CHAT).end());
    expect(tree(recorder)).toEqual(['POST /ask', '  run answer', '    GET /a', '      chat']);
  });

  test('keeps no span above that a function has excluded', async () => {
    const { tracer, recorder } = filtering(({ name }: { name: string }) => name === 'chat');
    await nest(tracer, 'POST /ask > run answer', () => tracer.startSpan('chat', CHAT).end());
    expect(tree(recorder)).toEqual(['run answer', '  chat']);
  });

  test.each([
    [undefined, 1],
    ['llm', 0],
    ['all', 0],
  ])('with `shouldExport` %s, %i lines say how many spans were left out', async (shouldExport, count) => {
    const lines = logLines();
    const { tracer, stop } = filtering(shouldExport);
    await nest(tracer, 'a > b > c');
    tracer.startSpan('chat', CHAT).end();
    await stop();
    expect(lines).toEqual(
      Array(count).fill(
        "warn: RunSpanProcessor: 3 spans that are not related to model calls became no runs; set `shouldExport: 'all'` to record all spans, or 'llm' to hide this line.",
      ),
    );
  });
});
