import { OpenAI } from 'openai';

const client: OpenAI = new OpenAI();
const { output_text: text } = await client.responses.create({ model: 'small', input: 'Is it raining?' });
console.log(text satisfies string);
