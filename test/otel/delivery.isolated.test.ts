// Requirements of the specification (https://opentelemetry.io/docs/specs/otel/trace/sdk/#span-processor, quoted in
// parentheses) for span processors, and cases in which the SDK's BatchSpanProcessor loses spans or blocks
// the application. The tests use the real SDK and the real exporter.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { DiagLogLevel, diag, ROOT_CONTEXT } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest';
import type { Limits } from '#src/config/limits.ts';
import { createExporter, type Exporter, type FlushResult, flush } from '#src/index.ts';
import { RunSpanProcessor, type RunSpanProcessorOptions, type SpanLike } from '#src/otel.ts';
import { cases } from '../support/campaign.ts';
import { tune } from '../support/environment.ts';
import { gate } from '../support/gate.ts';
import { ingestServerInTest, type Reply } from '../support/ingest-server.ts';
import { logLines } from '../support/log-lines.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { startReceiver } from '../support/receiver.ts';
import { finished, noting, notingSink, setUp, soon } from './set-up.ts';

test('the processor fits a provider of SDK 2.x', () => {
  expectTypeOf<RunSpanProcessor>().toExtend<SpanProcessor>();
  expectTypeOf<Parameters<SpanProcessor['onEnd']>[0]>().toExtend<SpanLike>();
});

async function delivering(reply?: (index: number) => Reply | Promise<Reply>, limits: Partial<Limits> = {}) {
  const server = await ingestServerInTest((_, index) => reply?.(index) ?? { status: 202 });
  const exporter = createExporter({ endpoint: server.url, apiKey: 'key', limits });
  onTestFinished(async () => void (await exporter.close({ timeoutMs: 0 })));
  return { server, exporter };
}

const stateOf = (promise: Promise<unknown>) =>
  Promise.race([promise.then(() => 'settled'), soon().then(() => 'pending')]);

const fail = () => {
  throw new Error('no');
};

/** A failing `spanContext`, and other values that are not spans. */
const HOSTILE = [null, undefined, 1, {}, { spanContext: fail }, { spanContext: () => null }] as unknown as SpanLike[];

let lastId = 0;
const newSpan = (name: string): SpanLike => {
  const ids = { traceId: '1'.repeat(32), spanId: (++lastId).toString(16).padStart(16, '0'), traceFlags: 1 };
  return finished({ name, spanContext: () => ids });
};

