// An untouched application, started with `--import runspan/register`: `otel-one-call-program.mjs <service URL>
// <source>… <call>…`. Several sources observe each of its model calls.
import { createRequire } from 'node:module';

const [url, ...wanted] = process.argv.slice(2);
const has = (name) => wanted.includes(name);
const require = createRequire(new URL('./otel/package.json', import.meta.url));
const ownRequire = createRequire(import.meta.url);
const provider = has('sentry') ? await startSentry() : startProvider();

async function startSentry() {
  const Sentry = require('@sentry/node-10');
  const { RunSpanProcessor } = await import('runspan/otel');
  Sentry.init({
    dsn: 'http://key@127.0.0.1:9/1',
    tracesSampleRate: 1,
    openTelemetrySpanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })],
  });
  return Sentry.getClient().traceProvider;
}

function startProvider() {
  const { NodeTracerProvider } = require('@opentelemetry/sdk-trace-node');
  const created = new NodeTracerProvider();
  created.register();
  return created;
}

function instrumented(name, source, instrumentation, className, options) {
  if (has(source)) {
    const { [className]: Instrumentation } = require(instrumentation);
    const created = new Instrumentation(options);
    created.setTracerProvider(provider);
    require('@opentelemetry/instrumentation').registerInstrumentations({ instrumentations: [created] });
  }
  return require(name);
}

const INSTRUMENTATIONS = [
  ['openai', 'openinference', '@arizeai/openinference-instrumentation-openai', 'OpenAIInstrumentation'],
  ['openai', 'traceloop', '@traceloop/instrumentation-openai', 'OpenAIInstrumentation', { enrichTokens: false }],
  ['openai', 'otel', '@opentelemetry/instrumentation-openai', 'OpenAIInstrumentation'],
  [
    '@anthropic-ai/sdk',
    'openinference-anthropic',
    '@arizeai/openinference-instrumentation-anthropic',
    'AnthropicInstrumentation',
  ],
];
for (const row of INSTRUMENTATIONS) instrumented(...row);

const { OpenAI } = require('openai');
const { default: Anthropic } = require('@anthropic-ai/sdk');
const { wrapOpenAI } = await import('runspan/openai');
const { wrapAnthropic } = await import('runspan/anthropic');

let openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'key', maxRetries: 0 });
let anthropic = new Anthropic({ baseURL: url, apiKey: 'key', maxRetries: 0 });
if (has('wrapper')) {
  openai = wrapOpenAI(openai);
  anthropic = wrapAnthropic(anthropic);
}
if (has('langfuse')) {
  const { observeOpenAI } = require('@langfuse/openai');
  require('@langfuse/tracing').setLangfuseTracerProvider(provider);
  openai = observeOpenAI(openai);
}

const messages = [{ role: 'user', content: 'Is it raining?' }];
const question = { model: 'small', messages };
const claude = { ...question, max_tokens: 100 };

const calls = {
  'chat.create': () => openai.chat.completions.create(question),
  'chat.stream': async () => {
    const options = { stream: true, stream_options: { include_usage: true } };
    for await (const _ of await openai.chat.completions.create({ ...question, ...options }));
  },
  'responses.stream': async () => {
    for await (const _ of await openai.responses.create({ model: 'small', input: 'Is it raining?', stream: true }));
  },
  'messages.create': () => anthropic.messages.create(claude),
  'messages.stream': () => anthropic.messages.stream(claude).finalMessage(),
  langchain: async () => {
    const { ChatOpenAI } = ownRequire('@langchain/openai');
    const configuration = { baseURL: `${url}/v1` };
    await new ChatOpenAI({ configuration, apiKey: 'key', maxRetries: 0, model: 'small' }).invoke('Is it raining?');
  },
};

const { trace } = require('@opentelemetry/api');
await trace.getTracer('app').startActiveSpan('answer', async (span) => {
  for (const name of Object.keys(calls)) if (has(name)) await calls[name]();
  span.end();
});
