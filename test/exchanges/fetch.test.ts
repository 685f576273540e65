// Requests and responses of each service, as the recorder of `fetch` sees them.
import { GoogleGenAI } from '@google/genai';
import { Mistral } from '@mistralai/mistralai';
import { CohereClientV2 } from 'cohere-ai';
import { Ollama } from 'ollama';
import { expect, onTestFinished, test } from 'vitest';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { record } from '../instrument/recorder.ts';
import { chunksOf, onlyRun, recordWithFetch } from '../integrations/local-openai.ts';
import { ANSWER, type Exchange, exchangeOf, type Format, PIXEL } from './exchange.ts';
import { generateContent } from './gemini.ts';
import { mistral } from './mistral.ts';
import { expectRun, serve } from './run.ts';
import { callSdk, hasSdk } from './sdks.ts';
import { exchanges, formats, rows } from './table.ts';

async function recorded(exchange: Exchange, isStreamed: boolean, call: () => unknown) {
  await serve(exchange, isStreamed);
  const recorder = recordWithFetch();
  await call();
  expectRun(onlyRun(recorder.runs), exchange, isStreamed);
}

test.each(rows)('$title is recorded', async ({ exchange, isStreamed }) => {
  await recorded(exchange, isStreamed, async () => {
    if (hasSdk(exchange)) await callSdk(exchange, isStreamed, false);
    else await (await fetch(exchange.url, { method: 'POST', body: JSON.stringify(exchange.body) })).text();
  });
});

const model = 'small';
const messages = [{ role: 'user' as const, content: 'Tea?' }];
const google = new GoogleGenAI({ apiKey: 'a-secret' });
const gemini = google.models;
const cohere = new CohereClientV2({ token: 'a-secret', logging: { silent: true } } as never);
const { chat, fim, embeddings, ocr, beta } = new Mistral({ apiKey: 'a-secret' });
const config = { systemInstruction: 'Be brief', temperature: 0.5, maxOutputTokens: 9 };
const embed = { texts: ['tea', 'soup'], inputType: 'search_query' as const, embeddingTypes: ['float' as const] };
const page = `data:image/png;base64,${PIXEL}`;
const mistralChat = exchangeOf(mistral, {
  title: 'Mistral',
  url: 'https://api.mistral.ai/v1/chat/completions',
  provider: 'mistralai',
});

test.each<[title: string, call: () => unknown, messages?: object[], isStreamed?: boolean, exchange?: Exchange]>([
  [
    'Gemini',
    () => gemini.generateContent({ model, contents: 'Tea?', config }),
    [{ role: 'system', content: 'Be brief' }, ...messages],
  ],
  ['Gemini', async () => chunksOf(await gemini.generateContentStream({ model, contents: 'Tea?' })), messages, true],
  ['an embedding of Gemini', () => gemini.embedContent({ model, contents: 'tea' })],
  ['Cohere', () => cohere.chat({ model, messages }), messages],
  ['Cohere', async () => chunksOf(await cohere.chatStream({ model, messages })), messages, true],
  ['embeddings of Cohere', () => cohere.embed({ model, ...embed })],
  ['Ollama', () => new Ollama().chat({ model, messages }), messages],
  ['Ollama', async () => chunksOf(await new Ollama().chat({ model, messages, stream: true })), messages, true],
  ['an embedding of Ollama', () => new Ollama().embed({ model, input: 'tea' })],
  ['Mistral', () => chat.complete({ model, messages }), messages, false, mistralChat],
  ['Gemini interactions', () => google.interactions.create({ model, input: 'Tea?' }), messages],
  [
    'Gemini interactions',
    async () => chunksOf(await google.interactions.create({ model, input: 'Tea?', stream: true })),
    messages,
    true,
  ],
  ['a ranking of Cohere', () => cohere.rerank({ model, query: 'tea', documents: ['cup', 'leaf'], topN: 1 })],
  ['Mistral conversations', () => beta.conversations.start({ agentId: 'ag_1', inputs: 'Tea?' }), messages],
  [
    'Mistral, a message appended to a conversation',
    async () => {
      const conversationAppendStreamRequest = { inputs: messages };
      const request = { conversationId: 'conv_1', conversationAppendStreamRequest };
      await chunksOf(await beta.conversations.appendStream(request));
    },
    messages,
    true,
  ],
  ['a page read by Mistral', () => ocr.process({ model, document: { type: 'document_url', documentUrl: page } })],
  ['embeddings of Mistral', () => embeddings.create({ model, inputs: ['tea', 'soup'] })],
  ['a filled gap of Mistral', () => fim.complete({ model, prompt: 'const a = ', suffix: ';' })],
])('%s is recorded if its own SDK sends the request', async (title, call, asked, isStreamed = false, given) => {
  const { asked: _, metadata: __, ...exchange } = given ?? (exchanges.find((one) => one.title === title) as Exchange);
  await recorded({ ...exchange, ...(asked && { inputs: { messages: asked } }) }, isStreamed, call);
});

