// An application with `openai`, whose calls an instrumentation observes: `otel-instrumentations-program.mjs
// <instrumentation> <base URL> [receiver]`. Prints the runs as JSON. With the URL of a receiver, sends the spans and log
// records there as OTLP instead. WRAPPED=1 also wraps the client, and observes its HTTP requests.
import { createRequire } from 'node:module';
import { wrapOpenAI } from 'runspan/openai';
import { RunLogRecordProcessor, RunSpanProcessor } from 'runspan/otel';
import { recordRuns } from 'runspan/testing';

const [name, baseURL, receiver] = process.argv.slice(2);
const isWrapped = process.env.WRAPPED === '1';
const load = createRequire(new URL('./otel/package.json', import.meta.url));
const { logs } = load('@opentelemetry/api-logs');
const { LoggerProvider, SimpleLogRecordProcessor } = load('@opentelemetry/sdk-logs');
const { OTLPLogExporter } = load('@opentelemetry/exporter-logs-otlp-proto');
const { OTLPTraceExporter } = load('@opentelemetry/exporter-trace-otlp-proto');
const { BatchSpanProcessor, NodeTracerProvider } = load('@opentelemetry/sdk-trace-node');
const { registerInstrumentations } = load('@opentelemetry/instrumentation');
const { UndiciInstrumentation } = load('@opentelemetry/instrumentation-undici');

const traceConfig = { hideInputText: true, hideOutputs: true, hideInputImages: true };
const INSTRUMENTATIONS = {
  // Reports messages only as log records.
  otel: ['@opentelemetry/instrumentation-openai', { captureMessageContent: true }],
  openinference: ['@arizeai/openinference-instrumentation-openai'],
  'openinference, hidden': ['@arizeai/openinference-instrumentation-openai', { traceConfig }],
  traceloop: ['@traceloop/instrumentation-openai', { enrichTokens: false }],
  'traceloop-0.22': ['@traceloop/instrumentation-openai-0.22', { enrichTokens: false }],
};

const recorder = recordRuns();
const [spanProcessor, logProcessor] =
  receiver === undefined
    ? [new RunSpanProcessor({ shouldExport: 'all' }), new RunLogRecordProcessor()]
    : [
        new BatchSpanProcessor(new OTLPTraceExporter({ url: `${receiver}/v1/traces` })),
        new SimpleLogRecordProcessor({ exporter: new OTLPLogExporter({ url: `${receiver}/v1/logs` }) }),
      ];
const tracerProvider = new NodeTracerProvider({ spanProcessors: [spanProcessor] });
tracerProvider.register();
const loggerProvider = new LoggerProvider({ processors: [logProcessor] });
logs.setGlobalLoggerProvider(loggerProvider);
const [installed, options] = INSTRUMENTATIONS[name];
const instrumentation = new (load(installed).OpenAIInstrumentation)(options);
registerInstrumentations({
  instrumentations: [instrumentation, ...(isWrapped ? [new UndiciInstrumentation()] : [])],
});

// Loaded here, because the instrumentation patches packages when they are loaded.
const { OpenAI } = load('openai');
// By default, this instrumentation rejects the package as too new.
if (name === 'traceloop-0.22') instrumentation.manuallyInstrument(OpenAI);
const bare = new OpenAI({ apiKey: 'none', baseURL, maxRetries: 0, logLevel: 'off' });
const client = isWrapped ? wrapOpenAI(bare) : bare;
const tracer = tracerProvider.getTracer('application');

const parameters = { type: 'object', properties: { word: { type: 'string' } } };
const lookUp = { type: 'function', function: { name: 'look_up', parameters } };
const tea = [{ role: 'user', content: 'tea' }];

await inSpan('chat', async () => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ type: 'text', text: 'tea' }] },
  ];
  const body = { model: 'small', messages, tools: [lookUp], temperature: 0.5, max_tokens: 50, stop: 'END' };
  const { choices } = await client.chat.completions.create(body);
  const [call] = choices[0].message.tool_calls;
  const answer = { role: 'tool', tool_call_id: call.id, content: 'a drink' };
  await client.chat.completions.create({ ...body, messages: [...messages, choices[0].message, answer] });
});
await inSpan('stream', async () => {
  const body = { model: 'small', messages: tea, stream: true, stream_options: { include_usage: true } };
  for await (const _ of await client.chat.completions.create(body));
});
await inSpan('responses', async () => {
  const tool = { type: 'function', name: 'look_up', parameters, strict: false };
  const body = { model: 'small', instructions: 'Be brief.', input: 'tea' };
  await client.responses.create({ ...body, tools: [tool], reasoning: {} });
  for await (const _ of await client.responses.create({ ...body, stream: true }));
});
await inSpan('embeddings', () =>
  client.embeddings.create({ model: 'embed', input: ['tea', 'milk'], encoding_format: 'float' }),
);
await inSpan('error', () => client.chat.completions.create({ model: 'fail-400', messages: tea }).catch(() => {}));

await Promise.all([tracerProvider.forceFlush(), loggerProvider.shutdown()]);
console.log(JSON.stringify(recorder.runs));

function inSpan(spanName, fn) {
  return tracer.startActiveSpan(spanName, async (span) => {
    await fn();
    // An instrumentation receives an answer with the application, or a turn later.
    await new Promise((resolve) => setImmediate(resolve));
    span.end();
  });
}
