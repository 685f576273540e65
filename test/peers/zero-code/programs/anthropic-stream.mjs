import { Anthropic } from '@anthropic-ai/sdk';

async function main() {
  const client = new Anthropic();
  const messages = [{ role: 'user', content: 'Is it raining?' }];
  const stream = client.messages.stream({ model: 'small', max_tokens: 100, messages });
  stream.on('text', (text) => console.log(text));
  const { usage } = await stream.finalMessage();
  console.log(usage.output_tokens);
  // The error is not caught.
  await client.messages.create({ model: 'fail-400', max_tokens: 100, messages });
}

main();
