// Run by Jest, which loads CommonJS.
const { default: OpenAI } = require('openai');
const { flush, traceable } = require('runspan');
const { wrapOpenAI } = require('runspan/openai');

afterAll(() => flush());

test('calls a model', async () => {
  const { chat } = wrapOpenAI(new OpenAI({ apiKey: 'none', baseURL: `${process.env.MODEL}/v1` }));
  const messages = [{ role: 'user', content: 'Tea' }];
  const ask = traceable(() => chat.completions.create({ model: 'small', messages }), { name: 'ask' });
  expect((await ask()).choices[0].message.content).toBe('You said: Tea');
});
