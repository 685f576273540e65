// Callbacks and runnables that LangSmith's package makes for LangChain.

import { awaitAllCallbacks } from '@langchain/core/callbacks/promises';
import { RunnableLambda, RunnableSequence } from '@langchain/core/runnables';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { getLangchainCallbacks, RunnableTraceable } from 'langsmith/langchain';
import { RunTree } from 'langsmith/run_trees';
import { traceable } from 'langsmith/traceable';

const model = new FakeListChatModel({ responses: ['yes'] });

await traceable(
  async (question: string) => {
    const callbacks = (await getLangchainCallbacks()) ?? [];
    const { content } = await model.invoke(question, { callbacks, runName: 'asked' });
    return content;
  },
  { name: 'answer' },
)('why');

const double = traceable(async (n: number) => n * 2, { name: 'double' });
await traceable(
  async (n: number) => {
    const callbacks = (await getLangchainCallbacks()) ?? [];
    const chain = RunnableSequence.from([RunnableTraceable.from(double), RunnableLambda.from((m: number) => m + 1)]);
    return chain.invoke(n, { callbacks, runName: 'calculate' });
  },
  { name: 'around' },
)(2);

const rate = traceable(async (text: string) => text.length, { name: 'rate' });
const step = RunnableLambda.from(async (text: string, config) => {
  const tree = RunTree.fromRunnableConfig(config, { name: 'by hand', inputs: { text }, metadata: { own: true } });
  await tree.postRun();
  const length = await rate(tree as never, text);
  await tree.end({ length });
  await tree.patchRun();
  return length;
}).withConfig({ runName: 'step' });
await traceable(async () => step.invoke('four', { callbacks: (await getLangchainCallbacks()) ?? [] }), {
  name: 'above',
})();
await awaitAllCallbacks();
