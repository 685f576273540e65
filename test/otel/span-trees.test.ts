import { context, ROOT_CONTEXT, type Span, trace } from '@opentelemetry/api';
import { type Sampler, SamplingDecision, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createExporter, traceable } from '../../src/index.ts';
import { SpanRun } from '../../src/otel/span-run.ts';
import { RunSpanProcessor, type SpanLike } from '../../src/otel.ts';
import { createReceiver } from '../../src/receiver.ts';
import { compactTimestamp } from '../../src/run/time.ts';
import { recordRuns } from '../../src/testing.ts';
import { moduleText, runNode } from '../support/program.ts';
import { told } from '../support/told.ts';
import { below, inSpan, notingSink, runNamed, setUp, tree } from './set-up.ts';

const soon = () => new Promise((resolve) => setImmediate(resolve));
const otelOf = (recorder: ReturnType<typeof recordRuns>, name: string) =>
  runNamed(recorder, name).extra?.metadata?.otel as Record<string, unknown>;

/** Creates a sampler that decides by span name. Other spans are sampled. */
const deciding = (decisions: Readonly<Record<string, SamplingDecision>>): Sampler => ({
  shouldSample: (_context, _traceId, name) => ({
    decision: decisions[name] ?? SamplingDecision.RECORD_AND_SAMPLED,
  }),
});

describe('children and the times of their parents', () => {
  test('a child that ends after its parent does not change the end of its parent', () => {
    const { tracer, recorder } = setUp();
    const parent = tracer.startSpan('parent');
    const child = tracer.startSpan('child', {}, below(parent));
    parent.end();
    const end = runNamed(recorder, 'parent').end_time;
    child.end();
    expect(tree(recorder)).toEqual(['parent', '  child']);
    expect(runNamed(recorder, 'parent').end_time).toBe(end);
  });

  test('a child that starts after the end of its parent is below it', () => {
    const { tracer, recorder } = setUp();
    const parent = tracer.startSpan('parent');
    parent.end();
    const child = tracer.startSpan('child', {}, below(parent));
    tracer.startSpan('grandchild', {}, below(child)).end();
    child.end();
    expect(tree(recorder)).toEqual(['parent', '  child', '    grandchild']);
  });

  test('a child with times before its parent keeps its times', () => {
    const { tracer, recorder } = setUp();
    const parent = tracer.startSpan('parent', { startTime: [1_795_159_360, 0] });
    const child = tracer.startSpan('child', { startTime: [1_795_159_300, 5_000] }, below(parent));
    child.end([1_795_159_310, 0]);
    parent.end([1_795_159_370, 0]);
    const { id, dotted_order } = runNamed(recorder, 'parent');
    const late = runNamed(recorder, 'child');
    expect(late).toMatchObject({
      parent_run_id: id,
      start_time: '2026-11-20T07:21:40.000005Z',
      end_time: '2026-11-20T07:21:50.000000Z',
      dotted_order: `${dotted_order}.${compactTimestamp(1_795_159_300_000_005)}${late.id}`,
    });
  });

  test('an end before the start becomes the start', () => {
    const { sink, runs } = notingSink();
    const processor = new RunSpanProcessor({ exporter: sink });
    onTestFinished(() => processor.shutdown());
    const span = finished({ startTime: [1_795_159_360, 0], endTime: [1_795_159_300, 0] });
    processor.onStart(span, ROOT_CONTEXT);
    processor.onEnd(span);
    expect(runs.at(-1)?.endTime).toBe('2026-11-20T07:22:40.000000Z');
  });
});

