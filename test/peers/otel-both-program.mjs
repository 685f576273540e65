// An application whose model calls are observed twice, by an instrumentation and by a runspan wrapper:
// `otel-both-program.mjs <instrumentation> <base URL> <wrapper>…`. Prints the runs and the application's results with
// each wrapper as JSON.
import { createRequire } from 'node:module';
import { traceable } from 'runspan';
import { RunspanCallbackHandler } from 'runspan/langchain';
import { wrapOpenAI } from 'runspan/openai';
import { RunSpanProcessor } from 'runspan/otel';
import { recordRuns } from 'runspan/testing';

const [instrumentation, baseURL, ...wrappers] = process.argv.slice(2);
const require = createRequire(new URL('./otel/package.json', import.meta.url));
const ownRequire = createRequire(import.meta.url);
const { trace } = require('@opentelemetry/api');
const { NodeTracerProvider } = require('@opentelemetry/sdk-trace-node');
const { registerInstrumentations } = require('@opentelemetry/instrumentation');
const { UndiciInstrumentation } = require('@opentelemetry/instrumentation-undici');

const recorder = recordRuns();
/** Number of spans that the instrumentation has started. */
let seen = 0;
const counter = {
  onStart: ({ instrumentationScope: { name } }) => {
    if (/openai/.test(name)) seen++;
  },
  onEnd: () => {},
  forceFlush: async () => {},
  shutdown: async () => {},
};
const provider = new NodeTracerProvider({ spanProcessors: [counter, new RunSpanProcessor({ shouldExport: 'all' })] });
provider.register();
const instrumentations = {
  openinference: () => new (require('@arizeai/openinference-instrumentation-openai').OpenAIInstrumentation)(),
  traceloop: () => new (require('@traceloop/instrumentation-openai').OpenAIInstrumentation)({ enrichTokens: false }),
  'traceloop-0.22': () =>
    new (require('@traceloop/instrumentation-openai-0.22').OpenAIInstrumentation)({ enrichTokens: false }),
  otel: () => new (require('@opentelemetry/instrumentation-openai').OpenAIInstrumentation)(),
};
const own = instrumentations[instrumentation]?.();
registerInstrumentations({ instrumentations: [new UndiciInstrumentation(), ...(own === undefined ? [] : [own])] });
// By default, this instrumentation rejects the package as too new.
if (instrumentation === 'traceloop-0.22') {
  for (const load of [require, ownRequire]) own.manuallyInstrument(load('openai').OpenAI);
}

const options = { baseURL, apiKey: 'key', maxRetries: 0 };
const messages = [{ role: 'user', content: 'Rain?' }];

const deeds = { wrapOpenAI: () => openai(wrapOpenAI), streamedResponse, handler };

const results = [];
for (const wrapper of wrappers) {
  const earlier = { seen, runs: recorder.runs.length };
  const result = await trace.getTracer('app').startActiveSpan('answer', async (span) => {
    try {
      return await deeds[wrapper]();
    } finally {
      span.end();
    }
  });
  await provider.forceFlush();
  results.push({ result, seen: seen - earlier.seen, runs: recorder.runs.slice(earlier.runs) });
}
process.stdout.write(JSON.stringify(results));

async function openai(wrap) {
  const { OpenAI } = require('openai');
  const client = wrap(new OpenAI(options));
  const ask = traceable(async function ask(model) {
    const { choices } = await client.chat.completions.create({ model, messages });
    return choices[0].message.content;
  });
  const answers = [await ask('small')];
  const stream = await client.chat.completions.create({
    model: 'streamed',
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) answers.push(chunk.choices[0]?.delta.content ?? '');
  const { data } = await client.embeddings.create({ model: 'vectors', input: ['Rain?'] });
  answers.push(data.length);
  answers.push(await client.chat.completions.create({ model: 'broken', messages }).catch(({ status }) => status));
  return answers;
}

async function streamedResponse() {
  const client = wrapOpenAI(new (require('openai').OpenAI)(options));
  const events = [];
  const stream = await client.responses.create({ model: 'small', input: 'Rain?', stream: true });
  for await (const { type } of stream) events.push(type);
  return events.at(-1);
}

async function handler() {
  const { ChatOpenAI } = ownRequire('@langchain/openai');
  const { ChatPromptTemplate } = ownRequire('@langchain/core/prompts');
  const ask = async (model) => {
    const chain = ChatPromptTemplate.fromMessages([['human', '{question}']]).pipe(
      new ChatOpenAI({ configuration: { baseURL }, apiKey: 'key', maxRetries: 0, model }),
    );
    const { content } = await chain.invoke({ question: 'Rain?' }, { callbacks: [new RunspanCallbackHandler()] });
    return content;
  };
  const two = await Promise.all([ask('small'), ask('small')]);
  const alone = new ChatOpenAI({ configuration: { baseURL }, apiKey: 'key', maxRetries: 0, model: 'small' });
  const { content } = await alone.invoke('Rain?', { callbacks: [new RunspanCallbackHandler()] });
  return [...two, content];
}
