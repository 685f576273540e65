// An application traced by the library that the first argument names. The environment sets where its runs go.
const [library] = process.argv.slice(2);
const { trace, finish } = library === 'langsmith' ? await langsmith() : await runspan();

const search = trace(async (query) => [{ text: `found ${query}`, score: 0.5 }], 'search', 'retriever');
const rerank = trace(async (documents, count) => documents.slice(0, count), 'rerank', 'chain');
const prompt = trace(
  async ({ question, documents }) => ({ messages: [{ role: 'user', content: question }], documents }),
  'prompt',
  'prompt',
);
const model = trace(
  async function* model(messages) {
    yield { token: messages.length };
    yield { token: 2 };
  },
  'model',
  'llm',
);
const tool = trace(
  async (name) => {
    if (name === 'missing') throw new TypeError(`no tool ${name}`);
    return 42;
  },
  'tool',
  'tool',
);
const nothing = trace(async () => {}, 'nothing', 'chain');

const answer = trace(
  async (question) => {
    const documents = await rerank(await search(question.text), 1);
    const { messages } = await prompt({ question: question.text, documents });
    const tokens = [];
    for await (const chunk of model(messages)) tokens.push(chunk.token);
    const [good] = await Promise.all([tool('clock'), nothing(), tool('missing').catch(() => {})]);
    return { tokens, good };
  },
  'answer',
  'chain',
);

const failing = trace(
  async (question) => {
    await search(question);
    throw new RangeError('too far\nby a mile');
  },
  'failing',
  'chain',
);

await answer({ text: 'where', deep: { list: [1, null, 'x'] } });
await failing('who').catch(() => {});
await finish();

async function langsmith() {
  const { Client } = await import('langsmith');
  const { traceable } = await import('langsmith/traceable');
  const client = new Client();
  return {
    trace: (fn, name, run_type) => traceable(fn, { name, run_type, client }),
    finish: () => client.awaitPendingTraceBatches(),
  };
}

async function runspan() {
  const { traceable, shutdown } = await import('runspan');
  return { trace: (fn, name, runType) => traceable(fn, { name, runType }), finish: () => shutdown() };
}
