import { context, ROOT_CONTEXT, type Span, trace } from '@opentelemetry/api';
import { SamplingDecision } from '@opentelemetry/sdk-trace-base';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startRun, traceable, withRun } from '#src/index.ts';
import { RunSpanProcessor, type RunSpanProcessorOptions } from '#src/otel.ts';
import type { TraceStart } from '#src/run/sink.ts';
import { compactTimestamp } from '#src/run/time.ts';
import { recordRuns } from '#src/testing.ts';
import { below, finished, inSpan, nest, noting, notingSink, otelOf, runNamed, setUp, soon, tree } from './set-up.ts';

const remote = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1, isRemote: true };
const { RECORD, NOT_RECORD, RECORD_AND_SAMPLED } = SamplingDecision;

const withOptions = (...options: RunSpanProcessorOptions[]) =>
  setUp({ processors: options.map((given) => new RunSpanProcessor({ shouldExport: 'all', ...given })) });

const except = (...names: string[]): RunSpanProcessorOptions => ({ shouldExport: ({ name }) => !names.includes(name) });

/** Creates a set-up whose sampler records spans named `hidden` and drops spans named `dropped`. */
const sampling = () =>
  setUp({
    sampler: {
      shouldSample: (_context, _traceId, name) => ({
        decision: { hidden: RECORD, dropped: NOT_RECORD }[name] ?? RECORD_AND_SAMPLED,
      }),
    },
  });

/** Returns the lines of a forest: `'a > b, c'` has the roots `a` and `c`. */
const linesOf = (forest: string) =>
  forest.split(', ').flatMap((chain) => chain.split(' > ').map((name, depth) => '  '.repeat(depth) + name));

test.each<[string, string, string, (() => ReturnType<typeof setUp>)?]>([
  ['spans below spans', 'a > b > c', 'a > b > c'],
  ['functions below spans', 'span > run', 'span > run'],
  ['spans below functions', 'run > span', 'run > span'],
  ['spans below functions, without a context manager', 'run > a', 'run > a', () => setUp({ contextManager: false })],
  ['spans and functions in turn', 'run 1 > a > run 2 > b > run 3', 'run 1 > a > run 2 > b > run 3'],
  [
    'children of a skipped span below the next span',
    'a > b > c > d > e',
    'a > d > e',
    () => withOptions(except('b', 'c')),
  ],
  [
    'children of a skipped span below the function around it',
    'a > b > run > d > e',
    'a > run > e',
    () => withOptions(except('b', 'd')),
  ],
  ['children of a skipped first span as roots', 'GET / > a > b', 'a > b', () => withOptions(except('GET /'))],
  ['a function in a skipped first span as a root', 'GET / > run > b', 'run > b', () => withOptions(except('GET /'))],
  ['children of an unsampled span below the next span', 'a > hidden > hidden > b', 'a > b', sampling],
  ['children of an unsampled first span as roots', 'hidden > c', 'c', sampling],
  ['children of a dropped span below the function around it', 'run > dropped > b', 'run > b', sampling],
  ['a new trace below a dropped span', 'a > dropped > b', 'a, b', sampling],
])('the tree has %s', async (_, path, forest, create = setUp) => {
  const { tracer, recorder } = create();
  await nest(tracer, path);
  const lines = linesOf(forest);
  expect(tree(recorder)).toEqual(lines);
  const roots = lines.filter((line) => !line.startsWith(' ')).map((name) => runNamed(recorder, name).id);
  expect(new Set(recorder.runs.map(({ trace_id }) => trace_id))).toEqual(new Set(roots));
});