describe('RunSpanProcessor', () => {
  const create = (options?: RunSpanProcessorOptions) => {
    const processor = new RunSpanProcessor({ shouldExport: 'all', ...options });
    const record = (span: SpanLike) => {
      processor.onStart(span, ROOT_CONTEXT);
      processor.onEnd(span);
    };
    return Object.assign(processor, { record });
  };

  test('waits in forceFlush for requests in flight and for queued runs', async () => {
    const answered = gate();
    tune({ requestsInFlight: 1 });
    const limits = { batchRuns: 1, lingerMs: 1 };
    const { server, exporter } = await delivering(() => answered.then(() => ({ status: 202 })), limits);
    const tested = create({ exporter });
    tested.record(newSpan('under way'));
    await server.arrived(1);
    tested.record(newSpan('waits'));
    const flushed = tested.forceFlush();
    expect(await stateOf(flushed)).toBe('pending');
    answered.open();
    await flushed;
    expect(exporter.stats()).toMatchObject({ sent: 2, queued: 0, inFlight: 0 });
  });

  test('rejects forceFlush, but not shutdown, if runs are pending or dropped, or an exporter of the application fails (SHOULD provide a way to let the caller know whether it succeeded)', async () => {
    logLines();
    const { sink } = notingSink();
    const { exporter } = await delivering((index) => ({ status: index === 1 ? 202 : 422 }));
    const late = { ...sink, flush: async () => ({ ok: false, pending: 1 }) };
    const failing = { ...sink, flush: fail };
    for (const [given, message] of [
      [late, 'RunSpanProcessor: runs were not delivered: 1 are pending, 0 were dropped'],
      [exporter, /0 are pending, 1 were dropped; the last error was: .*422/],
      [failing, 'no'],
    ] as const) {
      const tested = create({ exporter: given });
      for (const name of ['kept', 'refused']) tested.record(newSpan(name));
      await expect(tested.forceFlush()).rejects.toThrow(message);
      await expect(tested.shutdown()).resolves.toBeUndefined();
    }
  });

  test('delivers at shutdown and leaves the exporter open (Shutdown MUST include the effects of ForceFlush)', async () => {
    const { exporter } = await delivering();
    for (const sent of [1, 2]) {
      const tested = create({ exporter });
      tested.record(newSpan('a'));
      await tested.shutdown();
      expect(exporter.stats()).toMatchObject({ sent, dropped: 0 });
    }
  });

  test('shuts down once and ignores later spans and flushes (SHOULD ignore these calls gracefully)', async () => {
    const { sink, asked } = notingSink();
    const tested = create({ exporter: sink });
    const [first, second] = [tested.shutdown(), tested.shutdown()];
    expect(second).toBe(first);
    await first;
    tested.record(newSpan('late'));
    await tested.forceFlush();
    await tested.shutdown();
    expect(asked).toEqual(['flush']);
  });

  test('never throws (OnStart should not throw exceptions)', async () => {
    logLines();
    const { sink } = notingSink();
    const options = { exporter: { ...sink, start: fail, end: fail }, shouldExport: fail };
    for (const tested of [create(options), create()]) {
      for (const span of [newSpan('a'), ...HOSTILE]) expect(() => tested.record(span)).not.toThrow();
      await tested.shutdown();
    }
  });

  test('logs an invalid option and ignores it', () => {
    const lines = logLines();
    const { recorder } = setUp();
    create({ exporter: 'mine', sampled: true } as never).record(newSpan('a'));
    expect(lines).toEqual([
      `warn: RunSpanProcessor: expected \`exporter\` to be the result of createExporter(); the option is ignored.`,
      `warn: RunSpanProcessor: unknown option \`sampled\` is ignored.`,
    ]);
    expect(recorder.runs).toMatchObject([{ name: 'a' }]);
  });

  const withExporter = (exporter: RunSpanProcessorOptions['exporter']) =>
    setUp({ processors: [new RunSpanProcessor({ exporter: exporter as never, shouldExport: 'all' })] });

  test('delivers thousands of spans that end in one turn of the event loop', async () => {
    const receiver = await startReceiver();
    const exporter = createExporter({ endpoint: receiver.url, apiKey: 'key' });
    const { tracer, provider } = withExporter(exporter);
    const spans = cases(10_000);
    for (let index = 0; index < spans; index++) tracer.startSpan(`span ${index}`).end();
    // OnStart should not block.
    expect(exporter.stats()).toMatchObject({ inFlight: 0, sent: 0 });
    await provider.forceFlush();
    expect(exporter.stats()).toMatchObject({ created: spans, sent: spans, dropped: 0 });
    expect(new Set((await receiver.runs()).map(({ name }) => name)).size).toBe(spans);
    await exporter.close();
  });

  test('sends open spans at a flush, so that a crash does not hide them, and at the shutdown', async () => {
    const { exporter, server } = await delivering();
    const { tracer, provider } = withExporter(exporter);
    tracer.startSpan('open', { attributes: { 'input.value': 'hi' } });
    await provider.forceFlush();
    expect([...readJsonParts(server.received[0] as never).keys()]).toEqual([
      expect.stringMatching(/^post\.[^.]+$/),
      expect.stringMatching(/^post\.[^.]+\.inputs$/),
    ]);
    await provider.shutdown();
    expect(exporter.stats()).toMatchObject({ open: 0, sent: 1 });
  });

  test('keeps the attributes of an ended span if a later processor changes them', () => {
    const { sink, runs } = notingSink();
    const meddler = {
      onStart: () => {},
      onEnd: ({ attributes }: { attributes: Record<string, unknown> }) => {
        for (const key of Object.keys(attributes)) delete attributes[key];
      },
      shutdown: async () => {},
    } as unknown as SpanProcessor;
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink, shouldExport: 'all' }), meddler] });
    tracer.startSpan('a', { attributes: { 'output.value': 'ho' } }).end();
    expect(runs.at(-1)?.outputs).toBe('{"output":"ho"}');
  });

  test('retries and suppresses tracing for every request', async () => {
    logLines();
    const reply = (index: number) => ({ status: index < 3 ? 503 : 202 });
    tune({ retryDelayMs: 1 });
    const { exporter } = await delivering(reply);
    const { tracer, provider } = withExporter(exporter);
    const recorded: boolean[] = [];
    // As instrumentation-undici does for each request.
    const note = () => recorded.push(tracer.startSpan('request').isRecording());
    subscribe('undici:request:create', note);
    onTestFinished(() => void unsubscribe('undici:request:create', note));
    tracer.startActiveSpan('a', (span) => span.end());
    await provider.forceFlush();
    expect(exporter.stats()).toMatchObject({ sent: 1, dropped: 0 });
    // One request for the capabilities of the service, and four attempts.
    expect(recorded).toEqual([false, false, false, false, false]);
  });

  test('continues the delivery after a shorter timeout of the provider', async () => {
    const answered = gate();
    const { exporter } = await delivering(() => answered.then(() => ({ status: 202 })));
    const spanProcessors = [new RunSpanProcessor({ exporter, shouldExport: 'all' })];
    const provider = new BasicTracerProvider({ spanProcessors, forceFlushTimeoutMillis: 20 });
    provider.getTracer('t').startSpan('a').end();
    await expect(provider.forceFlush()).rejects.toBeDefined();
    answered.open();
    await provider.shutdown();
    expect(exporter.stats()).toMatchObject({ sent: 1 });
  });

  test('records a span whose attributes throw', () => {
    logLines();
    const { tracer, recorder } = setUp();
    const span = tracer.startSpan('b');
    const { attributes } = span as unknown as SpanLike;
    Object.defineProperty(attributes, 'input.value', { enumerable: true, get: fail });
    span.end();
    expect(recorder.runs).toMatchObject([{ name: 'b', end_time: expect.any(String) }]);
  });
});

