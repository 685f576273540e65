// Requirements of the specification for span processors (https://opentelemetry.io/docs/specs/otel/trace/sdk/#span-processor,
// quoted in parentheses), and cases in which the SDK's BatchSpanProcessor loses spans or blocks the application. The tests
// use a provider of the real SDK and the real exporter.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { context, createContextKey, DiagLogLevel, diag, ROOT_CONTEXT, type Span } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Limits } from '../../src/base/limits.ts';
import { createExporter } from '../../src/index.ts';
import { RunSpanProcessor, type SpanLike } from '../../src/otel.ts';
import { createReceiver } from '../../src/receiver.ts';
import { bareSpan } from '../support/bare-span.ts';
import { gate } from '../support/gate.ts';
import { type IngestServer, ingestServer, type Reply } from '../support/ingest-server.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { moduleText, runNode } from '../support/program.ts';
import { told } from '../support/told.ts';
import { below, notingSink, runNamed, setUp } from './set-up.ts';

const soon = () => new Promise((resolve) => setImmediate(resolve));

/** Creates a provider whose runs are sent to a scripted service. */
async function delivering(reply?: (index: number) => Reply | Promise<Reply>, limits: Partial<Limits> = {}) {
  const server: IngestServer = await ingestServer((_, index) => reply?.(index) ?? { status: 202 });
  const exporter = createExporter({ endpoint: server.url, apiKey: 'key', limits });
  onTestFinished(async () => {
    await exporter.close({ timeoutMs: 0 });
    await server.close();
  });
  const processor = new RunSpanProcessor({ exporter });
  return { ...setUp({ processors: [processor] }), server, exporter, processor };
}

/** Returns whether a promise is pending. */
const stateOf = (promise: Promise<unknown>) =>
  Promise.race([promise.then(() => 'settled'), soon().then(() => 'pending')]);

describe('recorded spans', () => {
  test('all arrive if ten thousand end in one turn of the event loop', async () => {
    const receiver = await createReceiver();
    const exporter = createExporter({ endpoint: receiver.url, apiKey: 'key' });
    const { tracer, provider } = setUp({ processors: [new RunSpanProcessor({ exporter })] });
    for (let index = 0; index < 10_000; index++) tracer.startSpan(`span ${index}`).end();
    await provider.forceFlush();
    expect(exporter.stats()).toMatchObject({ created: 10_000, sent: 10_000, dropped: 0 });
    expect(new Set((await receiver.runs()).map(({ name }) => name)).size).toBe(10_000);
    await exporter.close();
    await receiver.close();
  });

  test('are dropped, counted and logged beyond the byte limit of the queue', async () => {
    const lines = told();
    const { tracer, provider, exporter } = await delivering(undefined, { queueBytes: 100_000 });
    const text = 'x'.repeat(40_000);
    for (let index = 0; index < 10; index++) tracer.startSpan('a', { attributes: { 'input.value': text } }).end();
    const { droppedByReason, dropped } = exporter.stats();
    expect(dropped).toBeGreaterThan(0);
    expect(droppedByReason.queue_full).toBe(dropped);
    await provider.forceFlush();
    await exporter.close();
    expect(exporter.stats().sent).toBe(10 - dropped);
    expect(lines.join()).toContain(`${dropped} runs were dropped (queue_full)`);
  });

  test('are sent before they end, so that a crash does not hide them', async () => {
    const { tracer, provider, server } = await delivering();
    const span = tracer.startSpan('under way', { attributes: { 'input.value': 'hi' } });
    await provider.forceFlush();
    expect([...readJsonParts(server.received[0] as never).keys()]).toEqual([
      expect.stringMatching(/^post\.[^.]+$/),
      expect.stringMatching(/^post\.[^.]+\.inputs$/),
    ]);
    span.end();
  });

  test('keep the attributes of their end if a later processor changes them', async () => {
    const { sink, runs } = notingSink();
    const meddler = {
      onStart: () => {},
      onEnd: ({ attributes }: SpanLike) => {
        for (const key of Object.keys(attributes)) delete (attributes as Record<string, unknown>)[key];
      },
      forceFlush: async () => {},
      shutdown: async () => {},
    } as unknown as SpanProcessor;
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink }), meddler] });
    tracer.startSpan('a', { attributes: { 'output.value': 'ho' } }).end();
    expect(runs.at(-1)?.outputs).toBe('{"output":"ho"}');
  });

  test('are only those with the sampled flag (Sampling, table)', () => {
    const { sink, asked } = notingSink();
    const sampler: Sampler = {
      shouldSample: (_context, _traceId, name) => ({
        decision:
          { RECORD: SamplingDecision.RECORD, DROP: SamplingDecision.NOT_RECORD }[name] ??
          SamplingDecision.RECORD_AND_SAMPLED,
      }),
    };
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })], sampler });
    const key = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING');
    tracer.startSpan('suppressed', {}, context.active().setValue(key, true)).end();
    for (const name of ['RECORD', 'DROP', 'sampled']) tracer.startSpan(name).end();
    expect(asked).toEqual(['start sampled', 'end sampled']);
  });
});

