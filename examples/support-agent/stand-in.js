// Serves the shop's orders and payments on this machine, and without OPENAI_API_KEY also OpenAI's responses and embeddings.
// The answers follow a script. Each four characters count as a token, and each token of an answer takes some time.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout } from 'node:timers/promises';

const ORDERS = {
  47760: {
    status: 'cancelled',
    items: ['Desk lamp', 'USB-C hub'],
    total: 84.5,
    card: { last4: '4242', until: '2025-12' },
  },
  48213: { status: 'delivered', items: ['Studio headphones'], total: 129, card: { last4: '1881', until: '2031-03' } },
  48801: { status: 'in transit', items: ['Mechanical keyboard'], total: 99, scanned: 'Leipzig, this morning' },
  48990: { status: 'packing', items: ['Monitor arm'], total: 59 },
};

const search = (query) => ['search_help_center', { query }];
const lookUp = (order_id) => ['lookup_order', { order_id }];

/** The tool calls of each step, and the answer, by a word of the question. */
const SCRIPT = {
  refund: {
    steps: [
      [search('refund of a cancelled order'), lookUp('47760')],
      [['check_refund', { order_id: '47760' }]],
      [['issue_refund', { order_id: '47760', amount: 84.5 }]],
    ],
    answer: 'I could not refund order 47760 to your card. A colleague will write to you today.',
  },
  headphones: {
    steps: [[search('item arrived damaged'), lookUp('48213')]],
    answer: `I am sorry that your **Studio headphones** arrived damaged. You can choose:

1. **A replacement**, which leaves the warehouse within one working day, at no cost.
2. **A full refund** of 129.00 EUR to your card.

A photo is not needed. Which of the two would you like?`,
  },
  parcel: {
    steps: [[lookUp('48801')]],
    answer: 'Your keyboard was scanned in Leipzig this morning, and should arrive tomorrow.',
  },
  Norway: {
    steps: [[search('shipping to Norway')]],
    answer: 'Yes. Shipping to Norway takes 4 to 6 days and costs 14.90 EUR.',
  },
  address: {
    steps: [[search('change the address of an order'), lookUp('48990')]],
    answer: 'Yes, it has not left yet. Which address should it go to?',
  },
};

const server = createServer(async (request, response) => {
  const text = Buffer.concat(await request.toArray()).toString();
  const [status, json] = await answer(`${request.method} ${request.url}`, text === '' ? undefined : JSON.parse(text));
  // An idle connection would keep the process alive.
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' }).end(JSON.stringify(json));
});
await once(server.listen(0, '127.0.0.1'), 'listening');
server.unref();

const url = `http://127.0.0.1:${server.address().port}`;
process.env.SHOP_URL = url;
if (process.env.OPENAI_API_KEY === undefined)
  Object.assign(process.env, { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: `${url}/v1` });

async function answer(route, body) {
  if (route === 'POST /v1/responses') return [200, await respond(body)];
  if (route === 'POST /v1/embeddings') return [200, await embed(body)];
  if (route === 'POST /refunds') return refund(body);
  const id = route.replace('GET /orders/', '');
  await setTimeout(40);
  return ORDERS[id] === undefined ? [404, {}] : [200, { id, ...ORDERS[id] }];
}

async function refund({ amount, card }) {
  await setTimeout(180);
  if (card.until < new Date().toISOString()) return [402, { message: `The card ending in ${card.last4} has expired` }];
  return [200, { refunded: amount, card: card.last4 }];
}

async function embed({ input, model }) {
  await setTimeout(50);
  const prompt_tokens = tokensOf(input.join(''));
  const data = input.map((text, index) => ({ object: 'embedding', index, embedding: vectorOf(text) }));
  return { object: 'list', data, model, usage: { prompt_tokens, total_tokens: prompt_tokens } };
}

/** Counts words by a hash of their first letters, so that texts with words in common are similar. */
function vectorOf(text) {
  const vector = new Array(64).fill(0);
  for (const [word] of text.toLowerCase().matchAll(/\b\w{4,6}/g)) {
    vector[[...word].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 64, 7)] += 1;
  }
  return vector;
}

let count = 0;

async function respond({ model, input }) {
  const output = outputOf(input);
  const [input_tokens, output_tokens] = [input, output].map((items) => tokensOf(JSON.stringify(items)));
  await setTimeout(80 + 2 * output_tokens);
  const details = { input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
  const usage = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens, ...details };
  count += 1;
  return {
    id: `resp_${count}`,
    object: 'response',
    created_at: 1_764_288_000,
    status: 'completed',
    model,
    output,
    usage,
  };
}

function outputOf(input) {
  const question = input.find(({ role }) => role === 'user').content[0].text;
  const word = Object.keys(SCRIPT).find((each) => question.includes(each));
  if (word === undefined) return [message('yes: it was cancelled before it was sent')];
  const { steps, answer } = SCRIPT[word];
  const made = input.filter(({ type }) => type === 'function_call').length;
  let planned = 0;
  for (const step of steps) {
    if (planned === made) return step.map(([name, args], index) => call(name, args, made + index + 1));
    planned += step.length;
  }
  return [message(answer)];
}

function call(name, args, number) {
  return {
    type: 'function_call',
    id: `fc_${number}`,
    call_id: `call_${number}`,
    name,
    arguments: JSON.stringify(args),
    status: 'completed',
  };
}

function message(text) {
  const content = [{ type: 'output_text', text, annotations: [] }];
  return { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content };
}

function tokensOf(text) {
  return Math.ceil(text.length / 4);
}