describe('a span that never ends', () => {
  test('is interrupted at the shutdown of its provider, with its attributes at this time', async () => {
    const { tracer, provider, recorder } = setUp();
    const span = tracer.startSpan('open', { attributes: { 'input.value': 'hi' } });
    span.setAttributes({ 'output.value': 'ho', 'shop.user': 'ann' });
    await provider.shutdown();
    span.setAttribute('shop.user', 'bob');
    span.end();
    const { end_time = '', start_time, ...run } = runNamed(recorder, 'open');
    expect(run).toMatchObject({
      error: 'Interrupted: the span had not ended when its provider was shut down',
      inputs: { input: 'hi' },
      outputs: { output: 'ho' },
      extra: { metadata: { 'shop.user': 'ann', end_reason: 'interrupted' } },
    });
    expect(end_time >= start_time).toBe(true);
  });

  test('is interrupted with the fields of its start if the application has released the span', () => {
    // A reference to a released span.
    vi.stubGlobal(
      'WeakRef',
      class {
        deref() {}
      },
    );
    onTestFinished(() => void vi.unstubAllGlobals());
    const { sink, runs } = notingSink();
    const span = finished({ attributes: { 'input.value': 'hi' } });
    const start = { ids: span.spanContext(), parentIds: undefined, parent: undefined, sink, project: undefined };
    const run = new SpanRun(span, start);
    run.interrupt('no more');
    run.end(span);
    expect(runs).toHaveLength(2);
    expect(runs[1]).toMatchObject({
      error: 'Interrupted: no more',
      inputs: '{"input":"hi"}',
      endTime: expect.any(String),
    });
    expect(runs[1]?.metadata?.get('end_reason')).toBe('"interrupted"');
  });

  test('keeps its error', async () => {
    const { tracer, provider, recorder } = setUp();
    tracer.startSpan('open').setStatus({ code: 2, message: 'no tea' });
    await provider.shutdown();
    expect(runNamed(recorder, 'open').error).toBe('no tea');
  });

  test('is not kept in memory after its start is recorded', async () => {
    const program = `
      import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
      const { RunSpanProcessor } = await import('./dist/otel.js');
      const { recordRuns } = await import('./dist/testing.js');
      const recorder = recordRuns();
      const tracer = new BasicTracerProvider({ spanProcessors: [new RunSpanProcessor()] }).getTracer('t');
      const ref = new WeakRef(tracer.startSpan('open'));
      const { length } = recorder.runs;
      for (const untilMs = performance.now() + 10_000; ref.deref() !== undefined && performance.now() < untilMs; ) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        gc();
      }
      console.log(ref.deref() === undefined, length);`;
    expect(await runNode(['--expose-gc', ...moduleText(program)])).toMatchObject({ stdout: 'true 1\n' });
  });

  test("that exceeds the exporter's limit of open runs has its outputs when it ends", async () => {
    told();
    const receiver = await createReceiver();
    const exporter = createExporter({ endpoint: receiver.url, apiKey: 'key', limits: { openRuns: 1 } });
    onTestFinished(() => receiver.close());
    const { tracer, provider } = setUp({ processors: [new RunSpanProcessor({ exporter })] });
    const first = tracer.startSpan('first', { attributes: { 'input.value': 'hi' } });
    tracer.startSpan('second').end();
    first.setAttribute('output.value', 'ho');
    first.end();
    await provider.forceFlush();
    await exporter.close();
    const [run] = await receiver.runs({ name: 'first' });
    expect(run).toMatchObject({ inputs: { input: 'hi' }, outputs: { output: 'ho' }, error: '' });
    expect(exporter.stats()).toMatchObject({ created: 2, sent: 2, dropped: 0 });
  });
});

test('a span that ends twice keeps its first end', () => {
  const { sink, asked, runs } = notingSink();
  const processor = new RunSpanProcessor({ exporter: sink });
  onTestFinished(() => processor.shutdown());
  const span = finished();
  processor.onStart(span, ROOT_CONTEXT);
  processor.onEnd(span);
  processor.onEnd({ ...span, endTime: [1_795_159_399, 0] });
  expect(asked).toEqual(['start a', 'end a']);
  expect(runs.at(-1)?.endTime).toBe('2026-11-20T07:22:41.000000Z');
});

