// The tracer of OpenTelemetry's SDK, for `npm run demo`.
import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';

/** Returns a function that runs another one inside a span. */
export function createTracer(processor) {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const tracer = new BasicTracerProvider({ spanProcessors: [processor] }).getTracer('demo');
  return (name, attributes, work) =>
    tracer.startActiveSpan(name, { attributes }, async (span) => {
      try {
        return await work();
      } finally {
        span.end();
      }
    });
}
