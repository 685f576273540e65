import { Mistral } from '@mistralai/mistralai';

async function main() {
  const client = new Mistral({ apiKey: 'key', serverURL: process.env.MODEL_URL });
  const messages = [{ role: 'user', content: 'Is it raining?' }];
  console.log((await client.chat.complete({ model: 'small', messages })).choices[0].message.content);
  for await (const { data } of await client.chat.stream({ model: 'small', messages })) {
    console.log(data.choices[0]?.delta.content);
  }
}

main();
