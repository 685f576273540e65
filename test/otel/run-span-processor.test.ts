import { context, ROOT_CONTEXT, type Span, trace } from '@opentelemetry/api';
import { type Sampler, SamplingDecision, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, expectTypeOf, onTestFinished, test, vi } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { traceable } from '../../src/instrument/traceable.ts';
import { RunSpanProcessor, type SpanLike } from '../../src/otel.ts';
import type { TraceStart } from '../../src/run/sink.ts';
import { recordRuns } from '../../src/testing.ts';
import { below, inSpan, notingSink, runNamed, setUp, tree } from './set-up.ts';

const soon = () => new Promise((resolve) => setImmediate(resolve));

/** Spans of these names are recorded and not sampled. */
const unsampled = (...names: string[]): Sampler => ({
  shouldSample: (_context, _traceId, name) => ({
    decision: names.includes(name) ? SamplingDecision.RECORD : SamplingDecision.RECORD_AND_SAMPLED,
  }),
});

test('the processor fits a provider of SDK 2.x', () => {
  expectTypeOf<RunSpanProcessor>().toExtend<SpanProcessor>();
  expectTypeOf<Parameters<SpanProcessor['onEnd']>[0]>().toExtend<SpanLike>();
});

describe('the tree', () => {
  test('follows the active span across asynchronous code', async () => {
    const { tracer, recorder } = setUp();
    await inSpan(tracer, 'a', async () => {
      await soon();
      await inSpan(tracer, 'b', async () => {
        await soon();
        await inSpan(tracer, 'c', soon);
      });
      await inSpan(tracer, 'd', soon);
    });
    expect(tree(recorder)).toEqual(['a', '  b', '    c', '  d']);
    const { id, trace_id, dotted_order } = runNamed(recorder, 'a');
    expect(trace_id).toBe(id);
    expect(runNamed(recorder, 'b')).toMatchObject({ trace_id: id, parent_run_id: id });
    expect(runNamed(recorder, 'b').dotted_order.startsWith(`${dotted_order}.`)).toBe(true);
  });

  test('is one per trace when traces run at the same time', async () => {
    const { tracer, recorder } = setUp();
    const work = (index: number) =>
      inSpan(tracer, `root ${index}`, async () => {
        await soon();
        await inSpan(tracer, `child ${index}`, soon);
      });
    await Promise.all([work(1), work(2), work(3)]);
    for (const index of [1, 2, 3]) {
      const root = runNamed(recorder, `root ${index}`);
      expect(runNamed(recorder, `child ${index}`)).toMatchObject({ parent_run_id: root.id, trace_id: root.id });
    }
  });

  test('takes the parent from the context that is passed, with no context manager', () => {
    const { tracer, recorder } = setUp({ contextManager: false });
    const a = tracer.startSpan('a');
    const b = tracer.startSpan('b', {}, trace.setSpan(ROOT_CONTEXT, a));
    tracer.startSpan('other').end();
    b.end();
    a.end();
    expect(tree(recorder)).toEqual(['a', '  b', 'other']);
  });

  test('has children that start after their parent has ended, and those that end after it', () => {
    const { tracer, recorder } = setUp();
    const parent = tracer.startSpan('parent');
    const late = tracer.startSpan('ends late', {}, below(parent));
    parent.end();
    tracer.startSpan('starts late', {}, below(parent)).end();
    late.end();
    expect(tree(recorder)).toEqual(['parent', '  ends late', '  starts late']);
    expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
  });

  test('begins anew with a span that is started as a root', async () => {
    const { tracer, recorder } = setUp();
    await inSpan(tracer, 'a', () => tracer.startSpan('b', { root: true }).end());
    expect(tree(recorder)).toEqual(['a', 'b']);
  });

  test('finds a parent that stands in the context as a wrapper of the same ids', () => {
    const { tracer, recorder } = setUp();
    const span = tracer.startSpan('parent');
    const proxy = new Proxy(span, {});
    const wrapped = { spanContext: () => span.spanContext() } as Span;
    tracer.startSpan('by proxy', {}, below(proxy)).end();
    tracer.startSpan('by wrapper', {}, below(wrapped)).end();
    tracer.startSpan('by span context', {}, trace.setSpanContext(ROOT_CONTEXT, span.spanContext())).end();
    expect(tree(recorder)).toEqual(['parent', '  by proxy', '  by span context', '  by wrapper']);
  });

  test('starts with a span whose parent is remote, which keeps the ids of OpenTelemetry', () => {
    const { tracer, recorder } = setUp();
    const remote = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1, isRemote: true };
    tracer.startSpan('served', {}, trace.setSpanContext(ROOT_CONTEXT, remote)).end();
    const { id, trace_id, parent_run_id, extra } = runNamed(recorder, 'served');
    expect({ trace_id, parent_run_id }).toEqual({ trace_id: id, parent_run_id: undefined });
    expect(extra?.metadata?.otel).toMatchObject({
      trace_id: 'a'.repeat(32),
      parent_span_id: 'b'.repeat(16),
      parent_is_remote: true,
    });
  });

  test('leaves out what is recorded but not sampled, and moves up what is below', async () => {
    const { tracer, recorder } = setUp({ sampler: unsampled('hidden', 'hidden too') });
    await inSpan(tracer, 'a', () =>
      inSpan(tracer, 'hidden', () => inSpan(tracer, 'hidden too', () => inSpan(tracer, 'b', soon))),
    );
    await inSpan(tracer, 'hidden', () => inSpan(tracer, 'c', soon));
    expect(tree(recorder)).toEqual(['a', '  b', 'c']);
  });
});

