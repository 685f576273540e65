import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, onTestFinished, test } from 'vitest';
import { withoutTracing } from '../../src/base/timers.ts';

/** A real OpenTelemetry set-up until the test has finished, and what it exports. */
function openTelemetry() {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  onTestFinished(() => context.disable());
  return { tracer: provider.getTracer('test'), names: () => exporter.getFinishedSpans().map(({ name }) => name) };
}

describe('withoutTracing', () => {
  test('calls the function where there is no OpenTelemetry', () => {
    expect(withoutTracing(() => 7)).toBe(7);
  });

  test('keeps spans from being recorded within it, and only there', async () => {
    const { tracer, names } = openTelemetry();
    await withoutTracing(async () => {
      tracer.startSpan('at once').end();
      await Promise.resolve();
      tracer.startSpan('later').end();
    });
    tracer.startSpan('afterwards').end();
    expect(names()).toEqual(['afterwards']);
  });

  test('leaves the rest of the context as it is', () => {
    const { tracer } = openTelemetry();
    const span = tracer.startSpan('outer');
    const active = context.with(trace.setSpan(ROOT_CONTEXT, span), () =>
      withoutTracing(() => trace.getSpan(context.active())),
    );
    expect(active).toBe(span);
  });

  test('gives back what the function returns, and throws what it throws', () => {
    openTelemetry();
    const error = new Error('mine');
    expect(withoutTracing(() => 7)).toBe(7);
    expect(() =>
      withoutTracing(() => {
        throw error;
      }),
    ).toThrow(error);
  });
});
