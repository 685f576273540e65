/** langfuse: functions wrapped in `observe`, its span processor, OTLP as JSON. */
import { LangfuseSpanProcessor } from '@langfuse/otel';
import { observe, startObservation } from '@langfuse/tracing';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { measure } from '../../measure.mjs';
import { isStream } from '../../workloads/stream.mjs';

const TYPES = { chain: 'chain', retriever: 'retriever', llm: 'generation', tool: 'tool' };

const processor = new LangfuseSpanProcessor();
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [processor] }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

await measure({
  wrap: (fn, name, runType) =>
    isStream(fn) ? observeStream(fn, name, TYPES[runType]) : observe(fn, { name, asType: TYPES[runType] }),
  flush: () => processor.forceFlush(),
});

/** `observe` records the generator itself as the output and ends immediately. */
function observeStream(fn, name, asType) {
  return async function* (input) {
    const observation = startObservation(name, { input }, { asType });
    const output = [];
    for await (const chunk of fn(input)) {
      output.push(chunk);
      yield chunk;
    }
    observation.update({ output }).end();
  };
}
