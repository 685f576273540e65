// LangChain with its own tracer: a chain in a traced function, a traced function in a chain, and both alone.

import { awaitAllCallbacks } from '@langchain/core/callbacks/promises';
import { RunnableLambda } from '@langchain/core/runnables';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { getCurrentRunTree, traceable } from 'langsmith/traceable';

const score = traceable(async (text: string) => text.length + getCurrentRunTree().name, {
  name: 'score',
  tags: ['inner'],
});
const model = new FakeListChatModel({ responses: ['It is raining.'] });
const chain = RunnableLambda.from((question: string) => `Question: ${question}`)
  .withConfig({ runName: 'format' })
  .pipe(model)
  .pipe(
    RunnableLambda.from(async (message: { content: unknown }) => score(String(message.content))).withConfig({
      runName: 'rate',
    }),
  )
  .withConfig({ runName: 'chain', tags: ['lc'], metadata: { from: 'langchain' } });

await traceable(async (question: string) => chain.invoke(question), { name: 'answer', metadata: { user: 'u1' } })(
  'why',
);
await awaitAllCallbacks();
await chain.invoke('alone');
await awaitAllCallbacks();