describe('where runs go', () => {
  test('the exporter of the processor takes them, and nothing goes to the configured one', async () => {
    const { sink, asked } = notingSink();
    const { tracer, recorder } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    await inSpan(tracer, 'a', soon);
    expect(asked).toEqual(['start a', 'end a']);
    expect(recorder.runs).toEqual([]);
  });

  test('what is below a refused run is refused too, and its end is not told', async () => {
    const { sink, asked } = notingSink({}, false);
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(asked).toEqual(['start a', 'start b (refused)']);
  });

  test('with tracing off nothing is recorded', async () => {
    const { tracer, recorder } = setUp();
    recorder.stop();
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(recorder.runs).toEqual([]);
  });

  test.each([
    ['one processor', (processor: RunSpanProcessor) => processor],
    ['two processors', () => new RunSpanProcessor()],
  ])('%s registered twice record each span once', async (_, second) => {
    const first = new RunSpanProcessor();
    const { tracer, recorder } = setUp({ processors: [first, second(first)] });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(tree(recorder)).toEqual(['a', '  b']);
    expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
  });

  test('two processors with exporters of their own record a copy each', async () => {
    const [one, two] = [recordRuns(), recordRuns()];
    const processors = [one, two].map(({ exporter }) => new RunSpanProcessor({ exporter }));
    const { tracer, recorder } = setUp({ processors: [...processors, new RunSpanProcessor()] });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(tree(one)).toEqual(['a', '  b']);
    expect(two.runs).toEqual(one.runs);
    expect(recorder.runs).toEqual(one.runs);
  });

  test('a project that is given is that of traces which start with a span', async () => {
    const { tracer, recorder } = setUp({ processors: [new RunSpanProcessor({ project: 'shop' })] });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    tracer.startSpan('c', { attributes: { 'runspan.project': 'till' } }).end();
    const projects = ['a', 'b', 'c'].map((name) => runNamed(recorder, name).session_name);
    expect(projects).toEqual(['shop', 'shop', 'till']);
  });
});

