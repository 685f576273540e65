import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { RunSpanProcessor } from 'runspan/otel';

/** Sets up OpenTelemetry so that spans become runs. `shutdown` of the returned provider delivers them. */
export function startTelemetry(): TracerProvider {
  const provider = new TracerProvider({ spanProcessors: [new RunSpanProcessor()] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(provider);
  return provider;
}
