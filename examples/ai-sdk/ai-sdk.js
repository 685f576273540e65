// Embeds a question, and streams the answer of a model that may use a tool. Without OPENAI_API_KEY, it asks the local
// model server, which repeats the question.
import { createOpenAI } from '@ai-sdk/openai';
import * as ai from 'ai';
import { traceable } from 'runspan';
import { wrapAISDK } from 'runspan/ai';
import { z } from 'zod';
import { startLocalModel } from '../../test/support/local-model/server.js';

const { streamText, embedMany } = wrapAISDK(ai);

const local = process.env.OPENAI_API_KEY === undefined ? await startLocalModel() : undefined;
const openai = createOpenAI(local && { apiKey: 'none', baseURL: `${local.url}/v1` });
const model = openai.chat(process.env.OPENAI_MODEL ?? 'gpt-4.1-mini');

const tools = {
  look_up: ai.tool({
    description: 'Looks something up',
    inputSchema: z.object({ query: z.string() }),
    execute: async ({ query }) => `A page about ${query}`,
  }),
};

const answer = traceable(
  async (question) => {
    await embedMany({ model: openai.embedding('text-embedding-3-small'), values: [question] });
    const { textStream } = streamText({ model, tools, stopWhen: ai.stepCountIs(3), prompt: question });
    let text = '';
    for await (const piece of textStream) {
      process.stdout.write(piece);
      text += piece;
    }
    process.stdout.write('\n');
    return text;
  },
  { name: 'answer' },
);

await answer('tea');
await local?.close();
