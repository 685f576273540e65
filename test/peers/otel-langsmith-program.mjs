// An application traced with `langsmith` in its OpenTelemetry mode, whose spans become runs. Prints the runs as JSON.
// langsmith's client sends nothing in this mode, and the exporter of its set-up is not registered.
import { register } from 'node:module';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { RunSpanProcessor } from 'runspan/otel';
import { recordRuns } from 'runspan/testing';

// The exporter that the set-up requires is installed with the instrumentations.
const folder = new URL('./otel/', import.meta.url).href;
const hooks = `export const resolve = (name, context, next) =>
  next(name, name.startsWith('@opentelemetry/exporter-') ? { ...context, parentURL: ${JSON.stringify(folder)} } : context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

const recorder = recordRuns();
const provider = new BasicTracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(provider);
const { initializeOTEL } = await import('langsmith/experimental/otel/setup');
initializeOTEL({ globalTracerProvider: provider, skipGlobalContextManagerSetup: true });
const { Client } = await import('langsmith');
const { traceable } = await import('langsmith/traceable');
const client = new Client();

const search = traceable(async ({ query }) => [{ page_content: query, type: 'Document', metadata: {} }], {
  name: 'search',
  run_type: 'retriever',
  client,
});
const model = traceable(
  async ({ messages }) => ({
    role: 'assistant',
    content: messages[0].content,
    usage_metadata: { input_tokens: 3, output_tokens: 4, total_tokens: 7, input_token_details: { cache_read: 2 } },
  }),
  { name: 'model', run_type: 'llm', metadata: { ls_provider: 'openai', ls_model_name: 'small' }, client },
);
const failing = traceable(
  async () => {
    throw new TypeError('no such tool');
  },
  { name: 'failing', run_type: 'tool', client },
);
/** langsmith's spans have whole milliseconds, so two that start in the same one have no order. */
const nextMillisecond = async (ms = Date.now()) => {
  while (Date.now() <= ms) await new Promise(setImmediate);
};
const answer = traceable(
  async (question) => {
    const [page] = await search({ query: question });
    await nextMillisecond();
    await failing().catch(() => {});
    await nextMillisecond();
    return (await model({ messages: [{ role: 'user', content: page.page_content }] })).content;
  },
  {
    name: 'answer',
    run_type: 'chain',
    tags: ['shop', 'tea'],
    metadata: { session_id: 's1', plan: { kind: 'free' } },
    project_name: 'shop',
    client,
  },
);

await answer('tea');
await client.awaitPendingTraceBatches();
await provider.shutdown();
console.log(JSON.stringify(recorder.runs));
