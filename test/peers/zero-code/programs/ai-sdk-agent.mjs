import { openai } from '@ai-sdk/openai';
import { ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';

async function main() {
  const weather = tool({
    description: 'The weather of a city',
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => `rain in ${city}`,
  });
  const agent = new ToolLoopAgent({ model: openai.chat('small'), tools: { weather } });
  const { text, steps } = await agent.generate({ prompt: 'Is it raining in Cork?' });
  console.log(text, steps.length);
}

main();