describe('a resource with pending attributes', () => {
  function sdkErrors(): unknown[] {
    const lines: unknown[] = [];
    const note = (...line: unknown[]) => void lines.push(line[0]);
    diag.setLogger({ error: note, warn: note, info: note, debug: note, verbose: note }, DiagLogLevel.ERROR);
    onTestFinished(() => diag.disable());
    return lines;
  }

  async function serving() {
    const errors = sdkErrors();
    const receiver = await startReceiver();
    const exporter = createExporter({ endpoint: receiver.url, apiKey: 'key' });
    onTestFinished(async () => void (await exporter.close()));
    const service = gate<string>();
    const detected = { getRawAttributes: () => [['service.name', service]], attributes: {} } as never;
    const resource = resourceFromAttributes({ 'host.name': 'box' }).merge(detected);
    const provider = new BasicTracerProvider({
      resource,
      spanProcessors: [new RunSpanProcessor({ exporter, shouldExport: 'all' })],
    });
    const tracer = provider.getTracer('t');
    tracer.startSpan('early').end();
    const valuesOf = async (key: string) => (await receiver.runs()).map(({ extra }) => extra?.metadata?.[key]);
    const services = () => valuesOf('service.name');
    const hosts = () => valuesOf('host.name');
    return { tracer, provider, service, services, hosts, exporter, errors, receiver };
  }

  test('names the service of spans that ended before, and a flush waits for it', async () => {
    const { tracer, provider, service, services, errors } = await serving();
    const flushed = provider.forceFlush();
    expect(await stateOf(flushed)).toBe('pending');
    service.open('shop');
    await flushed;
    tracer.startSpan('late').end();
    await provider.forceFlush();
    expect(await services()).toEqual(['shop', 'shop']);
    expect(errors).toEqual([]);
  });

  test('delays no end beyond a flush, and is no reason to tell a span as interrupted', async () => {
    const flushes: ((exporter: Exporter) => Promise<FlushResult>)[] = [
      (exporter) => exporter.flush(),
      (exporter) => exporter.close(),
      (exporter) => exporter.close({ timeoutMs: 1_000 }),
      () => flush(),
    ];
    const told = flushes.map(async (flushIt) => {
      const { receiver, exporter } = await serving();
      const { pending } = await flushIt(exporter);
      return { pending, runs: (await receiver.runs()).map(({ end_time, error }) => [end_time !== undefined, error]) };
    });
    const whole = { pending: 0, runs: [[true, undefined]] };
    expect(await Promise.all(told)).toEqual([whole, whole, whole, whole]);
  });

  test('delays spans for at most 1.5 s, and only once', async () => {
    const { tracer, provider, services, exporter, errors } = await serving();
    await provider.forceFlush();
    tracer.startSpan('late').end();
    expect(exporter.stats()).toMatchObject({ open: 0, queued: 1, sent: 1 });
    await provider.forceFlush();
    expect(await services()).toEqual([undefined, undefined]);
    expect(errors).toEqual([]);
  });

  test('costs only its own attributes if a detector fails', async () => {
    const { provider, service, services, hosts } = await serving();
    service.fail(new Error('no cloud'));
    await provider.forceFlush();
    expect(await services()).toEqual([undefined]);
    expect(await hosts()).toEqual(['box']);
  });

  test.each([
    ['rejects', () => Promise.reject(new Error('no cloud'))],
    ['throws', fail],
  ])('delays no span if its wait %s', async (_, waitForAsyncAttributes) => {
    const { processor, asked } = noting();
    const span = finished({ resource: { attributes: {}, asyncAttributesPending: true, waitForAsyncAttributes } });
    processor.onStart(span, ROOT_CONTEXT);
    processor.onEnd(span);
    await soon();
    expect(asked).toEqual(['start a', 'end a']);
  });
});
