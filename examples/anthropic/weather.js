import Anthropic from '@anthropic-ai/sdk';
import { traceable } from 'runspan';
import { wrapAnthropic } from 'runspan/anthropic';
import { startLocalModel } from '../../test/support/local-model/server.js';

const local = process.env.ANTHROPIC_API_KEY === undefined ? await startLocalModel() : undefined;
const client = wrapAnthropic(new Anthropic(local && { apiKey: 'none', baseURL: local.url }));
const model = process.env.ANTHROPIC_MODEL ?? 'claude-haiku-4-5';

const tools = [
  {
    name: 'weather',
    description: 'The weather of a city now.',
    input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
];
const weather = traceable(({ city }) => `It rains in ${city}`, { name: 'weather', runType: 'tool' });

/** Lets the model use its tool, and streams the final answer. */
const answer = traceable(
  async (question) => {
    const messages = [{ role: 'user', content: question }];
    const system = 'Answer in one sentence.';
    const choice = await client.messages.create({ model, max_tokens: 500, system, messages, tools });
    messages.push({ role: 'assistant', content: choice.content });
    const results = choice.content
      .filter(({ type }) => type === 'tool_use')
      .map(({ id, input }) => ({
        type: 'tool_result',
        tool_use_id: id,
        content: [{ type: 'text', text: weather(input) }],
      }));
    if (results.length > 0) messages.push({ role: 'user', content: results });
    const stream = client.messages.stream({ model, max_tokens: 500, system, messages, tools });
    stream.on('text', (text) => process.stdout.write(text));
    return stream.finalText();
  },
  { name: 'answer' },
);

await answer(process.argv[2] ?? 'Paris');
process.stdout.write('\n');
await local?.close();
