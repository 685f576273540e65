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

describe('the tree of runs', () => {
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

  test('is separate for concurrent traces', async () => {
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

  test('uses the parent of the given context if there is no context manager', () => {
    const { tracer, recorder } = setUp({ contextManager: false });
    const a = tracer.startSpan('a');
    const b = tracer.startSpan('b', {}, trace.setSpan(ROOT_CONTEXT, a));
    tracer.startSpan('other').end();
    b.end();
    a.end();
    expect(tree(recorder)).toEqual(['a', '  b', 'other']);
  });

  test('starts again with a root span', async () => {
    const { tracer, recorder } = setUp();
    await inSpan(tracer, 'a', () => tracer.startSpan('b', { root: true }).end());
    expect(tree(recorder)).toEqual(['a', 'b']);
  });
});

describe('the destination of runs', () => {
  test('is the exporter of the processor, not the configured exporter', async () => {
    const { sink, asked } = notingSink();
    const { tracer, recorder } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    await inSpan(tracer, 'a', soon);
    expect(asked).toEqual(['start a', 'end a']);
    expect(recorder.runs).toEqual([]);
  });

  test('receives the children of a refused run as refused, and no ends', async () => {
    const { sink, asked } = notingSink({}, false);
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(asked).toEqual(['start a', 'start b (refused)']);
  });

  test('is none while tracing is off', async () => {
    const { tracer, recorder } = setUp();
    recorder.stop();
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(recorder.runs).toEqual([]);
  });

  test.each([
    ['is the same for one processor', (processor: RunSpanProcessor) => processor],
    ['is the same for two processors', () => new RunSpanProcessor()],
  ])('%s, so that each span is recorded once', async (_, second) => {
    const first = new RunSpanProcessor();
    const { tracer, recorder } = setUp({ processors: [first, second(first)] });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(tree(recorder)).toEqual(['a', '  b']);
    expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
  });

  test('is every exporter if each processor has its own', async () => {
    const [one, two] = [recordRuns(), recordRuns()];
    const processors = [one, two].map(({ exporter }) => new RunSpanProcessor({ exporter }));
    const { tracer, recorder } = setUp({ processors: [...processors, new RunSpanProcessor()] });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(tree(one)).toEqual(['a', '  b']);
    expect(two.runs).toEqual(one.runs);
    expect(recorder.runs).toEqual(one.runs);
  });

  test('has the project of the processor or of the first span', async () => {
    const { tracer, recorder } = setUp({ processors: [new RunSpanProcessor({ project: 'shop' })] });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    tracer.startSpan('c', { attributes: { 'runspan.project': 'till' } }).end();
    const projects = ['a', 'b', 'c'].map((name) => runNamed(recorder, name).session_name);
    expect(projects).toEqual(['shop', 'shop', 'till']);
  });
});

describe('sampling', () => {
  test('skips the whole trace of a skipped span', async () => {
    const { sink, asked } = notingSink({ sampling: () => false });
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const inner = traceable(() => inSpan(tracer, 'below', soon), { name: 'inner', exporter: sink });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', () => inner()));
    expect(asked).toEqual(['skip', 'skip', 'skip', 'skip']);
  });

  test('receives the id and the name of the run of the first span', async () => {
    const starts: TraceStart[] = [];
    const { sink, runs } = notingSink({ sampling: (start) => starts.push(start) > 0 });
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink, project: 'shop' })] });
    await inSpan(tracer, 'a', () => inSpan(tracer, 'b', soon));
    expect(starts).toEqual([{ traceId: runs[0]?.id, name: 'a', runType: 'chain', project: 'shop' }]);
  });

  test('skips spans below a skipped run', async () => {
    const { sink, asked } = notingSink({ sampling: () => false });
    const { tracer } = setUp({ processors: [new RunSpanProcessor()] });
    await traceable(() => inSpan(tracer, 'b', soon), { exporter: sink })();
    expect(asked).toEqual(['skip', 'skip']);
  });
});

describe('tags and metadata', () => {
  test('of a run are inherited by the spans and runs below it', async () => {
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
