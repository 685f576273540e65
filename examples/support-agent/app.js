// An agent that answers customers of a shop, with Vercel's AI SDK and OpenAI. Its arguments are the questions. Without
// OPENAI_API_KEY, the stand-in answers in place of OpenAI.
import './stand-in.js';
import { createOpenAI } from '@ai-sdk/openai';
import { cosineSimilarity, embedMany, generateText, ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';
import { articles } from './articles.js';
import { orderOf, refund } from './shop.js';

const openai = createOpenAI();
const model = openai('gpt-4.1-mini');
const order_id = z.string();

const agent = new ToolLoopAgent({
  id: 'support-agent',
  model,
  instructions: `You answer customers of a shop for electronics. Be short and kind. Search the help center, and look up an \
order before you promise anything. Never promise a refund that a tool has not confirmed.`,
  tools: {
    search_help_center: tool({
      description: 'Finds the articles about a question',
      inputSchema: z.object({ query: z.string() }),
      execute: ({ query }) => search(query),
    }),
    lookup_order: tool({
      description: 'Looks up an order',
      inputSchema: z.object({ order_id }),
      execute: (input) => orderOf(input.order_id),
    }),
    check_refund: tool({
      description: 'Decides whether an order may be refunded',
      inputSchema: z.object({ order_id }),
      execute: (input) => checkRefund(input.order_id),
    }),
    issue_refund: tool({
      description: 'Refunds an order',
      inputSchema: z.object({ order_id, amount: z.number() }),
      execute: (input) => refund(input.order_id, input.amount),
    }),
  },
});

async function search(query) {
  const values = [query, ...articles.map(({ title, text }) => `${title}: ${text}`)];
  const { embeddings } = await embedMany({ model: openai.embedding('text-embedding-3-small'), values });
  const [asked, ...known] = embeddings;
  return articles
    .map((article, index) => ({ ...article, score: Number(cosineSimilarity(asked, known[index]).toFixed(2)) }))
    .sort((a, b) => b.score - a.score)
    .slice(0, 2);
}

async function checkRefund(id) {
  const prompt = JSON.stringify(await orderOf(id));
  const { text } = await generateText({
    model,
    system: 'May this order be refunded? Answer yes or no, with a reason.',
    prompt,
  });
  return text;
}

const questions = process.argv.slice(2);
if (questions.length === 0) questions.push('Please refund order 47760, I cancelled it yesterday.');
for (const prompt of questions) {
  const { text } = await agent.generate({ prompt });
  console.log(text);
}
