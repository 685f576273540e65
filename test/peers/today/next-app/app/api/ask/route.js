import { OpenAI } from 'openai';

export async function POST(request) {
  const { question } = await request.json();
  const { output_text: text } = await new OpenAI().responses.create({ model: 'small', input: question });
  return Response.json({ text });
}
