import { LangfuseSpanProcessor } from '@langfuse/otel';
import { observe } from '@langfuse/tracing';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { measure } from '../measure.mjs';

const TYPES = { chain: 'chain', retriever: 'retriever', llm: 'generation', tool: 'tool' };

const processor = new LangfuseSpanProcessor();
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [processor] }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

await measure({
  wrap: (fn, name, runType) => observe(fn, { name, asType: TYPES[runType] }),
  flush: () => processor.forceFlush(),
});
