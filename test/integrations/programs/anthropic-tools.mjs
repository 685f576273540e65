import Anthropic from '@anthropic-ai/sdk';
const client = new Anthropic({ apiKey: 'none', baseURL: process.env.MODEL });
const look_up = { name: 'look_up', input_schema: { type: 'object', properties: { query: { type: 'string' } } }, parse: (x) => x, run: async ({ query }) => `${query}: a drink` };
const runner = client.beta.messages.toolRunner({ model: 'm', max_tokens: 99, messages: [{ role: 'user', content: 'What is tea?' }], tools: [look_up], stream: process.argv[2] === 'stream' });
console.log((await runner.runUntilDone()).content);
