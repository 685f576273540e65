// https://docs.ollama.com/api
import { asked, type Exchange, exchangeOf, type Format, PIXEL, pieces, tokens } from './exchange.ts';

const called = (name: string, args: object) => ({ function: { name, arguments: args } });
const head = { model: 'small', created_at: '2026-11-22T00:00:00Z' };
const end = { done: true, done_reason: 'stop' };
const line = (message: object, more: object = { done: false }) => ({
  ...{ ...head, message: { role: 'assistant', content: '', ...message } },
  ...more,
});

export const ollamaChat: Format = {
  name: 'ollama.chat',
  url: 'http://localhost:11434/api/chat',
  provider: 'ollama',
  isLines: true,
  body: {
    ...{ model: 'small', options: { temperature: 0.5, num_predict: 9 } },
    messages: [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'See this.', images: [PIXEL] },
      { role: 'assistant', content: '', tool_calls: [called('find', { q: 1 })] },
      { role: 'tool', tool_name: 'find', content: '{"found":2}' },
    ],
  },
  // A short image stays as it is, and Ollama sends no type.
  asked: asked('tool', '').map((line) => line.replace('image/png', 'undefined')),
  metadata: { ls_model_type: 'chat', ls_model_name: 'small', ls_temperature: 0.5, ls_max_tokens: 9 },
  counts: { prompt_eval_count: 5, eval_count: 3, eval_duration: 7 },
  usage: tokens(5, 3),
  response: ({ thought, text, calls, unknown }, counts) => ({
    ...line({
      ...{ thinking: thought.join(''), content: text.join('') },
      tool_calls: calls.map((call) => called(call.name, JSON.parse(pieces(call).join('')))),
      ...(unknown && { new: unknown }),
    }),
    ...{ ...end, ...counts },
  }),
  events: ({ thought, text, calls, unknown }, counts) => [
    ...thought.map((thinking) => line({ thinking })),
    ...text.map((content) => line({ content })),
    ...calls.map((call) => line({ tool_calls: [called(call.name, JSON.parse(pieces(call).join('')))] })),
    ...(unknown ? [line({ new: unknown })] : []),
    line({}, { ...end, ...counts }),
  ],
  error: [{ error: 'too much' }, 'too much'],
};

const usage = tokens(5, 3);
const counts = { prompt_eval_count: 5, eval_count: 3 };
const embedding = { provider: 'ollama', name: 'ollama.embed', runType: 'embedding' };

export const ollama: readonly Exchange[] = [
  exchangeOf(ollamaChat, {
    title: 'Ollama',
    said: ['assistant: reasoning Hm, so.', 'assistant: It rains.', 'assistant: calls warn({"q":"a storm"})'],
  }),
  {
    title: 'a completion of Ollama',
    name: 'ollama.generate',
    url: 'http://localhost:11434/api/generate',
    provider: 'ollama',
    ...{ isLines: true, body: { model: 'small', prompt: 'Tea?', system: 'Be kind.', images: [PIXEL] } },
    ...{ inputs: { prompt: 'Tea?', system: 'Be kind.', images: [PIXEL] }, usage },
    response: { ...head, response: 'A drink.', ...end, ...counts },
    events: [
      { ...head, response: 'A ', done: false },
      { ...head, response: 'drink.', ...end, ...counts },
    ],
  },
  {
    ...embedding,
    title: 'an embedding of Ollama',
    url: 'http://localhost:11434/api/embed',
    body: { model: 'small', input: 'tea' },
    ...{ response: { model: 'small', embeddings: [[1, 2, 3]], prompt_eval_count: 2 }, inputs: { input: 'tea' } },
    ...{ outputs: { count: 1, dimensions: 3 }, usage: { input_tokens: 2 } as Exchange['usage'] },
  },
  {
    ...{ ...embedding, title: 'an embedding of an earlier Ollama', url: 'http://localhost:11434/api/embeddings' },
    ...{ body: { model: 'small', prompt: 'tea' }, response: { embedding: [1, 2] }, inputs: { input: 'tea' } },
    outputs: { count: 1, dimensions: 2 },
  },
];
