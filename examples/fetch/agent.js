// A server whose agent calls the model with `fetch`, without an SDK and without runspan. Its tool fails. Without
// ANTHROPIC_API_KEY, the local model server answers, which repeats the question. The program asks itself one question.
import { createServer } from 'node:http';
import { startLocalModel } from '../../test/support/local-model/server.js';

const local = process.env.ANTHROPIC_API_KEY === undefined ? await startLocalModel() : undefined;
const key = process.env.ANTHROPIC_API_KEY ?? 'none';
const url = `${local?.url ?? 'https://api.anthropic.com'}/v1/messages`;
const headers = { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', 'x-api-key': key };
const model = process.env.ANTHROPIC_MODEL ?? 'claude-haiku-4-5';

const input_schema = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] };
const tools = [{ name: 'total_of', description: 'The total of an order.', input_schema }];
const orders = { 48213: { total: 129 } };
const totalOf = ({ order }) => String(orders[order].total);

async function answer(question) {
  const messages = [{ role: 'user', content: question }];
  for (;;) {
    const body = JSON.stringify({ model, max_tokens: 500, messages, tools });
    const { content } = await (await fetch(url, { method: 'POST', headers, body })).json();
    const calls = content.filter(({ type }) => type === 'tool_use');
    if (calls.length === 0) return content[0].text;
    messages.push({ role: 'assistant', content }, { role: 'user', content: calls.map(resultOf) });
  }
}

function resultOf({ id, input }) {
  const result = { type: 'tool_result', tool_use_id: id };
  try {
    return { ...result, content: totalOf(input) };
  } catch (error) {
    return { ...result, content: String(error), is_error: true };
  }
}

const server = createServer(async (request, response) => {
  const question = Buffer.concat(await request.toArray()).toString();
  // An idle connection would keep the process alive.
  response.writeHead(200, { connection: 'close' }).end(await answer(question));
});

server.listen(0, '127.0.0.1', async () => {
  const own = `http://127.0.0.1:${server.address().port}/ask`;
  const response = await fetch(own, { method: 'POST', body: process.argv[2] ?? 'What does order 47760 cost?' });
  console.log(await response.text());
  server.close();
  await local?.close();
});
