// An application that OpenInference's instrumentation of LangChain and its helpers observe. Prints the runs that its spans
// become as JSON.
import { RunSpanProcessor } from 'runspan/otel';
import { recordRuns } from 'runspan/testing';
import { load } from './otel/load.mjs';

const { NodeTracerProvider } = await load('@opentelemetry/sdk-trace-node');
const recorder = recordRuns();
const provider = new NodeTracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
provider.register();
await langchain();
await helpers();
process.stdout.write(JSON.stringify(recorder.runs));

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