describe('the parent of a span', () => {
  test('is separate for concurrent traces', async () => {
    const { tracer, recorder } = setUp();
    await Promise.all([1, 2, 3].map((index) => nest(tracer, `root ${index} > child ${index}`)));
    expect(tree(recorder)).toEqual(linesOf('root 1 > child 1, root 2 > child 2, root 3 > child 3'));
  });

  test.each([
    [true, 'a > b, d > run'],
    [false, 'a > b, d, run'],
  ])('is the span of the given context (context manager: %j)', async (contextManager, forest) => {
    const { tracer, recorder } = setUp({ contextManager });
    const a = tracer.startSpan('a');
    await nest(tracer, 'd > run', () => tracer.startSpan('b', {}, below(a)).end());
    expect(tree(recorder)).toEqual(linesOf(forest));
  });

  test('is the run of `withRun`', async () => {
    const { tracer, recorder } = setUp();
    await inSpan(tracer, 'span', () => withRun(startRun({ name: 'work' }), () => nest(tracer, 'inner > run')));
    expect(tree(recorder)).toEqual(['span', '  work', '    inner', '      run']);
  });

  test.each([
    ['skipped', () => withOptions(except('skipped'))],
    ['hidden', sampling],
    ['dropped', sampling],
  ])('in the metadata is the span above, even if this is %s', async (name, create) => {
    const { tracer, recorder } = create();
    let spanId = '';
    await nest(tracer, `a > ${name}`, () => {
      spanId = trace.getActiveSpan()?.spanContext().spanId ?? '';
      tracer.startSpan('b').end();
    });
    expect(otelOf(recorder, 'b').parent_span_id).toBe(spanId);
  });

  test('in another process is in the metadata of each first span, which starts a trace', () => {
    const { tracer, recorder } = setUp();
    const from = trace.setSpanContext(ROOT_CONTEXT, remote);
    const a = tracer.startSpan('a', {}, from);
    tracer.startSpan('below a', {}, below(a)).end();
    tracer.startSpan('b', {}, from).end();
    expect(tree(recorder)).toEqual(linesOf('a > below a, b'));
    const above = { trace_id: remote.traceId, parent_span_id: remote.spanId, parent_is_remote: true };
    for (const name of ['a', 'b']) expect(otelOf(recorder, name)).toMatchObject(above);
    const { parent_span_id, parent_is_remote } = otelOf(recorder, 'below a');
    expect([parent_span_id, parent_is_remote]).toEqual([a.spanContext().spanId, undefined]);
  });

  test('is the span that the ids of a wrapper, a proxy or a span context name', () => {
    const { tracer, recorder } = setUp();
    const span = tracer.startSpan('parent');
    const wrapper = { spanContext: () => span.spanContext(), isRecording: () => true } as Span;
    context.with(below(wrapper), () => {
      tracer.startSpan('by wrapper').end();
      traceable(() => 1, { name: 'run' })();
    });
    tracer.startSpan('by proxy', {}, below(new Proxy(span, {}))).end();
    tracer.startSpan('by span context', {}, trace.setSpanContext(ROOT_CONTEXT, span.spanContext())).end();
    span.end();
    expect(tree(recorder)).toEqual(['parent', '  by proxy', '  by span context', '  by wrapper', '  run']);
  });

  test.each([
    ['is open, however many spans have ended since', 500, false],
    ['is one of the last 50 that have ended', 49, true],
  ])('is found by its ids if it %s', (_, others, hasEnded) => {
    const { tracer, recorder } = setUp();
    for (let index = 0; index < 75; index++) tracer.startSpan('before').end();
    const span = tracer.startSpan('parent');
    if (hasEnded) span.end();
    for (let index = 0; index < others; index++) tracer.startSpan('other').end();
    const wrapper = { spanContext: () => span.spanContext(), isRecording: () => true } as Span;
    tracer.startSpan('child', {}, below(wrapper)).end();
    expect(runNamed(recorder, 'child').parent_run_id).toBe(runNamed(recorder, 'parent').id);
  });

  test('is not a link, which is recorded with its attributes', () => {
    const { tracer, recorder } = setUp();
    const cause = tracer.startSpan('cause');
    const links = [{ context: cause.spanContext(), attributes: { why: 'queue' } }];
    tracer.startSpan('effect', { links }).end();
    const { traceId, spanId } = cause.spanContext();
    expect(tree(recorder)).toEqual(['cause', 'effect']);
    expect(otelOf(recorder, 'effect').links).toEqual([
      { trace_id: traceId, span_id: spanId, attributes: { why: 'queue' } },
    ]);
  });
});

