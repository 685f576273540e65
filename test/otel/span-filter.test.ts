import { describe, expect, test } from 'vitest';
import { traceable } from '../../src/index.ts';
import { isExported } from '../../src/otel/span-filter.ts';
import { RunSpanProcessor, type ShouldExport, type SpanLike } from '../../src/otel.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { told } from '../support/told.ts';
import { inSpan, runNamed, setUp, tree } from './set-up.ts';

const soon = () => new Promise((resolve) => setImmediate(resolve));
const filtering = (shouldExport: unknown, second?: RunSpanProcessor) =>
  setUp({
    processors: [new RunSpanProcessor({ shouldExport: shouldExport as ShouldExport }), ...(second ? [second] : [])],
  });
const except =
  (...names: string[]) =>
  ({ name }: SpanLike) =>
    !names.includes(name);

describe('a skipped span', () => {
  test('leaves its children to the nearest exported span above', async () => {
    const { tracer, recorder } = filtering(except('b', 'c'));
    await inSpan(tracer, 'a', () =>
      inSpan(tracer, 'b', () => inSpan(tracer, 'c', () => inSpan(tracer, 'd', () => inSpan(tracer, 'e', soon)))),
    );
    expect(tree(recorder)).toEqual(['a', '  d', '    e']);
    const { id } = runNamed(recorder, 'a');
    expect(runNamed(recorder, 'd')).toMatchObject({ parent_run_id: id, trace_id: id });
  });

  test('is the parent of its children in the metadata', async () => {
    const { tracer, recorder } = filtering(except('b'));
    let spanId = '';
    await inSpan(tracer, 'a', () =>
      inSpan(tracer, 'b', (span) => {
        spanId = span.spanContext().spanId;
        return inSpan(tracer, 'c', soon);
      }),
    );
    expect(runNamed(recorder, 'c').extra?.metadata?.otel).toMatchObject({ parent_span_id: spanId });
  });

  test('leaves its children to a traced function above, and its traced functions to a span above', async () => {
    const { tracer, recorder } = filtering(except('b', 'd'));
    const run = traceable(() => inSpan(tracer, 'd', () => inSpan(tracer, 'e', soon)), { name: 'c' });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', () => run()));
    expect(tree(recorder)).toEqual(['a', '  c', '    e']);
  });

  test('at the root leaves its children as roots', async () => {
    const { tracer, recorder } = filtering(except('GET /'));
    await inSpan(tracer, 'GET /', async () => {
      await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
      await traceable(() => inSpan(tracer, 'd', soon), { name: 'c' })();
    });
    expect(tree(recorder)).toEqual(['a', '  b', 'c', '  d']);
  });

  test('becomes a run if `shouldExport` accepts it at its end', async () => {
    const { tracer, recorder } = filtering(({ attributes }: SpanLike) => attributes.wanted === true);
    const span = tracer.startSpan('b');
    span.setAttributes({ wanted: true, 'input.value': 'hi' });
    span.end();
    expect(runNamed(recorder, 'b')).toMatchObject({ inputs: { input: 'hi' }, end_time: expect.any(String) });
  });

  test('keeps its parent if `shouldExport` accepts it at its end', async () => {
    const { tracer, recorder } = filtering(
      ({ name, attributes }: SpanLike) => name !== 'b' || attributes.wanted === true,
    );
    await inSpan(tracer, 'a', () =>
      inSpan(tracer, 'b', (span) => {
        span.setAttribute('wanted', true);
        return inSpan(tracer, 'c', soon);
      }),
    );
    expect(tree(recorder)).toEqual(['a', '  b', '  c']);
  });

  test('is recorded once if another processor with the same exporter records it', async () => {
    const late = ({ attributes }: SpanLike) => attributes.wanted === true;
    const { tracer, recorder } = filtering(late, new RunSpanProcessor());
    await inSpan(tracer, 'a', (span) => span.setAttribute('wanted', true));
    expect(tree(recorder)).toEqual(['a']);
  });

  test('is not recorded if it ends after the shutdown', async () => {
    const { tracer, provider, recorder } = filtering(({ attributes }: SpanLike) => attributes.wanted === true);
    const span = tracer.startSpan('a');
    span.setAttribute('wanted', true);
    await provider.shutdown();
    span.end();
    expect(recorder.runs).toEqual([]);
  });
});

