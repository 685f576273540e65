import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ExportResultLike, RunSpanExporter, RunSpanProcessor, type SpanLike } from '#src/otel.ts';
import { recordRuns } from '#src/testing.ts';
import { logLines } from '../support/log-lines.ts';
import { below, inSpan, nest, notingSink, otelOf, runNamed, setUp, soon, tree } from './set-up.ts';

/** Returns finished spans of the SDK by their names. */
function finishedSpans(make: (tracer: ReturnType<typeof setUp>['tracer']) => void): Map<string, ReadableSpan> {
  const memory = new InMemorySpanExporter();
  make(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(memory)] }).getTracer('test', '1.2.3'));
  return new Map(memory.getFinishedSpans().map((span) => [span.name, span]));
}

/** Returns the spans a > b > c and a > d. Children end first. */
const nested = () =>
  finishedSpans((tracer) => {
    const a = tracer.startSpan('a');
    const b = tracer.startSpan('b', {}, below(a));
    tracer.startSpan('c', {}, below(b)).end();
    b.end();
    tracer.startSpan('d', {}, below(a)).end();
    a.end();
  });

const NESTED = ['a', '  b', '    c', '  d'];

function recording(options: ConstructorParameters<typeof RunSpanExporter>[0] = {}) {
  const recorder = recordRuns();
  onTestFinished(() => recorder.stop());
  const exporter = new RunSpanExporter(options);
  const exported = (...spans: (SpanLike | undefined)[]) =>
    new Promise<ExportResultLike>((resolve) => exporter.export(spans as SpanLike[], resolve));
  return { recorder, exporter, exported };
}

const template = nested().get('b') as ReadableSpan;

/** Copies a span under the name and the id `id`, below the span with the id `parent`. */
function waiting(id: number, parent: number, fields: object = {}): ReadableSpan {
  const ids = (number: number) => ({ ...template.spanContext(), spanId: number.toString(16).padStart(16, '0') });
  const own = { name: String(id), spanContext: () => ids(id), parentSpanContext: ids(parent), ...fields };
  return Object.assign(Object.create(template), own) as ReadableSpan;
}

const namesOf = ({ runs }: { runs: readonly { name: string }[] }) => runs.map(({ name }) => name);

describe('with a batch processor', () => {
  test('the runs equal those of RunSpanProcessor', async () => {
    const [one, two] = [recordRuns(), recordRuns()];
    two.stop();
    one.stop();
    const { tracer, provider } = setUp({
      processors: [
        new RunSpanProcessor({ exporter: one.exporter, shouldExport: 'all' }),
        new BatchSpanProcessor(new RunSpanExporter({ exporter: two.exporter })),
      ],
    });
    await inSpan(tracer, 'a', (span) => {
      span.setAttributes({ 'gen_ai.operation.name': 'chat', 'gen_ai.usage.input_tokens': 3, other: 1 });
      return nest(tracer, 'b > c');
    });
    await provider.forceFlush();
    expect(tree(two)).toEqual(['a', '  b', '    c']);
    expect(two.runs).toEqual(one.runs);
  });

  test('spans that a processor with the same exporter has recorded are not sent again', async () => {
    const { sink, asked } = notingSink();
    const processor = new RunSpanProcessor({ exporter: sink, shouldExport: 'all' });
    const batch = new BatchSpanProcessor(new RunSpanExporter({ exporter: sink }));
    const { tracer, provider } = setUp({ processors: [processor, batch] });
    await nest(tracer, 'a > b');
    await provider.shutdown();
    expect(asked.filter((call) => call !== 'flush')).toEqual(['start a', 'start b', 'end b', 'end a']);
  });
});