describe('delivery', () => {
  test('retries after a failure', async () => {
    told();
    const { tracer, provider, server, exporter } = await delivering((index) => ({ status: index === 0 ? 503 : 202 }), {
      retryDelayMs: 1,
    });
    tracer.startSpan('a').end();
    await provider.forceFlush();
    expect(server.received).toHaveLength(2);
    expect(exporter.stats()).toMatchObject({ sent: 1, dropped: 0 });
  });

  test('suppresses tracing for every request', async () => {
    told();
    const { tracer, provider } = await delivering((index) => ({ status: index < 3 ? 503 : 202 }), { retryDelayMs: 1 });
    const recorded: boolean[] = [];
    // As instrumentation-undici does for each request.
    const note = () => recorded.push(tracer.startSpan('request').isRecording());
    subscribe('undici:request:create', note);
    onTestFinished(() => void unsubscribe('undici:request:create', note));
    tracer.startActiveSpan('a', (span) => span.end());
    await provider.forceFlush();
    // One request for the capabilities of the service, and four attempts.
    expect(recorded).toEqual([false, false, false, false, false]);
  });

  test('limits concurrent requests', async () => {
    let [under, most] = [0, 0];
    const answered = gate();
    const { tracer, provider, server } = await delivering(
      async () => {
        most = Math.max(most, ++under);
        await answered;
        under--;
        return { status: 202 };
      },
      { batchRuns: 1, requestsInFlight: 2 },
    );
    for (let index = 0; index < 6; index++) tracer.startSpan('a').end();
    const flushed = provider.forceFlush();
    await server.arrived(2);
    answered.open();
    await flushed;
    expect([server.received.length, most]).toEqual([6, 2]);
  });

  test('aborts a request at its timeout before the retry', async () => {
    told();
    const { tracer, provider, server, exporter } = await delivering(
      (index) => (index === 0 ? 'hold' : { status: 202 }),
      { requestTimeoutMs: 50, retryDelayMs: 1, requestsInFlight: 1 },
    );
    tracer.startSpan('a').end();
    await provider.forceFlush();
    expect(server.received).toHaveLength(2);
    expect(exporter.stats()).toMatchObject({ sent: 1, inFlight: 0 });
  });
});

describe('ForceFlush', () => {
  test('waits for requests in flight and for queued runs', async () => {
    const answered = gate();
    const { tracer, provider, server, exporter } = await delivering(
      async () => {
        await answered;
        return { status: 202 };
      },
      { batchRuns: 1, requestsInFlight: 1, lingerMs: 1 },
    );
    tracer.startSpan('under way').end();
    await server.arrived(1);
    tracer.startSpan('waits').end();
    const flushed = provider.forceFlush();
    expect(await stateOf(flushed)).toBe('pending');
    answered.open();
    await flushed;
    expect(exporter.stats()).toMatchObject({ sent: 2, queued: 0, inFlight: 0 });
  });

  test('resolves if the service rejects all requests (ForceFlush SHOULD let the caller know by other means)', async () => {
    told();
    const { tracer, provider, exporter } = await delivering(() => ({ status: 401 }));
    tracer.startSpan('a').end();
    await expect(provider.forceFlush()).resolves.toBeUndefined();
    expect(exporter.stats().created).toBe(1);
  });

  test('resolves if an exporter of the application fails', async () => {
    const { sink } = notingSink();
    const broken = { ...sink, flush: () => Promise.reject(new Error('no')) };
    const throwing = {
      ...sink,
      flush: () => {
        throw new Error('no');
      },
    };
    for (const exporter of [broken, throwing]) {
      const { provider } = setUp({ processors: [new RunSpanProcessor({ exporter })] });
      await expect(provider.forceFlush()).resolves.toBeUndefined();
    }
  });

  test('times out before the provider does (ForceFlush SHOULD complete or abort within some timeout)', async () => {
    const limits: unknown[] = [];
    const { sink } = notingSink();
    const flush: typeof sink.flush = async (limit) => {
      limits.push(limit);
      return { ok: false, pending: 1 };
    };
    const { provider } = setUp({ processors: [new RunSpanProcessor({ exporter: { ...sink, flush } })] });
    await provider.forceFlush();
    expect(limits).toEqual([{ timeoutMs: 29_000 }]);
  });

  test('rejects at a shorter timeout of the provider, and delivery continues', async () => {
    const answered = gate();
    const server = await ingestServer(async () => {
      await answered;
      return { status: 202 };
    });
    const exporter = createExporter({ endpoint: server.url, apiKey: 'key' });
    const provider = new BasicTracerProvider({
      spanProcessors: [new RunSpanProcessor({ exporter })],
      forceFlushTimeoutMillis: 20,
    });
    provider.getTracer('t').startSpan('a').end();
    await expect(provider.forceFlush()).rejects.toBeDefined();
    answered.open();
    await provider.shutdown();
    expect(exporter.stats()).toMatchObject({ sent: 1 });
    await exporter.close();
    await server.close();
  });
});