describe('sampling', () => {
  test('leaves a trace that starts with a span out whole, runs in it and spans below those too', async () => {
    const { sink, asked } = notingSink({ sampling: () => false });
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const inner = traceable(() => inSpan(tracer, 'below', soon), { name: 'inner', exporter: sink });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', () => inner()));
    expect(asked).toEqual(['skip', 'skip', 'skip', 'skip']);
  });

  test('is decided by the id and the name that the run of the first span gets', async () => {
    const starts: TraceStart[] = [];
    const { sink, runs } = notingSink({ sampling: (start) => starts.push(start) > 0 });
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink, project: 'shop' })] });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(starts).toEqual([{ traceId: runs[0]?.id, name: 'a', runType: 'chain', project: 'shop' }]);
  });

  test('leaves spans out below a run that is left out', async () => {
    const { sink, asked } = notingSink({ sampling: () => false });
    const { tracer } = setUp({ processors: [new RunSpanProcessor()] });
    await traceable(() => inSpan(tracer, 'b', soon), { exporter: sink })();
    expect(asked).toEqual(['skip', 'skip']);
  });
});

describe('tags and metadata', () => {
  test('of a run are those of the spans below it, and of the runs below these', async () => {
    const { tracer, recorder } = setUp();
    const leaf = traceable(() => 1, { name: 'leaf' });
    const inside = (span: Span) => {
      span.setAttributes({ 'runspan.tags': ['own'], 'shop.user': 'b' });
      return leaf();
    };
    const options = { name: 'outer', tags: ['t'], metadata: { user: 'a' } };
    await traceable(() => inSpan(tracer, 'span', inside), options)();
    const metadata = (name: string) => runNamed(recorder, name).extra?.metadata;
    expect(runNamed(recorder, 'span').tags).toEqual(['t', 'own']);
    expect(metadata('span')).toMatchObject({ user: 'a', 'shop.user': 'b' });
    expect([runNamed(recorder, 'leaf').tags, metadata('leaf')]).toEqual([['t'], { user: 'a' }]);
  });
});

describe('the life of a processor', () => {
  test('forceFlush of the provider flushes the exporter, and that of every other run below', async () => {
    const { sink, asked } = notingSink();
    const { provider } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    await provider.forceFlush();
    expect(asked).toEqual(['flush']);
  });

  test('shutdown of the provider flushes once and leaves the exporter open', async () => {
    const { sink, asked } = notingSink();
    const { tracer, provider } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const open = tracer.startSpan('open');
    await provider.shutdown();
    await provider.shutdown();
    tracer.startSpan('late').end();
    open.end();
    expect(asked).toEqual(['start open', 'end open', 'flush']);
  });

  test('an option that does not hold is told and left out', async () => {
    const told = vi.spyOn(console, 'error').mockReturnValue();
    onTestFinished(() => told.mockRestore());
    diagnostics.forgetPlaces();
    const wrong = { exporter: 'mine', sampled: true } as object;
    const { tracer, recorder } = setUp({ processors: [new RunSpanProcessor(wrong)] });
    await inSpan(tracer, 'a', soon);
    expect(told.mock.calls.flat()).toEqual([
      'runspan: RunSpanProcessor: expected `exporter` to be the result of createExporter(); left out.',
      'runspan: RunSpanProcessor: unknown option `sampled`; left out.',
    ]);
    expect(tree(recorder)).toEqual(['a']);
  });

  test('nothing reaches the application when a sink, a span or its attributes throw', () => {
    const told = vi.spyOn(console, 'error').mockReturnValue();
    onTestFinished(() => told.mockRestore());
    const { sink } = notingSink();
    const fail = () => {
      throw new Error('no');
    };
    const { tracer, recorder } = setUp({
      processors: [new RunSpanProcessor({ exporter: { ...sink, start: fail, end: fail } }), new RunSpanProcessor()],
    });
    const span = tracer.startSpan('a');
    Object.defineProperty((span as unknown as SpanLike).attributes, 'input.value', { enumerable: true, get: fail });
    span.end();
    const processor = new RunSpanProcessor();
    processor.onStart({ spanContext: fail } as unknown as SpanLike, context.active());
    processor.onEnd(null as unknown as SpanLike);
    expect(runNamed(recorder, 'a').end_time).toBeDefined();
  });
});
