// An agent of LangGraph with a tool. The variable `TOOL_RESULT` changes the result of the tool.
import { tool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';

const weather = tool(async ({ city }) => process.env.TOOL_RESULT ?? `rain in ${city}`, {
  name: 'weather',
  schema: z.object({ city: z.string() }),
});
const agent = createReactAgent({ llm: new ChatOpenAI({ model: 'small' }), tools: [weather] });
const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'Is it raining in Cork?' }] });
console.log(messages.map(({ content }) => content));
