// The set-up for both processes: ordinary OpenTelemetry with runspan's processor and propagator.
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { RunPropagator, RunSpanProcessor } from 'runspan/otel';

const provider = new TracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
trace.setGlobalTracerProvider(provider);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(
  new CompositePropagator({
    propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator(), new RunPropagator()],
  }),
);

const tracer = trace.getTracer('otel-distributed');

/** Calls `fn` in a span of this kind. `from` is the context extracted from request headers. */
export function inSpan(name, kind, fn, from = context.active()) {
  return tracer.startActiveSpan(name, { kind }, from, async (span) => {
    try {
      return await fn(span);
    } finally {
      span.end();
    }
  });
}

/** Delivers queued runs. */
export const shutdown = () => provider.shutdown();
