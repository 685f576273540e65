// Applications that Traceloop instruments: `traceloop-program.mjs <deed> <base URL>`. Prints the runs that the spans
// become as JSON.
import { createRequire } from 'node:module';
import { RunSpanProcessor } from 'runspan/otel';
import { recordRuns } from 'runspan/testing';

const [deed, baseURL] = process.argv.slice(2);
const require = createRequire(new URL('./otel/package.json', import.meta.url));
const { trace } = require('@opentelemetry/api');

const recorder = recordRuns();
const result = await { langchain, functions, vectors }[deed]();
process.stdout.write(JSON.stringify({ result, runs: recorder.runs }));

/** Sets up a provider with one instrumentation, like an application. */
function provide(instrumentation) {
  const { NodeTracerProvider } = require('@opentelemetry/sdk-trace-node');
  const provider = new NodeTracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
  provider.register();
  instrumentation.setTracerProvider(provider);
}

function inSpan(work) {
  return trace.getTracer('app').startActiveSpan('answer', async (span) => {
    try {
      return await work();
    } finally {
      span.end();
    }
  });
}

function client() {
  const { OpenAI } = require('openai');
  return new OpenAI({ baseURL, apiKey: 'key', maxRetries: 0 });
}

async function langchain() {
  const { LangChainInstrumentation } = require('@traceloop/instrumentation-langchain');
  provide(new LangChainInstrumentation());
  const { FakeListChatModel } = require('@langchain/core/utils/testing');
  const { ChatPromptTemplate } = require('@langchain/core/prompts');
  const { tool } = require('@langchain/core/tools');
  const chain = ChatPromptTemplate.fromMessages([
    ['system', 'Be brief.'],
    ['human', '{question}'],
  ]).pipe(new FakeListChatModel({ responses: ['It rains.'] }));
  const weather = tool(async ({ city }) => `rain in ${city}`, {
    name: 'weather',
    description: 'The weather.',
    schema: { type: 'object', properties: { city: { type: 'string' } } },
  });
  const failing = tool(async () => Promise.reject(new RangeError('too far')), {
    name: 'distance',
    description: 'The distance.',
    schema: { type: 'object', properties: {} },
  });
  return inSpan(async () => {
    const { content } = await chain.invoke({ question: 'Rain?' });
    const answer = await weather.invoke({ city: 'Cork' });
    const error = await failing.invoke({}).catch(({ message }) => message);
    return [content, answer, error];
  });
}

/** Traceloop's own SDK, which sets up everything itself. */
function initialize(instrumentModules) {
  const traceloop = require('@traceloop/node-server-sdk');
  traceloop.initialize({
    appName: 'trip',
    exporter: { export: (_, done) => done({ code: 0 }), shutdown: async () => {} },
    processor: new RunSpanProcessor({ shouldExport: 'all' }),
    disableBatch: true,
    silenceInitializationMessage: true,
    traceloopSyncEnabled: false,
    baseUrl: baseURL,
    instrumentModules,
  });
  return traceloop;
}

async function functions() {
  const traceloop = initialize({ openAI: require('openai').OpenAI });
  const model = client();
  class Trip {
    async pack(things) {
      return [...things, 'umbrella'];
    }
  }
  // Applies the decorator like a compiler does for legacy decorators.
  const descriptor = Object.getOwnPropertyDescriptor(Trip.prototype, 'pack');
  traceloop.task({ version: 2 })(Trip.prototype, 'pack', descriptor);
  Object.defineProperty(Trip.prototype, 'pack', descriptor);
  const say = async (question) => {
    const messages = [{ role: 'user', content: question }];
    const { choices } = await model.chat.completions.create({ model: 'small', messages });
    return choices[0].message.content;
  };
  const plan = async (city, days) => {
    const weather = await traceloop.withTool({ name: 'weather' }, async ({ at }) => ({ at, rain: true }), { at: city });
    const things = await new Trip().pack(['coat']);
    const text = await traceloop.withTask({ name: 'say' }, say, 'Rain?');
    const failed = await traceloop
      .withTask({ name: 'book' }, async () => {
        await traceloop.withTool({ name: 'pay' }, () => 12.5);
        throw new RangeError('too far');
      })
      .catch(({ message }) => message);
    return { days, rain: weather.rain, things, text, failed };
  };
  const associationProperties = { session_id: 's1', user_id: 'u1' };
  return traceloop.withWorkflow({ name: 'plan', version: 1, associationProperties }, plan, 'Cork', 2);
}

async function vectors() {
  /** Has the name and the results of Qdrant's client, without a server. */
  class QdrantClient {
    async search(_, { limit }) {
      return [
        { id: 7, score: 0.75, vector: [0.5, 0.25], payload: { title: 'Cats' } },
        { id: 9, score: 0.5, payload: { title: 'Dogs' } },
      ].slice(0, limit);
    }
    async upsert() {}
    async retrieve() {}
    async delete() {}
  }
  const traceloop = initialize({ qdrant: { QdrantClient } });
  const byHand = ({ span }) => {
    span.reportQuery({ queryVector: [0.5, 0.25, 0.125] });
    span.reportResults({
      results: [
        { ids: 'a', scores: 0.75, distances: 0.25, metadata: { page: 3 }, vectors: '[0.5]', documents: 'A cat.' },
      ],
    });
    return 'found';
  };
  return traceloop.withWorkflow({ name: 'find' }, async () => {
    const matches = await new QdrantClient().search('pages', { vector: [0.5, 0.25], limit: 2 });
    const found = traceloop.withVectorDBCall({ vendor: 'chroma', type: 'query' }, byHand);
    const text = traceloop.withLLMCall({ vendor: 'llama', type: 'completion' }, ({ span }) => {
      span.reportRequest({ model: 'llama', messages: [{ role: 'user', content: 'Cats?' }] });
      span.reportResponse({
        model: 'llama-3',
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
        completions: [{ finish_reason: 'stop', message: { role: 'assistant', content: 'Two.' } }],
      });
      return 'Two.';
    });
    return [matches.length, found, text];
  });
}
