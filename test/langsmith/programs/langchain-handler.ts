// A chain in a traced function, with LangChain's own tracer and with the handler of runspan.

import { awaitAllCallbacks } from '@langchain/core/callbacks/promises';
import { RunnableLambda } from '@langchain/core/runnables';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { getCurrentRunTree, traceable } from 'langsmith/traceable';
import { RunspanCallbackHandler } from 'runspan/langchain';

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

const handler = new RunspanCallbackHandler();
await traceable(async (question: string) => chain.invoke(question, { callbacks: [handler as never] }), {
  name: 'answer',
  metadata: { user: 'u1' },
})('why');
await awaitAllCallbacks();
