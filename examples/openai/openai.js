// Asks a model with a tool, then streams the final answer. Without OPENAI_API_KEY, it asks the local model server,
// which repeats the question.
import OpenAI from 'openai';
import { traceable } from 'runspan';
import { wrapOpenAI } from 'runspan/openai';
import { startLocalModel } from '../../test/support/local-model/server.js';

const local = process.env.OPENAI_API_KEY === undefined ? await startLocalModel() : undefined;
const client = wrapOpenAI(local ? new OpenAI({ apiKey: 'none', baseURL: `${local.url}/v1` }) : new OpenAI());
const model = process.env.OPENAI_MODEL ?? 'gpt-4.1-mini';

const lookUp = traceable(async ({ query }) => `A page about ${query}`, { name: 'look_up', runType: 'tool' });

const tools = [
  {
    type: 'function',
    function: {
      name: 'look_up',
      description: 'Looks something up',
      parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
    },
  },
];

const answer = traceable(
  async (question) => {
    const messages = [{ role: 'user', content: question }];
    const first = await client.chat.completions.create({ model, messages, tools });
    const [{ message }] = first.choices;
    messages.push(message);
    for (const call of message.tool_calls ?? []) {
      const content = await lookUp(JSON.parse(call.function.arguments));
      messages.push({ role: 'tool', tool_call_id: call.id, content });
    }
    const stream = await client.chat.completions.create({
      model,
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    for await (const chunk of stream) {
      const piece = chunk.choices[0]?.delta.content ?? '';
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