describe('Shutdown', () => {
  test('includes the effects of ForceFlush (Shutdown MUST)', async () => {
    const { tracer, provider, exporter } = await delivering();
    tracer.startSpan('a').end();
    await provider.shutdown();
    expect(exporter.stats()).toMatchObject({ sent: 1 });
  });

  test('runs once (Shutdown SHOULD be called only once)', async () => {
    const { sink, asked } = notingSink();
    const processor = new RunSpanProcessor({ exporter: sink });
    const [first, second] = [processor.shutdown(), processor.shutdown()];
    expect(second).toBe(first);
    await first;
    await processor.shutdown();
    expect(asked).toEqual(['flush']);
  });

  test('ignores later spans and flushes (SHOULD ignore these calls gracefully)', async () => {
    const { sink, asked } = notingSink();
    const processor = new RunSpanProcessor({ exporter: sink });
    const { tracer, provider } = setUp({ processors: [processor] });
    const parent = tracer.startSpan('parent');
    await provider.shutdown();
    tracer.startSpan('late', {}, below(parent)).end();
    parent.end();
    await provider.forceFlush();
    expect(asked).toEqual(['start parent', 'end parent', 'flush']);
  });

  test('sends open spans', async () => {
    const { tracer, provider, exporter } = await delivering();
    tracer.startSpan('open');
    await provider.shutdown();
    expect(exporter.stats()).toMatchObject({ open: 0, sent: 1 });
  });

  test('leaves the exporter open', async () => {
    const { tracer, provider, exporter } = await delivering();
    tracer.startSpan('a').end();
    await provider.shutdown();
    const { tracer: other, provider: next } = setUp({ processors: [new RunSpanProcessor({ exporter })] });
    other.startSpan('b').end();
    await next.forceFlush();
    expect(exporter.stats()).toMatchObject({ sent: 2, dropped: 0 });
  });
});

describe('OnStart and OnEnd', () => {
  test('never throw (OnStart should not throw exceptions)', () => {
    told();
    const fail = () => {
      throw new Error('no');
    };
    const { sink } = notingSink();
    const { tracer } = setUp({
      processors: [new RunSpanProcessor({ exporter: { ...sink, start: fail, end: fail }, shouldExport: fail })],
    });
    expect(() => tracer.startSpan('a').end()).not.toThrow();
    const { tracer: other, recorder } = setUp();
    const span = other.startSpan('b');
    Object.defineProperty((span as unknown as SpanLike).attributes, 'input.value', { enumerable: true, get: fail });
    span.end();
    expect(runNamed(recorder, 'b').end_time).toBeDefined();
    const processor = new RunSpanProcessor();
    onTestFinished(() => processor.shutdown());
    for (const hostile of [null, undefined, 1, {}, { spanContext: fail }, { spanContext: () => null }]) {
      expect(() => processor.onStart(hostile as unknown as SpanLike, ROOT_CONTEXT)).not.toThrow();
      expect(() => processor.onEnd(hostile as unknown as SpanLike)).not.toThrow();
    }
  });

  test('do not send synchronously (OnStart should not block)', async () => {
    const { tracer, server, exporter } = await delivering(undefined, { lingerMs: 1 });
    for (let index = 0; index < 1_000; index++) tracer.startSpan('a').end();
    expect(exporter.stats()).toMatchObject({ queued: 1_000, inFlight: 0 });
    expect(server.received).toEqual([]);
  });

  test('keep the order in which spans start and end (OnStart is called synchronously)', () => {
    const { sink, asked } = notingSink();
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink })] });
    const a: Span = tracer.startSpan('a');
    tracer.startSpan('b').end();
    a.end();
    expect(asked).toEqual(['start a', 'start b', 'end b', 'end a']);
  });
});

