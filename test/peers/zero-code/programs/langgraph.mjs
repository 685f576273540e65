import { ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import OpenAI from 'openai';
import { z } from 'zod';

/** Models of other providers do not name LangChain in their requests. */
function withoutUserAgent(url, { headers, ...init }) {
  headers.delete('user-agent');
  return fetch(url, { ...init, headers });
}

async function main() {
  const weather = tool(async ({ city }) => `rain in ${city}`, {
    name: 'weather',
    schema: z.object({ city: z.string() }),
  });
  const named = new ChatOpenAI({ model: 'small' });
  const unnamed = new ChatOpenAI({ model: 'small', configuration: { fetch: withoutUserAgent } });
  const client = new OpenAI();
  const direct = (content) => client.chat.completions.create({ model: 'large', messages: [{ role: 'user', content }] });
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('ask', async ({ messages }) => {
      const model = messages.length === 1 ? named : unnamed;
      return { messages: [await model.bindTools([weather]).invoke(messages)] };
    })
    .addNode('look', async ({ messages }) => {
      const [call] = messages.at(-1).tool_calls;
      await direct('Is it raining?');
      return { messages: [new ToolMessage({ content: await weather.invoke(call.args), tool_call_id: call.id })] };
    })
    .addEdge(START, 'ask')
    .addConditionalEdges('ask', ({ messages }) => (messages.at(-1).tool_calls?.length ? 'look' : END))
    .addEdge('look', 'ask')
    .compile();
  const { messages } = await graph.invoke({ messages: [{ role: 'user', content: 'Is it raining in Cork?' }] });
  console.log(messages.map(({ content }) => content));
  await direct('Is it raining?');
}

main();
