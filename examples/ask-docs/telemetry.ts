import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { RunSpanProcessor } from 'runspan/otel';

/** Sets up OpenTelemetry so that spans become runs. `shutdown` of the returned provider delivers them. */
export function startTelemetry(): BasicTracerProvider {
  const provider = new BasicTracerProvider({ spanProcessors: [new RunSpanProcessor()] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(provider);
  return provider;
}