describe('the times of a child', () => {
  test('may be after the end of its parent, which stays unchanged', () => {
    const { tracer, recorder } = setUp();
    const parent = tracer.startSpan('parent');
    const open = tracer.startSpan('open', {}, below(parent));
    parent.end();
    const end = runNamed(recorder, 'parent').end_time;
    const late = tracer.startSpan('late', {}, below(parent));
    tracer.startSpan('later', {}, below(late)).end();
    open.end();
    expect(tree(recorder)).toEqual(['parent', '  late', '    later', '  open']);
    expect(runNamed(recorder, 'parent').end_time).toBe(end);
  });

  test('may be before those of its parent', () => {
    const { tracer, recorder } = setUp();
    const parent = tracer.startSpan('parent', { startTime: [1_795_159_360, 0] });
    tracer.startSpan('child', { startTime: [1_795_159_300, 5_000] }, below(parent)).end([1_795_159_310, 0]);
    const { id, dotted_order } = runNamed(recorder, 'parent');
    const child = runNamed(recorder, 'child');
    expect(child).toMatchObject({
      parent_run_id: id,
      start_time: '2026-11-20T07:21:40.000005Z',
      end_time: '2026-11-20T07:21:50.000000Z',
      dotted_order: `${dotted_order}.${compactTimestamp(1_795_159_300_000_005)}${child.id}`,
    });
  });
});

describe('a span that `shouldExport` accepts at its end', () => {
  const wanted = (...names: string[]): RunSpanProcessorOptions => ({
    shouldExport: ({ name, attributes }) => names.includes(name) || attributes.wanted === true,
  });

  test('becomes a run below its parent, and its children keep their parents', async () => {
    const { tracer, recorder } = withOptions(wanted('a', 'c'));
    await nest(tracer, 'a > b', () => {
      trace.getActiveSpan()?.setAttributes({ wanted: true, 'input.value': 'hi' });
      return nest(tracer, 'c');
    });
    expect(tree(recorder)).toEqual(['a', '  b', '  c']);
    expect(runNamed(recorder, 'b')).toMatchObject({ inputs: { input: 'hi' }, end_time: expect.any(String) });
  });

  test('is recorded once if another processor with the same exporter records it', async () => {
    const { tracer, recorder } = withOptions(wanted(), {});
    await inSpan(tracer, 'a', (span) => span.setAttribute('wanted', true));
    expect(tree(recorder)).toEqual(['a']);
  });

  test('is not recorded after the shutdown', async () => {
    const { tracer, provider, recorder } = withOptions(wanted());
    const span = tracer.startSpan('a').setAttribute('wanted', true);
    await provider.shutdown();
    span.end();
    expect(recorder.runs).toEqual([]);
  });
});

