import { OpenAI } from 'openai';

async function main() {
  const client = new OpenAI();
  const parameters = { type: 'object', properties: { city: { type: 'string' } } };
  const tools = [{ type: 'function', function: { name: 'weather', parameters } }];
  const messages = [{ role: 'user', content: 'Is it raining in Cork?' }];
  const { message } = (await client.chat.completions.create({ model: 'small', messages, tools })).choices[0];
  messages.push(message);
  for (const call of message.tool_calls) {
    console.log('tool', call.function.name, call.function.arguments);
    messages.push({ role: 'tool', tool_call_id: call.id, content: 'rain' });
  }
  const stream = await client.chat.completions.create({
    model: 'small',
    messages,
    tools,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const { choices } of stream) console.log(JSON.stringify(choices[0]?.delta.content));
  process.exitCode = 3;
}

main();