test.each<[string, string, string[], number[]]>([
  ['is found in the same batch after it', 'abcd', NESTED, [4]],
  ['is found in the same batch before it', 'dcba', NESTED, [4]],
  ['is found in the same batch between its children', 'cbda', NESTED, [4]],
  ['is found in an earlier batch', 'a b c d', NESTED, [1, 2, 3, 4]],
  ['is awaited over several levels', 'c b d a', NESTED, [0, 0, 0, 4]],
  ['is no longer awaited after forceFlush', 'cdb forceFlush', ['b', '  c', 'd'], [0, 3]],
  ['is no longer awaited after shutdown', 'cdb shutdown', ['b', '  c', 'd'], [0, 3]],
  ['is found after it was sent by a flush', 'b forceFlush c', ['b', '  c'], [0, 1, 2]],
])('the parent of a span %s: %s', async (_, steps, expected, counts) => {
  const spans = nested();
  const { recorder, exporter, exported } = recording();
  const found: number[] = [];
  for (const step of steps.split(' ')) {
    if (step === 'forceFlush' || step === 'shutdown') await exporter[step]();
    else expect(await exported(...[...step].map((name) => spans.get(name)))).toEqual({ code: 0 });
    found.push(recorder.runs.length);
  }
  expect(tree(recorder)).toEqual(expected);
  expect(found).toEqual(counts);
  const { spanId } = spans.get('a')?.spanContext() ?? {};
  expect(otelOf(recorder, 'b').parent_span_id).toBe(spanId);
});

describe('a parent', () => {
  test('in another process is not awaited, and its id is in the metadata', async () => {
    const remote = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1, isRemote: true };
    const spans = finishedSpans((tracer) => {
      const served = tracer.startSpan('served', {}, trace.setSpanContext(ROOT_CONTEXT, remote));
      tracer.startSpan('inner', {}, below(served)).end();
      served.end();
    });
    const { recorder, exported } = recording();
    await exported(spans.get('inner'), spans.get('served'));
    expect(tree(recorder)).toEqual(['served', '  inner']);
    expect(otelOf(recorder, 'served')).toMatchObject({ parent_span_id: remote.spanId, parent_is_remote: true });
  });

  test('of a span of SDK 1.x is found by its id', async () => {
    const earlier = [...nested().values()].map((span) => {
      const { parentSpanContext, instrumentationScope, ...rest } = span;
      return {
        ...rest,
        name: span.name,
        spanContext: () => span.spanContext(),
        parentSpanId: parentSpanContext?.spanId,
        instrumentationLibrary: instrumentationScope,
      } as unknown as SpanLike;
    });
    const { recorder, exported } = recording();
    await exported(...earlier);
    expect(tree(recorder)).toEqual(NESTED);
    expect(otelOf(recorder, 'b').parent_span_id).toBe(otelOf(recorder, 'a').span_id);
  });

  test('may be a run of a processor with the same exporter', async () => {
    const { sink, runs } = notingSink();
    const processor = new RunSpanProcessor({ exporter: sink, shouldExport: 'all' });
    onTestFinished(() => processor.shutdown());
    const spans = nested();
    processor.onStart(spans.get('a') as unknown as SpanLike, ROOT_CONTEXT);
    await recording({ exporter: sink }).exported(spans.get('b'));
    expect(runs.at(-1)).toMatchObject({ name: 'b', parentRunId: runs[0]?.id });
  });

  test('may be null', async () => {
    const { recorder, exported } = recording();
    const alone = Object.create(nested().get('c') as object, { parentSpanContext: { value: null } });
    expect(await exported(alone)).toEqual({ code: 0 });
    expect(runNamed(recorder, 'c').parent_run_id).toBeUndefined();
  });

  test('is the next span above if `shouldExport` skips it', async () => {
    const { recorder, exported } = recording({ shouldExport: ({ name }) => name !== 'b' });
    await exported(...nested().values());
    expect(tree(recorder)).toEqual(['a', '  c', '  d']);
  });
});

