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

describe('a span that is left out', () => {
  test('hands what is below it up to the nearest span above that is kept', async () => {
    const { tracer, recorder } = filtering(except('b', 'c'));
    await inSpan(tracer, 'a', () =>
      inSpan(tracer, 'b', () => inSpan(tracer, 'c', () => inSpan(tracer, 'd', () => inSpan(tracer, 'e', soon)))),
    );
    expect(tree(recorder)).toEqual(['a', '  d', '    e']);
    const { id } = runNamed(recorder, 'a');
    expect(runNamed(recorder, 'd')).toMatchObject({ parent_run_id: id, trace_id: id });
  });

  test('names itself as the parent of what is below, in the metadata', async () => {
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

  test('hands a traced function up likewise, and takes one as the nearest above', async () => {
    const { tracer, recorder } = filtering(except('b', 'd'));
    const run = traceable(() => inSpan(tracer, 'd', () => inSpan(tracer, 'e', soon)), { name: 'c' });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', () => run()));
    expect(tree(recorder)).toEqual(['a', '  c', '    e']);
  });

  test('as the first of a trace leaves traces to begin below it', async () => {
    const { tracer, recorder } = filtering(except('GET /'));
    await inSpan(tracer, 'GET /', async () => {
      await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
      await traceable(() => inSpan(tracer, 'd', soon), { name: 'c' })();
    });
    expect(tree(recorder)).toEqual(['a', '  b', 'c', '  d']);
  });

  test('is a run after all when it is wanted at its end, above what starts from then on', async () => {
    const { tracer, recorder } = filtering(({ attributes }: SpanLike) => attributes.wanted === true);
    const span = tracer.startSpan('b');
    span.setAttributes({ wanted: true, 'input.value': 'hi' });
    span.end();
    expect(runNamed(recorder, 'b')).toMatchObject({ inputs: { input: 'hi' }, end_time: expect.any(String) });
  });

  test('is below what was above it when it is wanted at its end', async () => {
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

  test('is not recorded twice when another processor of the same exporter has recorded it', async () => {
    const late = ({ attributes }: SpanLike) => attributes.wanted === true;
    const { tracer, recorder } = filtering(late, new RunSpanProcessor());
    await inSpan(tracer, 'a', (span) => span.setAttribute('wanted', true));
    expect(tree(recorder)).toEqual(['a']);
  });

  test('is not recorded at an end that comes after the shutdown', async () => {
    const { tracer, provider, recorder } = filtering(({ attributes }: SpanLike) => attributes.wanted === true);
    const span = tracer.startSpan('a');
    span.setAttribute('wanted', true);
    await provider.shutdown();
    span.end();
    expect(recorder.runs).toEqual([]);
  });
});

describe('a function that does not answer', () => {
  test.each([
    [
      'throws',
      () => {
        throw new Error('no');
      },
      'warn: shouldExport failed, the application is not affected: no',
    ],
    [
      'answers with a promise',
      () => Promise.reject(new Error('no')),
      'warn: shouldExport: expected true or false synchronously, got a promise; the span is kept.',
    ],
    [
      'answers with nothing',
      () => undefined,
      'warn: shouldExport: expected true or false synchronously, got undefined; the span is kept.',
    ],
  ])('keeps the span when it %s, and is told once', async (_, shouldExport, line) => {
    const lines = told();
    const rejections = unhandledRejections();
    const { tracer, recorder } = filtering(shouldExport);
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(tree(recorder)).toEqual(['a', '  b']);
    expect(lines).toEqual([line]);
    expect(await rejections()).toEqual([]);
  });

  test('is left out when it is neither a function nor llm', async () => {
    const lines = told();
    const { tracer, recorder } = filtering('all');
    await inSpan(tracer, 'a', soon);
    expect(tree(recorder)).toEqual(['a']);
    expect(lines).toEqual(["warn: RunSpanProcessor: expected `shouldExport` to be 'llm' or a function; left out."]);
  });
});

describe('llm', () => {
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
  ])('keeps a span of %s, in every line of the SDK', (scope) => {
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
  ])('leaves out %j of %s', (attributes, scope) => {
    expect(isExported(span(attributes, scope), 'llm')).toBe(false);
  });

  test('a span without a scope is judged by its attributes', () => {
    expect(isExported({ attributes: {} } as SpanLike, 'llm')).toBe(false);
    expect(isExported({ attributes: { 'llm.system': 'openai' } } as unknown as SpanLike, 'llm')).toBe(true);
  });

  test('leaves out the HTTP around a model, and keeps a span that turns out to be one', async () => {
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
