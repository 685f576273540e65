import { ROOT_CONTEXT } from '@opentelemetry/api';
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
  [
    'is text',
    'all',
    "warn: RunSpanProcessor: expected `shouldExport` to be 'llm' or a function; the option is ignored.",
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

describe('the filter llm', () => {
  /** Returns whether the processor records a span with these fields. */
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
      tracer.startSpan('chat', { attributes: { 'gen_ai.operation.name': 'chat' } }).end();
      await inSpan(tracer, 'agent', (agent) => agent.setAttribute('traceloop.span.kind', 'agent'));
      await inSpan(tracer, 'GET /models', soon);
    });
    expect(tree(recorder)).toEqual(['agent', 'chat']);
  });
});