describe('one trace of OpenTelemetry', () => {
  const remote = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1, isRemote: true };

  test('with several first spans becomes several traces with its id in the metadata', () => {
    const { tracer, recorder } = setUp();
    const served = trace.setSpanContext(ROOT_CONTEXT, remote);
    const a = tracer.startSpan('a', {}, served);
    tracer.startSpan('below a', {}, below(a)).end();
    tracer.startSpan('b', {}, served).end();
    a.end();
    expect(tree(recorder)).toEqual(['a', '  below a', 'b']);
    expect(runNamed(recorder, 'a').trace_id).not.toBe(runNamed(recorder, 'b').trace_id);
    for (const name of ['a', 'below a', 'b']) expect(otelOf(recorder, name).trace_id).toBe(remote.traceId);
  });

  test('marks only the span with a remote parent', () => {
    const { tracer, recorder } = setUp();
    const served = tracer.startSpan('served', {}, trace.setSpanContext(ROOT_CONTEXT, remote));
    tracer.startSpan('inner', {}, below(served)).end();
    served.end();
    expect(otelOf(recorder, 'served')).toMatchObject({ parent_span_id: remote.spanId, parent_is_remote: true });
    expect(otelOf(recorder, 'inner')).not.toHaveProperty('parent_is_remote');
    expect(otelOf(recorder, 'inner').parent_span_id).toBe(served.spanContext().spanId);
  });
});

test('a link is not a parent, and is recorded with its attributes', () => {
  const { tracer, recorder } = setUp();
  const cause = tracer.startSpan('cause');
  const links = [{ context: cause.spanContext(), attributes: { why: 'queue' } }];
  tracer.startSpan('effect', { links }).end();
  cause.end();
  expect(tree(recorder)).toEqual(['cause', 'effect']);
  const { traceId, spanId } = cause.spanContext();
  expect(otelOf(recorder, 'effect').links).toEqual([
    { trace_id: traceId, span_id: spanId, attributes: { why: 'queue' } },
  ]);
});

describe('a sampler', () => {
  test('moves the children of unsampled spans up', async () => {
    const { RECORD } = SamplingDecision;
    const { tracer, recorder } = setUp({ sampler: deciding({ hidden: RECORD, 'hidden too': RECORD }) });
    await inSpan(tracer, 'a', () =>
      inSpan(tracer, 'hidden', () => inSpan(tracer, 'hidden too', () => inSpan(tracer, 'b', soon))),
    );
    await inSpan(tracer, 'hidden', () => inSpan(tracer, 'c', soon));
    expect(tree(recorder)).toEqual(['a', '  b', 'c']);
  });

  test('starts a trace below a dropped span, with the ids of this span', async () => {
    const { tracer, recorder } = setUp({ sampler: deciding({ dropped: SamplingDecision.NOT_RECORD }) });
    let spanId = '';
    await inSpan(tracer, 'a', () =>
      inSpan(tracer, 'dropped', (span) => {
        spanId = span.spanContext().spanId;
        return inSpan(tracer, 'b', soon);
      }),
    );
    expect(tree(recorder)).toEqual(['a', 'b']);
    expect(otelOf(recorder, 'b').parent_span_id).toBe(spanId);
  });

  test('keeps the children of a dropped span below the traced function around it', async () => {
    const { tracer, recorder } = setUp({ sampler: deciding({ dropped: SamplingDecision.NOT_RECORD }) });
    await traceable(() => inSpan(tracer, 'dropped', () => inSpan(tracer, 'b', soon)), { name: 'run' })();
    expect(tree(recorder)).toEqual(['run', '  b']);
  });

  test('lets a traced function in an unsampled first span start a trace', async () => {
    const { tracer, recorder } = setUp({ sampler: deciding({ hidden: SamplingDecision.RECORD }) });
    await inSpan(tracer, 'hidden', () => traceable(() => inSpan(tracer, 'b', soon), { name: 'run' })());
    expect(tree(recorder)).toEqual(['run', '  b']);
  });
});

