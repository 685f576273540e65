import OpenAI from 'openai';
const client = new OpenAI({ apiKey: 'none', baseURL: `${process.env.MODEL}/v1` });
const look_up = { type: 'function', function: { name: 'look_up', parse: JSON.parse, parameters: { type: 'object', properties: { query: { type: 'string' } } }, function: async ({ query }) => `${query}: a drink` } };
const runner = client.chat.completions.runTools({ model: 'm', messages: [{ role: 'user', content: 'What is tea?' }], tools: [look_up], stream: process.argv[2] === 'stream' });
console.log(await runner.finalContent());
