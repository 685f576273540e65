import { Ollama } from 'ollama';

async function main() {
  const client = new Ollama({ host: process.env.OLLAMA_URL });
  const messages = [{ role: 'user', content: 'Is it raining?' }];
  console.log((await client.chat({ model: 'small', messages })).message.content);
  for await (const { message } of await client.chat({ model: 'small', messages, stream: true })) {
    console.log(message.content);
  }
}

main();
