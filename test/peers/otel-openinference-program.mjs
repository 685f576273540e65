// An application that OpenInference's instrumentations and helpers observe: `otel-openinference-program.mjs <what>
// <base URL>`. Prints the runs that its spans become as JSON.
import { load } from './otel/load.mjs';
import { recording } from './otel-recording.mjs';

const [what, baseURL] = process.argv.slice(2);
const { provider, print } = recording();
const deeds = { chat, responses, embeddings, failure, langchain, helpers, hidden };
await deeds[what]();
// Some spans end after the call that they describe.
await new Promise((resolve) => setImmediate(resolve));
print();

async function client(traceConfig) {
  const { OpenAIInstrumentation } = await load('@arizeai/openinference-instrumentation-openai');
  const { default: OpenAI } = await load('openai');
  const instrumentation = new OpenAIInstrumentation({ tracerProvider: provider, traceConfig });
  instrumentation.manuallyInstrument(OpenAI);
  return new OpenAI({ baseURL, apiKey: 'key', maxRetries: 0 });
}

async function chat() {
  const openai = await client();
  const parameters = { type: 'object', properties: { city: { type: 'string' } } };
  const tools = [{ type: 'function', function: { name: 'weather', description: 'Tells it.', parameters } }];
  const messages = [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Cork' },
        { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
      ],
    },
  ];
  const asked = { model: 'gpt-4o', temperature: 0.5, tools, messages };
  const { choices } = await openai.chat.completions.create(asked);
  const { message } = choices[0];
  messages.push(message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'rain' });
  const stream = await openai.chat.completions.create({
    ...asked,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const _ of stream);
}

async function responses() {
  const openai = await client();
  const { output_text: said } = await openai.responses.create({
    model: 'gpt-5',
    instructions: 'Be brief.',
    input: 'Hello there',
    reasoning: { effort: 'low' },
  });
  const stream = await openai.responses.create({ model: 'gpt-5', input: said, stream: true });
  for await (const _ of stream);
}

async function embeddings() {
  const openai = await client();
  const asked = { model: 'text-embedding-3-small', dimensions: 4, encoding_format: 'float' };
  await openai.embeddings.create({ ...asked, input: ['one two', 'three'] });
}

async function failure() {
  const openai = await client();
  await openai.responses.create({ model: 'fail-400', input: 'Hi' }).catch(() => {});
  await openai.chat.completions
    .create({ model: 'fail-400', messages: [{ role: 'user', content: 'Hi' }] })
    .catch(() => {});
}

async function hidden() {
  const openai = await client({ hideInputText: true, hideOutputs: true, hideInputImages: true });
  const content = [
    { type: 'text', text: 'my secret' },
    { type: 'image_url', image_url: { url: 'https://secret.example/b.png' } },
  ];
  await openai.chat.completions.create({ model: 'gpt-4o', messages: [{ role: 'user', content }] });
}

async function langchain() {
  const { LangChainInstrumentation } = await load('@arizeai/openinference-instrumentation-langchain');
  const manager = await load('@langchain/core/callbacks/manager');
  const { FakeListChatModel, FakeRetriever } = await load('@langchain/core/utils/testing');
  const { ChatPromptTemplate } = await load('@langchain/core/prompts');
  const { RunnableLambda } = await load('@langchain/core/runnables');
  const { StringOutputParser } = await load('@langchain/core/output_parsers');
  const { tool } = await load('@langchain/core/tools');
  new LangChainInstrumentation({ tracerProvider: provider }).manuallyInstrument(manager);

  const retriever = new FakeRetriever({ output: [{ pageContent: 'A cat.', metadata: { page: 3 } }] });
  const purr = tool(async ({ times }) => 'purr '.repeat(times).trim(), {
    name: 'purr',
    description: 'Purrs.',
    schema: { type: 'object', properties: { times: { type: 'number' } }, required: ['times'] },
  });
  const prompt = ChatPromptTemplate.fromMessages([
    ['system', 'Use: {context}'],
    ['user', '{question}'],
  ]);
  const chain = RunnableLambda.from(async (question, config) => {
    const [found] = await retriever.invoke(question, config);
    await purr.invoke({ times: 2 }, config);
    return { question, context: found.pageContent };
  })
    .pipe(prompt)
    .pipe(new FakeListChatModel({ responses: ['Meow'] }))
    .pipe(new StringOutputParser())
    .withConfig({ runName: 'ask' });
  await chain.invoke('cats?', { metadata: { thread_id: 't1' } });
}

async function helpers() {
  const core = await load('@arizeai/openinference-core');
  const { context } = await load('@opentelemetry/api');
  const tracer = provider.getTracer('shop');
  const search = core.withSpan(async (query) => [query], {
    name: 'search',
    kind: 'RETRIEVER',
    tracer,
    processOutput: (found) =>
      core.getRetrieverAttributes({ documents: found.map((content) => ({ content, score: 1 })) }),
  });
  const call = core.traceTool(async (city) => ({ city, rain: true }), { name: 'weather', tracer });
  const model = core.withSpan(async () => 'Rain.', {
    name: 'model',
    kind: 'LLM',
    tracer,
    processOutput: () =>
      core.getLLMAttributes({
        provider: 'azure',
        modelName: 'gpt-4o',
        invocationParameters: { temperature: 0 },
        inputMessages: [{ role: 'user', content: 'Rain?' }],
        outputMessages: [{ role: 'assistant', content: 'Rain.' }],
        tokenCount: { prompt: 1, completion: 2, total: 3, promptDetails: { cacheRead: 1 } },
      }),
  });
  const judge = core.traceEvaluator(
    async () => {
      throw new TypeError('no verdict');
    },
    { name: 'judge', tracer },
  );
  const answer = core.traceChain(
    async ({ question }) => {
      await search(question);
      await call('Cork');
      await model();
      await judge().catch(() => {});
      return 'Rain.';
    },
    { name: 'answer', tracer },
  );
  const agent = core.traceAgent((question) => answer({ question }), { name: 'agent', tracer });
  let inside = core.setSession(context.active(), { sessionId: 's1' });
  inside = core.setUser(inside, { userId: 'u1' });
  inside = core.setTags(inside, ['a', 'b']);
  inside = core.setMetadata(inside, { topic: 'weather' });
  await context.with(inside, () => agent('Rain?'));
}