describe('a resource with pending attributes', () => {
  /** Returns the log lines of the SDK. */
  function sdkErrors(): unknown[] {
    const lines: unknown[] = [];
    const note = (...line: unknown[]) => void lines.push(line[0]);
    diag.setLogger({ error: note, warn: note, info: note, debug: note, verbose: note }, DiagLogLevel.ERROR);
    onTestFinished(() => diag.disable());
    return lines;
  }

  async function serving() {
    const receiver = await createReceiver();
    const exporter = createExporter({ endpoint: receiver.url, apiKey: 'key' });
    onTestFinished(async () => {
      await exporter.close();
      await receiver.close();
    });
    const service = gate<string>();
    const { resource: known } = new BasicTracerProvider().getTracer('t').startSpan('s') as unknown as ReadableSpan;
    const detected = { getRawAttributes: () => [['service.name', service]], attributes: {} } as never;
    const resource = known.merge(detected);
    const provider = new BasicTracerProvider({ resource, spanProcessors: [new RunSpanProcessor({ exporter })] });
    const services = async () => (await receiver.runs()).map(({ extra }) => extra?.metadata?.['service.name']);
    return { tracer: provider.getTracer('t'), provider, service, services, exporter };
  }

  test('names the service of spans that ended before, and a flush waits for it', async () => {
    const errors = sdkErrors();
    const { tracer, provider, service, services } = await serving();
    tracer.startSpan('early').end();
    const flushed = provider.forceFlush();
    expect(await stateOf(flushed)).toBe('pending');
    service.open('shop');
    await flushed;
    tracer.startSpan('late').end();
    await provider.forceFlush();
    expect(await services()).toEqual(['shop', 'shop']);
    expect(errors).toEqual([]);
  });

  test('delays spans for at most 1.5 s, and only once', async () => {
    const errors = sdkErrors();
    const { tracer, provider, services, exporter } = await serving();
    tracer.startSpan('early').end();
    await provider.forceFlush();
    tracer.startSpan('late').end();
    expect(exporter.stats()).toMatchObject({ open: 0, queued: 1, sent: 1 });
    await provider.forceFlush();
    expect(await services()).toEqual([undefined, undefined]);
    expect(errors).toEqual([]);
  });

  test('costs only its own attributes if a detector fails', async () => {
    const { tracer, provider, service, services } = await serving();
    tracer.startSpan('early').end();
    service.fail(new Error('no cloud'));
    await provider.forceFlush();
    expect(await services()).toEqual([expect.stringMatching(/^unknown_service/)]);
  });

  test.each([
    ['rejects', () => Promise.reject(new Error('no cloud'))],
    [
      'throws',
      () => {
        throw new Error('no cloud');
      },
    ],
  ])('delays no span if its wait %s', async (_, waitForAsyncAttributes) => {
    const { sink, asked } = notingSink();
    const processor = new RunSpanProcessor({ exporter: sink });
    const resource = { attributes: {}, asyncAttributesPending: true, waitForAsyncAttributes };
    const span = { ...bareSpan('a', { traceId: '1'.repeat(32), spanId: '2'.repeat(16) }), resource };
    processor.onStart(span as unknown as SpanLike, ROOT_CONTEXT);
    processor.onEnd(span as unknown as SpanLike);
    await soon();
    expect(asked).toEqual(['start a', 'end a']);
    await processor.shutdown();
  });
});

describe('the end of the process', () => {
  const program = (deed: string) =>
    moduleText(`
      import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
      const { configure } = await import('./dist/index.js');
      const { RunSpanProcessor } = await import('./dist/otel.js');
      const provider = new BasicTracerProvider({ spanProcessors: [new RunSpanProcessor()] });
      const tracer = provider.getTracer('t');
      ${deed}`);

  test('delivers queued runs without a flush', async () => {
    const receiver = await createReceiver();
    onTestFinished(() => receiver.close());
    const ended = await runNode(program(`tracer.startSpan('a').end();`), { RUNSPAN_ENDPOINT: receiver.url });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect((await receiver.runs()).map(({ name }) => name)).toEqual(['a']);
  });

  test('is not delayed by a hanging service or resource', async () => {
    await using server = await ingestServer(() => 'hold');
    const deed = `
      configure({ limits: { exitFlushMs: 100 } });
      const resource = { attributes: {}, asyncAttributesPending: true, waitForAsyncAttributes: () => new Promise(() => {}) };
      const span = tracer.startSpan('a');
      Object.defineProperty(span, 'resource', { value: resource });
      span.end();
      tracer.startSpan('b').end();
      const startedMs = performance.now();
      process.on('exit', () => console.log(performance.now() - startedMs < 10_000));`;
    const ended = await runNode(program(deed), { RUNSPAN_ENDPOINT: server.url });
    expect(ended).toMatchObject({ code: 0, stdout: 'true\n' });
  });

  test('is not delayed by an open span', async () => {
    await using server = await ingestServer();
    const ended = await runNode(program(`tracer.startSpan('open');`), { RUNSPAN_ENDPOINT: server.url });
    expect(ended).toMatchObject({ code: 0, signal: null });
    expect(server.received).toHaveLength(1);
  });
});
