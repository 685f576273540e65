// Calls of the OpenAI SDK.
import type { Run } from 'langsmith/schemas';
import { getCurrentRunTree, traceable } from 'langsmith/traceable';
import { wrapOpenAI } from 'langsmith/wrappers';
import OpenAI from 'openai';

const client = wrapOpenAI(new OpenAI({ baseURL: process.env.MODEL_URL, apiKey: 'key' }), {
  tags: ['wrapped'],
  metadata: { team: 'search' },
});
const messages = [{ role: 'user' as const, content: 'Is it raining?' }];

const answer = await client.chat.completions.create({ model: 'gpt-4o', messages, temperature: 0.5, max_tokens: 10 });
answer.choices.at(0)?.message.content?.trim();

const named = await client.chat.completions.create(
  { model: 'gpt-4o', messages },
  { langsmithExtra: { name: 'named', metadata: { user: 'u1' } } },
);
named.choices.at(0)?.message.content?.trim();

const stream = await client.chat.completions.create(
  { model: 'gpt-4o', messages, stream: true, stream_options: { include_usage: true }, top_p: 1 },
  { langsmithExtra: { name: 'streamed', metadata: { user: 'u1' }, tags: ['call'] } },
);
for await (const chunk of stream) chunk.choices.at(0)?.delta.content?.trim();

await traceable(
  async () => {
    getCurrentRunTree().metadata.user = 'u2';
    await client.chat.completions.create({ model: 'gpt-4o', messages, stop: 'no', metadata: { request: 'r1' } });
  },
  { name: 'around' },
)();

await client.chat.completions.create({ model: 'broken', messages }).catch(() => {});

export function answerOf(run: Run): string {
  return `${run.id.trim()} ${run.outputs?.answer.trim()}`;
}
