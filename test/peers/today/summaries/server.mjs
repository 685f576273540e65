// A server whose agents call OpenAI: `server.mjs untouched|wrapped|spans`. Prints its port, and ends with its input.
import express from 'express';
import OpenAI from 'openai';
import { tracing } from './tracing.mjs';

const { client, tool, agent } = await tracing(process.argv[2]);
const openai = client(new OpenAI({ maxRetries: 0 }));
const weather = tool(async (_city) => 'rain', 'weather');
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const user = (content) => ({ role: 'user', content });
const ask = async (model, question) => (await openai.responses.create({ model, input: question })).output_text;

async function byResponses(question) {
  const input = [user(question)];
  const tools = [{ type: 'function', name: 'weather', parameters }];
  for (;;) {
    const { output, output_text } = await openai.responses.create({ model: 'small', input, tools });
    const call = output.find(({ type }) => type === 'function_call');
    if (call === undefined) return output_text;
    input.push(call, { type: 'function_call_output', call_id: call.call_id, output: await weather(call.arguments) });
  }
}

async function byChat(question) {
  const messages = [user(question)];
  const tools = [{ type: 'function', function: { name: 'weather', parameters } }];
  for (;;) {
    const { choices } = await openai.chat.completions.create({ model: 'small', messages, tools });
    const [{ message }] = choices;
    if (!message.tool_calls) return message.content;
    const [{ id, function: call }] = message.tool_calls;
    messages.push(message, { role: 'tool', tool_call_id: id, content: await weather(call.arguments) });
  }
}

const AGENTS = {
  responses: byResponses,
  chat: byChat,
  limited: (question) => ask('fail-429', question),
  async broken(question) {
    await ask('small', question);
    throw new Error('out of stock');
  },
  recovered: (question) => ask('fail-500', question).catch(() => ask('small', question)),
};

const app = express().use(express.json());
for (const [name, work] of Object.entries(AGENTS)) {
  const answer = agent(work, name);
  app.post(`/${name}/:user`, async ({ params, body }, response) => {
    response.json(await answer({ userId: params.user, threadId: body.thread }, body.question));
  });
}
app.use(({ status = 500 }, _request, response, _next) => response.status(status).json({}));
const server = app.listen(0, '127.0.0.1', () => process.stdout.write(`port ${server.address().port}\n`));
process.stdin.resume().once('end', () => server.close());
