import { GoogleGenAI } from '@google/genai';

async function main() {
  const chat = new GoogleGenAI({}).chats.create({ model: 'gemini-small' });
  console.log((await chat.sendMessage({ message: 'Is it raining?' })).text);
  for await (const { text } of await chat.sendMessageStream({ message: 'And now?' })) console.log(text);
}

main();