describe('an invalid `shouldExport`', () => {
  test.each([
    [
      'throws',
      () => {
        throw new Error('no');
      },
      'warn: shouldExport failed, the application is not affected: no',
    ],
    [
      'returns a promise',
      () => Promise.reject(new Error('no')),
      'warn: shouldExport: expected true or false synchronously, got a promise; the span is kept.',
    ],
    [
      'returns nothing',
      () => undefined,
      'warn: shouldExport: expected true or false synchronously, got undefined; the span is kept.',
    ],
  ])('that %s keeps the span and is logged once', async (_, shouldExport, line) => {
    const lines = told();
    const rejections = unhandledRejections();
    const { tracer, recorder } = filtering(shouldExport);
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(tree(recorder)).toEqual(['a', '  b']);
    expect(lines).toEqual([line]);
    expect(await rejections()).toEqual([]);
  });

  test('that is neither a function nor llm is ignored', async () => {
    const lines = told();
    const { tracer, recorder } = filtering('all');
    await inSpan(tracer, 'a', soon);
    expect(tree(recorder)).toEqual(['a']);
    expect(lines).toEqual(["warn: RunSpanProcessor: expected `shouldExport` to be 'llm' or a function; left out."]);
  });
});

describe('the filter llm', () => {
  const span = (attributes: object, scope = 'http', field = 'instrumentationScope') =>
    ({ attributes, [field]: { name: scope } }) as unknown as SpanLike;

  test.each([
    'gen_ai.operation.name',
    'llm.model_name',
    'ai.operationId',
    'traceloop.span.kind',
    'openinference.span.kind',
    'langsmith.span.kind',
    'langfuse.observation.type',
    'runspan.run_type',
    'mcp.method.name',
    'input.value',
  ])('keeps a span with %s', (key) => {
    expect(isExported(span({ 'http.request.method': 'GET', [key]: 'x' }), 'llm')).toBe(true);
  });

  test.each([
    'ai',
    'gen_ai',
    'langsmith',
    'langfuse-sdk',
    '@ai-sdk/otel',
    '@arizeai/openinference-instrumentation-langchain',
    '@traceloop/instrumentation-openai',
    '@opentelemetry/instrumentation-openai',
  ])('keeps a span of the scope %s in SDK 1.x and 2.x', (scope) => {
    expect(isExported(span({}, scope), 'llm')).toBe(true);
    expect(isExported(span({}, scope, 'instrumentationLibrary'), 'llm')).toBe(true);
  });

  test.each([
    [
      { 'http.request.method': 'GET', 'url.full': 'https://a.example/ai.gen_ai' },
      '@opentelemetry/instrumentation-http',
    ],
    [{ 'db.system.name': 'postgresql' }, '@opentelemetry/instrumentation-pg'],
    [{ airline: 'x', ai: 'x', 'air.line': 'x', 'input.size': 1, 'llms.count': 1 }, 'aid'],
    [{}, 'express'],
  ])('skips a span with %j of the scope %s', (attributes, scope) => {
    expect(isExported(span(attributes, scope), 'llm')).toBe(false);
  });

  test('checks the attributes of a span without a scope', () => {
    expect(isExported({ attributes: {} } as SpanLike, 'llm')).toBe(false);
    expect(isExported({ attributes: { 'llm.system': 'openai' } } as unknown as SpanLike, 'llm')).toBe(true);
  });

  test('skips HTTP spans, and keeps a span that gets LLM attributes later', async () => {
    const { tracer, recorder } = filtering('llm');
    await inSpan(tracer, 'POST /ask', async () => {
      const chat = tracer.startSpan('chat', { attributes: { 'gen_ai.operation.name': 'chat' } });
      chat.end();
      await inSpan(tracer, 'agent', (agent) => agent.setAttribute('traceloop.span.kind', 'agent'));
      await inSpan(tracer, 'GET /models', soon);
    });
    expect(tree(recorder)).toEqual(['agent', 'chat']);
  });
});
