import { OpenAI } from 'openai';

async function main() {
  const client = new OpenAI();
  const first = await client.responses.create({ model: 'small', input: 'Is it raining?' });
  console.log(first.output_text);
  const stream = await client.responses.create({ model: 'small', input: 'And now?', stream: true });
  for await (const { type } of stream) console.log(type);
}

main();
