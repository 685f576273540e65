// A graph without a model. Its answers are fixed, so that every event can be expected.
import { AIMessage, ToolMessage } from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { END, interrupt, MessagesZodState, START, StateGraph } from '@langchain/langgraph';

const model = new FakeListChatModel({ responses: ['It is sunny in Kiel.'] });

const weather = new StateGraph(MessagesZodState)
  .addNode('look', ({ messages }) => {
    const call = messages.at(-1).tool_calls[0];
    return { messages: [new ToolMessage({ tool_call_id: call.id, name: call.name, content: 'sunny' })] };
  })
  .addEdge(START, 'look')
  .addEdge('look', END)
  .compile();

/** Returns what the last user message asks for. */
function wish({ messages }) {
  const text = messages.findLast((message) => message.getType() === 'human')?.content ?? '';
  if (text.includes('fail')) return 'fail';
  if (text.includes('approve')) return 'ask';
  return text.includes('wait') ? 'wait' : 'plan';
}

export const graph = new StateGraph(MessagesZodState)
  .addNode('plan', (_, config) => {
    config.writer?.({ progress: 'planned' });
    const call = { id: 'call-1', name: 'weather', args: { city: 'Kiel' } };
    return { messages: [new AIMessage({ content: '', tool_calls: [call] })] };
  })
  .addNode('weather', weather)
  .addNode('answer', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addNode('ask', () => ({ messages: [new AIMessage(`You said ${interrupt({ question: 'May I?' })}.`)] }))
  .addNode('wait', async (_, { signal }) => {
    await new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, 30_000);
      signal?.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(new Error('aborted'));
      });
    });
    return { messages: [] };
  })
  .addNode('fail', () => {
    throw new RangeError('no such city');
  })
  .addConditionalEdges(START, wish, ['plan', 'ask', 'wait', 'fail'])
  .addEdge('plan', 'weather')
  .addEdge('weather', 'answer')
  .addEdge('answer', END)
  .compile();