describe('two processors', () => {
  test('with separate exporters have separate trees', async () => {
    const [one, two] = [recordRuns(), recordRuns()];
    for (const recorder of [one, two]) onTestFinished(() => recorder.stop());
    const { tracer } = setUp({
      processors: [
        new RunSpanProcessor({ exporter: one.exporter, shouldExport: ({ name }) => name !== 'a' }),
        new RunSpanProcessor({ exporter: two.exporter, shouldExport: ({ name }) => name !== 'b' }),
      ],
    });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', () => inSpan(tracer, 'c', soon)));
    expect(tree(one)).toEqual(['b', '  c']);
    expect(tree(two)).toEqual(['a', '  c']);
  });

  test('with the same exporter record each span once if one of them exports it', async () => {
    const { tracer, recorder } = setUp({
      processors: [
        new RunSpanProcessor({ shouldExport: ({ name }) => name !== 'a' }),
        new RunSpanProcessor({ shouldExport: ({ name }) => name !== 'b' }),
      ],
    });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(recorder.runs.map(({ name }) => name).toSorted()).toEqual(['a', 'b']);
  });
});

test('a wrapper, a proxy or a span context is the parent that its ids name', () => {
  const { tracer, recorder } = setUp();
  const span = tracer.startSpan('parent');
  const wrapper = { spanContext: () => span.spanContext(), isRecording: () => true } as Span;
  context.with(trace.setSpan(context.active(), wrapper), () => {
    tracer.startSpan('by wrapper').end();
    traceable(() => 1, { name: 'run' })();
  });
  tracer.startSpan('by proxy', {}, below(new Proxy(span, {}))).end();
  tracer.startSpan('by span context', {}, trace.setSpanContext(ROOT_CONTEXT, span.spanContext())).end();
  span.end();
  expect(tree(recorder)).toEqual(['parent', '  by proxy', '  by span context', '  by wrapper', '  run']);
});

test.each([
  ['an open span is the parent that its ids name, however many spans have ended since', 500, false],
  ['one of the last 50 spans is the parent that its ids name, even if it has ended', 49, true],
])('a wrapper around %s', (_, others, hasEnded) => {
  const { tracer, recorder } = setUp();
  for (let index = 0; index < 75; index++) tracer.startSpan('before').end();
  const span = tracer.startSpan('parent');
  if (hasEnded) span.end();
  for (let index = 0; index < others; index++) tracer.startSpan('other').end();
  const wrapper = { spanContext: () => span.spanContext(), isRecording: () => true } as Span;
  tracer.startSpan('child', {}, trace.setSpan(context.active(), wrapper)).end();
  expect(runNamed(recorder, 'child').parent_run_id).toBe(runNamed(recorder, 'parent').id);
});

test('the end of a wrapper ends the run of the wrapped span', () => {
  const { sink, asked } = notingSink();
  const processor = new RunSpanProcessor({ exporter: sink });
  onTestFinished(() => processor.shutdown());
  const span = finished();
  processor.onStart(span, ROOT_CONTEXT);
  processor.onEnd({ ...span });
  expect(asked).toEqual(['start a', 'end a']);
});

/** Creates a finished span of SDK 2.x. */
function finished(given: Partial<SpanLike> = {}): SpanLike & Parameters<SpanProcessor['onStart']>[0] {
  const ids = { traceId: 'c'.repeat(32), spanId: 'd'.repeat(16), traceFlags: 1 };
  return {
    name: 'a',
    kind: 0,
    spanContext: () => ids,
    startTime: [1_795_159_360, 0],
    endTime: [1_795_159_361, 0],
    status: { code: 0 },
    attributes: {},
    links: [],
    events: [],
    resource: { attributes: {} },
    ...given,
  } as SpanLike & Parameters<SpanProcessor['onStart']>[0];
}