describe('the exporter of a run', () => {
  test('is that of its processor, and of the runs below it', async () => {
    const own = recordRuns();
    own.stop();
    const { tracer, recorder } = withOptions({ exporter: own.exporter });
    await nest(tracer, 'span > run > inner');
    expect(tree(own)).toEqual(['span', '  run', '    inner']);
    expect(recorder.runs).toEqual([]);
  });

  test('is that of the run around a span, and is flushed with the provider', async () => {
    const { sink, asked } = notingSink();
    const { tracer, provider } = setUp();
    traceable(() => tracer.startSpan('span').end(), { name: 'run', exporter: sink })();
    await provider.forceFlush();
    expect(asked).toEqual(['start run', 'start span', 'end span', 'end run', 'flush']);
  });

  test('receives the children of a refused run as refused, and no ends', async () => {
    const { tracer, asked } = noting({}, false);
    await nest(tracer, 'a > b');
    expect(asked).toEqual(['start a', 'start b (refused)']);
  });

  test('is none while tracing is off', async () => {
    const { tracer, recorder } = setUp();
    recorder.stop();
    await nest(tracer, 'a > b');
    expect(recorder.runs).toEqual([]);
  });

  test('records each span once, even if several processors have it', async () => {
    const first = new RunSpanProcessor({ shouldExport: 'all' });
    for (const second of [first, new RunSpanProcessor({ shouldExport: 'all' })]) {
      const { tracer, recorder } = setUp({ processors: [first, second] });
      await nest(tracer, 'a > b');
      expect(tree(recorder)).toEqual(['a', '  b']);
      expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
    }
    const { tracer, recorder } = withOptions(except('a'), except('b'));
    await nest(tracer, 'a > b');
    expect(recorder.runs.map(({ name }) => name).toSorted()).toEqual(['a', 'b']);
  });

  test('is every exporter if each processor has its own, with a tree each', async () => {
    const [one, two, three] = [recordRuns(), recordRuns(), recordRuns()];
    for (const { stop } of [three, two, one]) onTestFinished(stop);
    const { tracer } = withOptions(
      { exporter: one.exporter },
      { exporter: two.exporter },
      { exporter: three.exporter, ...except('b') },
    );
    await nest(tracer, 'a > b > c');
    expect(tree(one)).toEqual(['a', '  b', '    c']);
    expect(two.runs).toEqual(one.runs);
    expect(tree(three)).toEqual(['a', '  c']);
  });
});

test('the project of a run is that of the run around it, of its span or of the processor', async () => {
  const { tracer, recorder } = withOptions({ project: 'shop' });
  await nest(tracer, 'a > b');
  tracer.startSpan('c', { attributes: { 'runspan.project': 'till' } }).end();
  traceable(() => tracer.startSpan('d').end(), { project: 'stall' })();
  const projects = ['a', 'b', 'c', 'd'].map((name) => runNamed(recorder, name).session_name);
  expect(projects).toEqual(['shop', 'shop', 'till', 'stall']);
});

describe('sampling', () => {
  test.each(['a > b > run > below', 'run > a > b'])('skips the whole trace %s', async (path) => {
    const { tracer, sink, asked } = noting({ sampling: () => false });
    await traceable(() => nest(tracer, path), { exporter: sink })();
    await nest(tracer, 'a');
    expect(asked).toEqual([...path.split(' > '), 'around', 'a'].map(() => 'skip'));
  });

  test('receives the trace id and the name of the first span', async () => {
    const starts: TraceStart[] = [];
    const { sink } = notingSink({ sampling: (start) => starts.push(start) > 0 });
    const { tracer } = withOptions({ exporter: sink, project: 'shop' });
    const { traceId } = await inSpan(tracer, 'a', (span) => span.spanContext());
    expect(starts).toEqual([{ traceId, name: 'a', runType: 'chain', project: 'shop' }]);
  });

  test('ignores a span without the sampled flag', () => {
    const { processor, asked } = noting();
    const ids = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 0 };
    processor.onStart(finished({ spanContext: () => ids }), context.active());
    expect(asked).toEqual([]);
  });
});

test('tags and metadata of a run are inherited by the spans and runs below it', async () => {
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
  const { span_id, root_trace_id } = (metadata('span')?.otel ?? {}) as Record<string, string>;
  const otel = { trace_id: root_trace_id, enclosing_span_id: span_id };
  expect([runNamed(recorder, 'leaf').tags, metadata('leaf')]).toEqual([['t'], { user: 'a', otel }]);
});

test('a traced function works after the shutdown of the processor', async () => {
  const { tracer, provider, recorder } = setUp();
  await inSpan(tracer, 'span', async () => {
    await provider.shutdown();
    await traceable(soon, { name: 'run' })();
  });
  expect(tree(recorder)).toEqual(['run', 'span']);
});