const ofFetch = Object.entries(formats).filter(([, { provider }]) => provider !== 'amazon_bedrock');
const notAnEvent = JSON.stringify(generateContent.error[0], undefined, 2);
test.each<[string, Format, string?]>([
  ...ofFetch,
  ['Gemini, as JSON that is not an event,', generateContent, notAnEvent],
])('an error in the stream of %s ends the run, even if nobody reads on', async (title, format, last) => {
  const started = format.events(ANSWER, {}).slice(0, 3);
  const exchange = exchangeOf(format, { title, events: last ? started : [...started, format.error[0]] });
  await serve(exchange, true, { staysOpen: true, last });
  const recorder = recordWithFetch();
  const reader = (await fetch(exchange.url, { method: 'POST', body: JSON.stringify(format.body) })).body?.getReader();
  for (let text = ''; !text.includes('too much'); ) text += new TextDecoder().decode((await reader?.read())?.value);
  expect(onlyRun(recorder.runs)).toMatchObject({ error: format.error[1], end_time: expect.any(String) });
});

const image = Buffer.concat([Buffer.from(PIXEL, 'base64'), Buffer.alloc(3_000)]);
test.each(
  ofFetch.flatMap(([title, format]) =>
    (hasSdk(format) ? [false, true] : [false]).map((isWrapped) => [title, isWrapped, format] as const),
  ),
)(
  'a large image in a request of %s is an attachment, and the request is sent unchanged, wrapped: %s',
  async (title, isWrapped, format) => {
    const body = JSON.parse(JSON.stringify(format.body).replaceAll(PIXEL, image.toString('base64')));
    const exchange = { ...exchangeOf(format, { title }), body };
    const sent = await serve(exchange, false);
    if (!isWrapped) onTestFinished(recordFetch());
    const recorder = record();
    if (hasSdk(exchange)) await callSdk(exchange, false, isWrapped);
    else await (await fetch(exchange.url, { method: 'POST', body: JSON.stringify(body) })).text();
    expect(sent.map((text) => JSON.parse(`${text}`))).toEqual([body]);
    const { attachments, inputs } = onlyRun(recorder.runs);
    expect(attachments).toMatchObject([{ name: 'inputs_1', mimeType: 'image/png' }]);
    expect(Buffer.compare(attachments?.[0]?.bytes as Uint8Array, image)).toBe(0);
    expect(JSON.stringify(inputs)).toContain(`[Attachment inputs_1: image/png, ${image.length} bytes]`);
  },
);

test('an interaction in the background is not recorded', async () => {
  const exchange = exchanges.find(({ name }) => name === 'gemini.interactions') as Exchange;
  await serve(exchange, false);
  const recorder = recordWithFetch();
  const body = JSON.stringify({ ...exchange.body, background: true });
  await (await fetch(exchange.url, { method: 'POST', body })).json();
  expect(recorder.runs).toEqual([]);
});
