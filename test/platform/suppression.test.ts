import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isOwnWork, withoutTracing } from '#src/platform/suppress-tracing.ts';
import { runInRootContext, setSoon, setTimer } from '#src/platform/timers.ts';

/** Installs OpenTelemetry until the test has finished, and returns the names of exported spans. */
function openTelemetry() {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  onTestFinished(() => context.disable());
  return { tracer: provider.getTracer('test'), names: () => exporter.getFinishedSpans().map(({ name }) => name) };
}

describe('withoutTracing', () => {
  test('prevents the recording of spans only within the function', async () => {
    const { tracer, names } = openTelemetry();
    await withoutTracing(async () => {
      tracer.startSpan('at once').end();
      await Promise.resolve();
      tracer.startSpan('later').end();
    });
    tracer.startSpan('afterwards').end();
    expect(names()).toEqual(['afterwards']);
  });

  test('keeps the other values of the context', () => {
    const { tracer } = openTelemetry();
    const span = tracer.startSpan('outer');
    const active = context.with(trace.setSpan(ROOT_CONTEXT, span), () =>
      withoutTracing(() => trace.getSpan(context.active())),
    );
    expect(active).toBe(span);
  });

  test('marks the work of the library until the function returns', () => {
    const marks = withoutTracing(() => [isOwnWork(), withoutTracing(isOwnWork), isOwnWork()]);
    expect([...marks, isOwnWork()]).toEqual([true, true, true, false]);
    expect(() =>
      withoutTracing(() => {
        throw new Error('mine');
      }),
    ).toThrow();
    expect(isOwnWork()).toBe(false);
  });

  test('returns the result of the function, and throws its error', () => {
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

test('the timers of the library and `runInRootContext` start work in which no spans are recorded', async () => {
  const { tracer, names } = openTelemetry();
  const span = tracer.startSpan('request');
  await context.with(trace.setSpan(ROOT_CONTEXT, span), async () => {
    runInRootContext(() => tracer.startSpan('outside').end());
    await new Promise<void>((resolve) => {
      setTimer(() => {
        tracer.startSpan('in a timer').end();
        setSoon(async () => {
          await Promise.resolve();
          tracer.startSpan('after a promise').end();
          resolve();
        });
      }, 1);
    });
    tracer.startSpan('of the application').end();
  });
  expect(names()).toEqual(['of the application']);
});
