// Run by Jest, which loads CommonJS.
require('runspan/register');
const { default: OpenAI } = require('openai');
const { flush } = require('runspan');

afterAll(() => flush());

test('calls a model', async () => {
  const { chat } = new OpenAI({ apiKey: 'none', baseURL: `${process.env.MODEL}/v1` });
  const messages = [{ role: 'user', content: 'Tea' }];
  const { choices } = await chat.completions.create({ model: 'small', messages });
  expect(choices[0].message.content).toBe('You said: Tea');
});