describe('a span whose parent is not exported', () => {
  test.each([
    [10_000, []],
    [10_001, ['0']],
  ])('starts a trace if more than 10 000 spans wait: %j', async (count, expected) => {
    const { recorder, exported } = recording();
    await exported(...Array.from({ length: count }, (_, index) => waiting(index, count + 1)));
    expect(namesOf(recorder)).toEqual(expected);
  });

  test.each([
    [0, []],
    [1, ['1']],
  ])('starts a trace if the texts of waiting spans exceed 64 Mi characters by %j', async (over, expected) => {
    const { recorder, exported } = recording();
    const half = 32 * 1_024 * 1_024;
    const events = [{ name: 'e', time: [0, 0], attributes: { text: 'x'.repeat(half + over) } }];
    await exported(waiting(1, 2, { attributes: { text: 'x'.repeat(half), count: 1 }, events }));
    expect(namesOf(recorder)).toEqual(expected);
  });

  test('ends its waiting too if spans are parents of each other', async () => {
    const parents = { 1: 2, 2: 3, 3: 2, 4: 4 };
    const { recorder, exporter, exported } = recording();
    await exported(...Object.entries(parents).map(([id, parent]) => waiting(Number(id), parent)));
    expect(recorder.runs).toEqual([]);
    await exporter.forceFlush();
    expect(namesOf(recorder).toSorted()).toEqual(['1', '2', '3', '4']);
  });

  test('starts one trace for ten thousand levels', async () => {
    const spans = Array.from({ length: 9_999 }, (_, index) => waiting(index, index + 1));
    const { sink, asked } = notingSink();
    // The dotted order of a recorded run would have one segment per level.
    const { exporter, exported } = recording({ exporter: sink, shouldExport: ({ name }) => name === '0' });
    await exported(...spans);
    await exporter.forceFlush();
    expect(asked.filter((call) => call !== 'flush')).toEqual(['start 0', 'end 0']);
  });
});

describe('the exporter', () => {
  test('uses the given exporter and project', async () => {
    const { sink, asked, runs } = notingSink();
    const { recorder, exported } = recording({ exporter: sink, project: 'shop' });
    await exported(nested().get('a'));
    expect(asked).toEqual(['start a', 'end a', 'flush']);
    expect(runs[0]?.project).toBe('shop');
    expect(recorder.runs).toEqual([]);
  });

  test('skips all spans of a trace that is sampled out', async () => {
    const { sink, asked } = notingSink({ sampling: () => false });
    await recording({ exporter: sink }).exported(...nested().values());
    expect(asked).toEqual(['skip', 'skip', 'skip', 'skip', 'flush']);
  });

  test('records nothing while tracing is off', async () => {
    const { recorder, exported } = recording();
    recorder.stop();
    expect(await exported(...nested().values())).toEqual({ code: 0 });
    expect(recorder.runs).toEqual([]);
  });
});

describe('the result', () => {
  const undelivered = (pending: number) => async () => ({ ok: false, pending });

  test.each([
    ['RunSpanExporter: 2 runs not delivered in time', undelivered(2)],
    ['RunSpanExporter: 1 run not delivered in time', undelivered(1)],
    ['no', () => Promise.reject(new Error('no'))],
  ])('is the failure `%s`', async (message, flush) => {
    const { exported } = recording({ exporter: { ...notingSink().sink, flush } });
    expect(await exported(nested().get('a'))).toEqual({ code: 1, error: new Error(message) });
  });

  test('is a failure after the shutdown', async () => {
    const { exporter, exported } = recording();
    await exporter.shutdown();
    expect(await exported(nested().get('a'))).toEqual({ code: 1, error: new Error('RunSpanExporter was shut down') });
  });

  test('is always returned, and errors of the callback are logged', async () => {
    const lines = logLines();
    const { recorder, exporter, exported } = recording();
    const hostile = {
      spanContext: () => {
        throw new Error('no ids');
      },
    } as unknown as SpanLike;
    expect(await exported(hostile, undefined, nested().get('a'))).toEqual({ code: 0 });
    expect(tree(recorder)).toEqual(['a']);
    const failed = await new Promise((resolve) => exporter.export(null as unknown as SpanLike[], resolve));
    expect(failed).toMatchObject({ code: 1 });
    exporter.export([], () => {
      throw new Error('not mine');
    });
    exporter.export([], undefined as unknown as () => void);
    await soon();
    expect(lines).toEqual([
      'warn: RunSpanExporter.export failed, the application is not affected: no ids',
      "warn: RunSpanExporter.export's callback failed, the application is not affected: not mine",
    ]);
  });
});
