import { openai } from '@ai-sdk/openai';
import { ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';

const weather = tool({
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }: { city: string }) => `rain in ${city}`,
});
const agent = new ToolLoopAgent({ model: openai.chat('small'), tools: { weather } });
void agent.generate({ prompt: 'Is it raining in Cork?' }).then(({ text, steps }) => console.log(text, steps.length));
