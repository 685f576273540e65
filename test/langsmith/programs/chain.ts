// A chain with a traced function in its last step.

import { RunnableLambda } from '@langchain/core/runnables';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { getCurrentRunTree, traceable } from 'langsmith/traceable';

const score = traceable(async (text: string) => text.length + getCurrentRunTree().name, {
  name: 'score',
  tags: ['inner'],
});
const model = new FakeListChatModel({ responses: ['It is raining.'] });
export const chain = RunnableLambda.from((question: string) => `Question: ${question}`)
  .withConfig({ runName: 'format' })
  .pipe(model)
  .pipe(
    RunnableLambda.from(async (message: { content: unknown }) => score(String(message.content))).withConfig({
      runName: 'rate',
    }),
  )
  .withConfig({ runName: 'chain', tags: ['lc'], metadata: { from: 'langchain' } });
