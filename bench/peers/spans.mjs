/** The functions in OpenTelemetry spans with OpenInference attributes: kind, inputs and outputs as JSON text. */
import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { measure } from '../measure.mjs';
import { isStream } from '../workloads/stream.mjs';

const KINDS = { chain: 'CHAIN', retriever: 'RETRIEVER', llm: 'LLM', tool: 'TOOL' };

/** Measures the spans with one processor. `delivered` resolves when the service has received them. */
export async function measureSpans(processor, delivered = async () => {}) {
  const provider = new TracerProvider({ spanProcessors: [processor] });
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const tracer = trace.getTracer('bench');
  const inSpan = (fn, name, runType) =>
    isStream(fn)
      ? (input) => recordStream(tracer.startSpan(name), fn, runType, input)
      : (input) => tracer.startActiveSpan(name, (span) => record(span, fn, runType, input));
  const flush = async () => {
    await provider.forceFlush();
    await delivered();
  };
  await measure({ wrap: inSpan, flush });
}

async function record(span, fn, runType, input) {
  describeInput(span, runType, input);
  try {
    const output = await fn(input);
    describeOutput(span, output);
    if (runType === 'llm' && output.usage !== undefined) describeModel(span, input, output);
    return output;
  } catch (error) {
    span.recordException(error);
    span.setStatus({ code: SpanStatusCode.ERROR });
    throw error;
  } finally {
    span.end();
  }
}

async function* recordStream(span, fn, runType, input) {
  describeInput(span, runType, input);
  const outputs = [];
  for await (const chunk of fn(input)) {
    outputs.push(chunk);
    yield chunk;
  }
  describeOutput(span, { outputs });
  span.end();
}

function describeInput(span, runType, input) {
  span.setAttribute('openinference.span.kind', KINDS[runType]);
  span.setAttribute('input.value', JSON.stringify(input));
  span.setAttribute('input.mime_type', 'application/json');
}

function describeOutput(span, output) {
  span.setAttribute('output.value', JSON.stringify(output));
  span.setAttribute('output.mime_type', 'application/json');
}

function describeModel(span, { model }, { usage }) {
  span.setAttribute('llm.model_name', model);
  span.setAttribute('llm.token_count.prompt', usage.input_tokens);
  span.setAttribute('llm.token_count.completion', usage.output_tokens);
}
