// An application with `openai`, observed by `@opentelemetry/instrumentation-openai`, which reports messages only as log
// records: `otel-genai-program.mjs <base URL> [receiver]`. Prints the runs as JSON. With the URL of a receiver, sends the spans
// and log records there as OTLP instead, and prints no runs.
import { createRequire } from 'node:module';
import { RunLogRecordProcessor, RunSpanProcessor } from 'runspan/otel';
import { recordRuns } from 'runspan/testing';

const [baseURL, receiver] = process.argv.slice(2);
const load = createRequire(new URL('./otel/package.json', import.meta.url));
const { logs } = load('@opentelemetry/api-logs');
const { LoggerProvider, SimpleLogRecordProcessor } = load('@opentelemetry/sdk-logs');
const { OTLPLogExporter } = load('@opentelemetry/exporter-logs-otlp-proto');
const { OTLPTraceExporter } = load('@opentelemetry/exporter-trace-otlp-proto');
const { BatchSpanProcessor, NodeTracerProvider } = load('@opentelemetry/sdk-trace-node');
const { registerInstrumentations } = load('@opentelemetry/instrumentation');
const { OpenAIInstrumentation } = load('@opentelemetry/instrumentation-openai');

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
registerInstrumentations({ instrumentations: [new OpenAIInstrumentation({ captureMessageContent: true })] });

// Loaded here, because the instrumentation patches packages when they are loaded.
const { OpenAI } = load('openai');
const client = new OpenAI({ apiKey: 'none', baseURL, maxRetries: 0, logLevel: 'off' });
const tracer = tracerProvider.getTracer('application');

const lookUp = {
  type: 'function',
  function: { name: 'look_up', parameters: { type: 'object', properties: { word: { type: 'string' } } } },
};

await inSpan('chat with tools', async () => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'tea' },
  ];
  const body = { model: 'small', messages, tools: [lookUp], temperature: 0.5, max_tokens: 50, stop: 'END' };
  const { choices } = await client.chat.completions.create(body);
  const [call] = choices[0].message.tool_calls;
  const answer = { role: 'tool', tool_call_id: call.id, content: 'a drink' };
  await client.chat.completions.create({ ...body, messages: [...messages, choices[0].message, answer] });
});
await inSpan('stream', async () => {
  const stream = await client.chat.completions.create({
    model: 'small',
    messages: [{ role: 'user', content: 'tea' }],
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const _ of stream);
});
await inSpan('responses', async () => {
  const tool = { type: 'function', name: 'look_up', parameters: lookUp.function.parameters, strict: false };
  const body = { model: 'small', instructions: 'Be brief.', input: 'tea' };
  await client.responses.create(body);
  await client.responses.create({ ...body, tools: [tool], reasoning: {} });
  for await (const _ of await client.responses.create({ ...body, stream: true }));
});
await inSpan('embeddings', () =>
  client.embeddings.create({ model: 'embed', input: ['tea', 'milk'], encoding_format: 'float' }),
);
await inSpan('error', () =>
  client.chat.completions.create({ model: 'fail-400', messages: [{ role: 'user', content: 'tea' }] }).catch(() => {}),
);

await Promise.all([tracerProvider.shutdown(), loggerProvider.shutdown()]);
console.log(JSON.stringify(recorder.runs));

function inSpan(name, fn) {
  return tracer.startActiveSpan(name, async (span) => {
    await fn();
    // The instrumentation receives an answer with the application, or a turn later.
    await new Promise((resolve) => setImmediate(resolve));
    span.end();
  });
}
