import { ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';

async function main() {
  const weather = tool(async ({ city }) => `rain in ${city}`, {
    name: 'weather',
    schema: z.object({ city: z.string() }),
  });
  const model = new ChatOpenAI({ model: 'small' });
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('ask', async ({ messages }) => ({ messages: [await model.bindTools([weather]).invoke(messages)] }))
    .addNode('look', async ({ messages }) => {
      const [call] = messages.at(-1).tool_calls;
      return { messages: [new ToolMessage({ content: await weather.invoke(call.args), tool_call_id: call.id })] };
    })
    .addEdge(START, 'ask')
    .addConditionalEdges('ask', ({ messages }) => (messages.at(-1).tool_calls?.length ? 'look' : END))
    .addEdge('look', 'ask')
    .compile();
  const { messages } = await graph.invoke({ messages: [{ role: 'user', content: 'Is it raining in Cork?' }] });
  console.log(messages.map(({ content }) => content));
}

main();
