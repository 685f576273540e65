import { context, type Span, type Tracer, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, type Sampler, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { onTestFinished } from 'vitest';
import { HeldTraces } from '#src/delivery/held-traces.ts';
import { Ledger } from '#src/delivery/ledger.ts';
import { traceable } from '#src/index.ts';
import { RunSpanProcessor, type SpanLike } from '#src/otel.ts';
import { describeOpenRun, type EncodedRun } from '#src/run/encoded-run.ts';
import type { RunRecord } from '#src/run/record.ts';
import type { LightSink, RunSink } from '#src/run/sink.ts';
import { type RunRecorder, recordRuns } from '#src/testing.ts';
import { bareSpan } from '../support/bare-span.ts';

interface SetUp {
  readonly tracer: Tracer;
  readonly provider: BasicTracerProvider;
  readonly recorder: RunRecorder;
  /** Called when the test finishes. */
  readonly stop: () => Promise<void>;
}

/** Creates a provider that records into memory until the test finishes. */
export function setUp(
  given: { processors?: SpanProcessor[]; contextManager?: boolean; sampler?: Sampler } = {},
): SetUp {
  const {
    processors: spanProcessors = [new RunSpanProcessor({ shouldExport: 'all' })],
    contextManager = true,
    sampler,
  } = given;
  const recorder = recordRuns();
  const provider = new BasicTracerProvider({ spanProcessors, ...(sampler && { sampler }) });
  if (contextManager) context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const stop = async (): Promise<void> => {
    await provider.shutdown();
    context.disable();
    recorder.stop();
  };
  onTestFinished(stop);
  return { tracer: provider.getTracer('test', '1.2.3'), provider, recorder, stop };
}

/** Calls `fn` inside a span, which ends when the result of `fn` settles. */
export async function inSpan<Result>(
  tracer: Tracer,
  name: string,
  fn: (span: Span) => Promise<Result> | Result,
): Promise<Result> {
  return tracer.startActiveSpan(name, async (span) => {
    try {
      return await fn(span);
    } finally {
      span.end();
    }
  });
}

/**
 * Opens spans inside each other, and then calls `inside`: `'a > run b > c'`. Names that start with `run` are those of
 * traced functions.
 */
export async function nest(tracer: Tracer, path: string, inside: () => unknown = soon): Promise<void> {
  const [name = '', ...rest] = path.split(' > ');
  const fn = async () => {
    await (rest.length > 0 ? nest(tracer, rest.join(' > '), inside) : inside());
  };
  await (name.startsWith('run') ? traceable(fn, { name })() : inSpan(tracer, name, fn));
}

export const soon = () => new Promise((resolve) => setImmediate(resolve));

/** Creates a span that has ended. It is not recorded until it is given to a processor or an exporter. */
export const finished = (fields: object = {}) =>
  ({ ...bareSpan('a', { traceId: 'c'.repeat(32), spanId: 'd'.repeat(16) }), ...fields }) as unknown as SpanLike;

/**
 * Returns the recorded runs as indented names: `['a', '  b']`. Siblings are sorted by name, because spans start at whole
 * milliseconds.
 */
export function tree(recorder: RunRecorder): string[] {
  const names = new Map(recorder.runs.map(({ id, name }) => [id, name]));
  const paths = recorder.runs.map(({ dotted_order }) =>
    dotted_order.split('.').map((segment) => names.get(segment.slice(22)) ?? '?'),
  );
  return paths
    .sort((a, b) => (a.join('\n') < b.join('\n') ? -1 : 1))
    .map((path) => '  '.repeat(path.length - 1) + path.at(-1));
}

export function runNamed(recorder: RunRecorder, name: string): RunRecord {
  const [run, ...more] = recorder.runs.filter((one) => one.name === name);
  if (run === undefined || more.length > 0) throw new Error(`expected one run named ${name} in:\n${tree(recorder)}`);
  return run;
}

/** Returns the OpenTelemetry fields of the only recorded run with this name. */
export const otelOf = (recorder: RunRecorder, name: string) =>
  runNamed(recorder, name).extra?.metadata?.otel as Record<string, unknown>;

export const below = (span: Span) => trace.setSpan(context.active(), span);

/** Creates a sink that records its calls and describes starts immediately. */
export function notingSink(capture: Partial<RunSink['capture']> = {}, accepts = true) {
  const recorder = recordRuns();
  recorder.stop();
  const asked: string[] = [];
  const runs: EncodedRun[] = [];
  const sink: RunSink = {
    capture: { ...recorder.exporter.capture, ...capture },
    start: (run) => {
      asked.push(`start ${run.name}${run.refused ? ' (refused)' : ''}`);
      describeOpenRun(run);
      runs.push({ ...run, source: undefined });
      return accepts && !run.refused;
    },
    end: (run) => {
      asked.push(`end ${run.name}`);
      runs.push({ ...run, source: undefined });
    },
    skip: () => void asked.push('skip'),
    flush: async () => {
      asked.push('flush');
      return { ok: true, pending: 0 };
    },
    close: async () => {
      asked.push('close');
      return { ok: true, pending: 0 };
    },
  };
  return { sink, asked, runs };
}

/** Creates a noting sink with `keep: ['error']`. `arrived` returns each run as `name rule rate`. */
export function keeping(sampling?: RunSink['capture']['sampling']) {
  const { sink, runs } = notingSink({ sampling });
  const rules = { onError: true, slowMs: Number.POSITIVE_INFINITY, functions: [] };
  const held = new HeldTraces({ rules, counts: new Ledger().counts, ageMs: 1, monotonicMs: () => 0, decided() {} });
  const line = ({ name, metadata = new Map() }: EncodedRun) =>
    [name, metadata.get('sampling'), metadata.get('sample_rate')].join(' ').replaceAll('"', '').trim();
  const arrived = () => [...new Set(runs.map(line))].toSorted();
  return { sink: { ...sink, hold: (rate: number) => held.hold(rate) }, arrived };
}

/** Creates the part of a sink that takes light runs. Runs that end light are added to a list. */
export function lightInto(runs: RunRecord[], start: RunSink['start']): LightSink {
  return {
    start: () => true,
    begun: (_, record) => void start(record),
    end: ({ main, inputs = '{}', outputs = '{}' }) =>
      void runs.push({ ...JSON.parse(main), inputs: JSON.parse(inputs), outputs: JSON.parse(outputs) }),
  };
}

export function noting(...given: Parameters<typeof notingSink>) {
  const noted = notingSink(...given);
  const processor = new RunSpanProcessor({ exporter: noted.sink, shouldExport: 'all' });
  return { ...setUp({ processors: [processor] }), ...noted, processor };
}
