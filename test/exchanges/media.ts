// Requests of OpenAI's API without a conversation: https://platform.openai.com/docs/api-reference
import { type Exchange, PIXEL, tokens } from './exchange.ts';

const at = (path: string, name = path.replaceAll('/', '.')) => ({
  ...{ name: `openai.${name}`, url: `https://api.openai.com/v1/${path}`, provider: 'openai' },
  ...{ metadata: { ls_model_name: 'small' } as object },
});
const text = { id: 'cmpl_1', object: 'text_completion', created: 1, model: 'small' };
const texts = (value: string, more: object) => ({
  ...text,
  choices: [{ index: 0, text: value, logprobs: null, ...more }],
});
const prompt = (prompt_tokens: number, completion_tokens: number) => ({
  ...{ prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
});
const list = { object: 'list', model: 'small', usage: { prompt_tokens: 4, total_tokens: 4 } };
const vectors = (embedding: unknown) => ({
  ...list,
  data: [0, 1].map((index) => ({ object: 'embedding', index, embedding })),
});
const embeddings = {
  ...at('embeddings'),
  runType: 'embedding',
  inputs: { input: ['tea', 'soup'] },
  outputs: { ...list, count: 2, dimensions: 3 },
  usage: { input_tokens: 4, total_tokens: 4 } as Exchange['usage'],
};
const embed = { model: 'small', input: ['tea', 'soup'] };
/** Three floats of four bytes. */
const base64 = Buffer.from(Float32Array.of(1, 2, 3).buffer).toString('base64');

const imageUsage = {
  input_tokens: 5,
  output_tokens: 100,
  total_tokens: 105,
  input_tokens_details: { text_tokens: 5, image_tokens: 0 },
};
const imageHead = { output_format: 'png', quality: 'low', size: '1024x1024', usage: imageUsage };
const images = {
  response: { created: 1, ...imageHead, data: [{ b64_json: PIXEL }] },
  // The PNG has 70 bytes.
  outputs: { created: 1, ...imageHead, data: [{ b64_json: '[Image: 70 bytes]' }] },
  usage: tokens(5, 100, { text: 5, image: 0 }),
};
const png = new File([new Uint8Array([1, 2, 3])], 'tea.png', { type: 'image/png' });
const wav = new File([new Uint8Array(2_000)], 'tea.wav', { type: 'audio/wav' });
const heard = { usage: { type: 'tokens', input_tokens: 5, output_tokens: 3, total_tokens: 8 } };
const transcript = {
  ...{ response: { text: 'A drink.', ...heard }, usage: tokens(5, 3) },
  inputs: { file: { type: 'File', byteLength: 2_000, attachment: 'inputs_1' }, prompt: 'tea' },
  metadata: { ls_model_name: 'small', ls_invocation_params: { model: 'small', language: 'en' } },
};
const audio = { model: 'small', file: wav, prompt: 'tea', language: 'en' };

export const media: readonly Exchange[] = [
  {
    ...at('completions'),
    title: 'a text completion of OpenAI',
    body: { model: 'small', prompt: 'Tea?', max_tokens: 5 },
    ...{ inputs: { prompt: 'Tea?' }, usage: tokens(3, 5), said: ['assistant: A drink.'] },
    metadata: { ls_model_type: 'llm', ls_model_name: 'small', ls_max_tokens: 5 },
    response: { ...texts('A drink.', { finish_reason: 'stop' }), usage: prompt(3, 5) },
    events: [
      texts('A ', { finish_reason: null }),
      texts('drink.', { finish_reason: 'stop' }),
      { ...text, choices: [], usage: prompt(3, 5) },
    ],
  },
  {
    ...embeddings,
    title: 'embeddings of OpenAI',
    body: { ...embed, encoding_format: 'float' },
    response: vectors([1, 2, 3]),
  },
  {
    ...embeddings,
    title: 'embeddings of OpenAI in base64',
    body: { ...embed, encoding_format: 'base64' },
    response: vectors(base64),
  },
  {
    ...{ ...embeddings, title: 'embeddings of Mistral', url: 'https://api.mistral.ai/v1/embeddings' },
    provider: 'mistralai',
    body: { ...embed, encoding_format: 'float' },
    response: { id: 'e_1', ...vectors([1, 2, 3]) },
  },
  {
    ...embeddings,
    title: 'embeddings of OpenAI in the form that the SDK chooses',
    body: embed,
    response: vectors(base64),
  },
  {
    ...at('images/generations', 'images.generate'),
    ...images,
    title: 'an image of OpenAI',
    inputs: { prompt: 'tea' },
    isSilent: true,
    body: { model: 'small', prompt: 'tea' },
    events: [
      { type: 'image_generation.partial_image', partial_image_index: 0, b64_json: PIXEL, created_at: 1, ...imageHead },
      { type: 'image_generation.completed', b64_json: PIXEL, created_at: 1, ...imageHead },
    ],
    streamed: { partial_images: 1 },
  },
  {
    ...at('images/edits', 'images.edit'),
    ...images,
    title: 'an edited image of OpenAI',
    inputs: { prompt: 'tea' },
    body: { model: 'small', prompt: 'tea', image: png },
  },
  {
    ...at('images/variations', 'images.createVariation'),
    ...images,
    title: 'a variation of an image',
    body: { model: 'small', image: png },
  },
  {
    ...{ ...at('audio/transcriptions'), ...transcript, title: 'a transcription of OpenAI', body: audio },
    events: [
      ...['A ', 'drink.'].map((word) => ({ type: 'transcript.text.delta', delta: word })),
      { type: 'transcript.text.done', text: 'A drink.', ...heard },
    ],
  },
  { ...at('audio/translations'), ...transcript, title: 'a translation of OpenAI', body: audio },
  {
    ...at('audio/transcriptions'),
    title: 'a transcription as plain text',
    body: { ...audio, response_format: 'text' },
    ...{ response: 'A drink.', outputs: { outputs: 'A drink.' }, usage: undefined },
  },
  {
    ...{ ...at('audio/speech'), title: 'speech of OpenAI', body: { model: 'small', voice: 'alloy', input: 'Tea' } },
    ...{ response: new Uint8Array(3_000), inputs: { input: 'Tea' } },
    outputs: { audio: { type: 'Blob', byteLength: 3_000, attachment: 'outputs_1' } },
  },
  {
    ...at('responses/compact'),
    title: 'a compacted conversation',
    body: { model: 'small', input: 'Tea?' },
    asked: ['user: Tea?'],
    response: {
      output: [{ type: 'compaction', encrypted_content: 'x' }],
      usage: { input_tokens: 9, output_tokens: 2, total_tokens: 11 },
    },
    usage: tokens(9, 2),
  },
  {
    title: 'a filled gap of Mistral',
    name: 'mistral.fim',
    url: 'https://api.mistral.ai/v1/fim/completions',
    provider: 'mistralai',
    ...{ body: { model: 'small', prompt: 'const a = ', suffix: ';' }, inputs: { prompt: 'const a = ', suffix: ';' } },
    response: {
      ...text,
      choices: [{ index: 0, message: { role: 'assistant', content: '1' }, finish_reason: 'stop' }],
      usage: prompt(5, 3),
    },
    ...{ usage: tokens(5, 3), said: ['assistant: 1'] },
  },
];
