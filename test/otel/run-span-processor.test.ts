import { ROOT_CONTEXT, type Span, trace } from '@opentelemetry/api';
import { SimpleSpanProcessor, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { traceable } from '../../src/instrument/traceable.ts';
import { RunSpanExporter, RunSpanProcessor, type SpanLike } from '../../src/otel.ts';
import type { TraceStart } from '../../src/run/sink.ts';
import { recordRuns } from '../../src/testing.ts';
import { told } from '../support/told.ts';
import { inSpan, notingSink, runNamed, setUp, tree } from './set-up.ts';

const soon = () => new Promise((resolve) => setImmediate(resolve));

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

  test('begins anew with a span that is started as a root', async () => {
    const { tracer, recorder } = setUp();
    await inSpan(tracer, 'a', () => tracer.startSpan('b', { root: true }).end());
    expect(tree(recorder)).toEqual(['a', 'b']);
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

test.each([
  ['RunSpanProcessor', (options: object) => new RunSpanProcessor(options)],
  ['RunSpanExporter', (options: object) => new SimpleSpanProcessor(new RunSpanExporter(options))],
])('%s logs an invalid option and ignores it', async (name, create) => {
  const lines = told();
  const { tracer, provider, recorder } = setUp({ processors: [create({ exporter: 'mine', sampled: true })] });
  await inSpan(tracer, 'a', soon);
  await provider.forceFlush();
  expect(lines).toEqual([
    `warn: ${name}: expected \`exporter\` to be the result of createExporter(); left out.`,
    `warn: ${name}: unknown option \`sampled\`; left out.`,
  ]);
  expect(tree(recorder)).toEqual(['a']);
});
