// With `exchanges` in RUNSPAN_DEV, runs that do not contain a model call's request and response get both as an attachment.
import { createOpenAI } from '@ai-sdk/openai';
import { GoogleGenAI } from '@google/genai';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, streamText } from 'ai';
import { expect, onTestFinished, test } from 'vitest';
import { wrapModel } from '#src/integrations/ai-sdk/model.ts';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { RunspanCallbackHandler } from '#src/integrations/langchain/handler.ts';
import { wrapOpenAI } from '#src/integrations/openai/client.ts';
import { redact } from '#src/payload/redaction/redact.ts';
import type { RunRecord } from '#src/run/record.ts';
import type { RecordOptions } from '#src/testing/record-runs.ts';
import { record } from '../instrument/recorder.ts';
import { environmentOf } from '../support/environment.ts';
import { bareClient, chunksOf, localModel, tea } from './local-openai.ts';
import { json, serveWire } from './wire-server.ts';

async function start(
  options: RecordOptions = {},
  variables: Record<string, string> = { RUNSPAN_DEV: '{"exchanges":true}' },
) {
  environmentOf(variables);
  const recorder = record(options);
  onTestFinished(recordFetch());
  const model = await localModel();
  const { chat } = createOpenAI({ baseURL: `${model.url}/v1`, apiKey: 'a-secret' });
  return { recorder, model, chat: wrapModel(chat('small')) };
}

/** Returns the attachments of all runs, as the parsed JSON text by `run.name`. */
function exchangesOf(runs: readonly RunRecord[]): [name: string, exchange: unknown][] {
  return runs.flatMap(
    (run) =>
      (run as { attachments?: { name: string; mimeType: string; bytes: Uint8Array }[] }).attachments?.map(
        ({ name, mimeType, bytes }): [string, unknown] => {
          expect(mimeType).toBe('application/json');
          return [`${run.name}.${name}`, JSON.parse(new TextDecoder().decode(bytes))];
        },
      ) ?? [],
  );
}

const request = { model: 'small', messages: [{ role: 'user', content: 'What is tea?' }] };
const response = {
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'You said: What is tea?' }, finish_reason: 'stop' }],
};

test("a model call of the AI SDK has its service's request and response, streamed or not", async () => {
  const { recorder, chat } = await start();
  await generateText({ model: chat, prompt: 'What is tea?' });
  await streamText({ model: chat, prompt: 'What is tea?' }).text;
  const exchange = { call: 'openai.chat.completions', status: 200, request, response };
  expect(exchangesOf(recorder.runs)).toMatchObject([
    ['small.exchange', exchange],
    ['small.exchange', { ...exchange, request: { ...request, stream: true } }],
  ]);
  expect(recorder.runs).toHaveLength(2);
});

test('a model step of LangChain has the exchanges of all of its requests', async () => {
  const { recorder, model } = await start();
  const configuration = { baseURL: `${model.url}/v1` };
  const callbacks = [new RunspanCallbackHandler()];
  const chat = (name: string) => new ChatOpenAI({ model: name, apiKey: 'a-secret', maxRetries: 1, configuration });
  await chat('small').invoke('What is tea?', { callbacks });
  await expect(chat('fail-500').invoke('What is tea?', { callbacks })).rejects.toThrow('500');
  const [call, failed] = [{ call: 'openai.chat.completions', request: { messages: tea } }, { status: 500 }];
  expect(exchangesOf(recorder.runs)).toMatchObject([
    ['ChatOpenAI.exchange', { ...call, status: 200, response }],
    ['ChatOpenAI.exchange', { ...call, ...failed }],
    ['ChatOpenAI.exchange-2', { ...call, ...failed }],
  ]);
});

test('a model call of Gemini has the response of the service, which its outputs change', async () => {
  const { recorder } = await start();
  const answer = {
    candidates: [{ content: { role: 'model', parts: [{ text: 'Leaves.', thoughtSignature: 'c2ln' }] } }],
  };
  const client = new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: await serveWire(json(answer)) } });
  await client.models.generateContent({ model: 'gemini-2.5-flash', contents: 'What is tea?' });
  expect(exchangesOf(recorder.runs)).toMatchObject([
    [
      'gemini.generateContent.exchange',
      { call: 'gemini.generateContent', request: { model: 'gemini-2.5-flash' }, response: answer },
    ],
  ]);
});

test('a response that is a list of chunks stays one', async () => {
  const { recorder } = await start();
  const chunk = (text: string) => ({ candidates: [{ content: { role: 'model', parts: [{ text }] } }] });
  const answer = [chunk('Dry '), chunk('leaves.')];
  const url = `${await serveWire(json(answer))}/v1beta/models/gemini:streamGenerateContent`;
  const body = JSON.stringify({ contents: [{ parts: [{ text: 'What is tea?' }] }] });
  await fetch(url, { method: 'POST', body }).then((streamed) => streamed.json());
  expect(recorder.run('gemini.generateContent').outputs).toMatchObject({ messages: [{ content: 'Dry leaves.' }] });
  expect(exchangesOf(recorder.runs)).toMatchObject([['gemini.generateContent.exchange', { response: answer }]]);
});

test('each request is attached with its address, without the secrets in it, and the text of a stream', async () => {
  const { recorder, model } = await start();
  for (const client of [
    wrapOpenAI(bareClient(model, {})),
    bareClient(model, { defaultQuery: { 'api-key': 'secret-1' } }),
  ]) {
    await client.chat.completions.create({ model: 'small', messages: tea });
    await chunksOf(await client.chat.completions.create({ model: 'small', messages: tea, stream: true }));
  }
  const name = 'openai.chat.completions.exchange';
  const whole = { call: 'openai.chat.completions', status: 200, request, response };
  const stream = expect.stringMatching(/^data: \{.*\}\n\ndata: \[DONE\]\n\n$/s);
  const streamed = { ...whole, request: { ...request, stream: true }, contentType: 'text/event-stream', stream };
  const url = expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions$/);
  const masked = expect.stringMatching(/\/chat\/completions\?api-key=\[Redacted\]$/);
  expect(exchangesOf(recorder.runs)).toMatchObject([
    [name, { ...whole, url }],
    [name, { ...streamed, url }],
    [name, { ...whole, url: masked }],
    [name, { ...streamed, url: masked }],
  ]);
});

test('the address and the headers are those that were sent, and a failed request is attached too', async () => {
  const { recorder, model } = await start();
  const address = `${model.url}/v1/chat/completions`;
  const url = new URL(address);
  const headers: Record<string, string> = { 'Content-Type': 'application/json', 'Anthropic-Beta': 'one' };
  const init = { method: 'POST', headers, body: JSON.stringify(request) };
  const sent = fetch(url, init);
  url.pathname = '/other';
  headers['Anthropic-Beta'] = 'two';
  await (await sent).text();
  await expect(fetch(address, { ...init, signal: AbortSignal.abort() })).rejects.toThrow('aborted');
  const name = 'openai.chat.completions.exchange';
  expect(exchangesOf(recorder.runs)).toMatchObject([
    [name, { url: address, headers: { 'anthropic-beta': 'one' }, request, status: 200 }],
    [
      name,
      { url: address, headers: { 'anthropic-beta': 'two' }, request, error: expect.stringMatching(/^AbortError: /) },
    ],
  ]);
});

test.each<[string, RecordOptions]>([
  ['hidden inputs', { hideInputs: true }],
  ['hidden outputs', { hideOutputs: true }],
  ['a path', { redact: redact({ paths: ['inputs.messages[*].content'] }) }],
])('nothing is attached with %s', async (_, options) => {
  const { recorder, chat } = await start(options);
  await generateText({ model: chat, prompt: 'What is tea?' });
  expect(recorder.runs).toHaveLength(1);
  expect(exchangesOf(recorder.runs)).toEqual([]);
});

test('an exchange is masked like a payload', async () => {
  const { recorder, chat } = await start({ redact: redact({ patterns: [/tea/g] }) });
  await generateText({ model: chat, prompt: 'What is tea?' });
  const [[, exchange] = []] = exchangesOf(recorder.runs);
  expect(exchange).toMatchObject({ request: { messages: [{ content: 'What is [Redacted]?' }] } });
  expect(JSON.stringify(exchange)).not.toContain('tea');
});

test('without the variable, nothing is attached', async () => {
  const { recorder, chat } = await start({}, {});
  await generateText({ model: chat, prompt: 'What is tea?' });
  expect(exchangesOf(recorder.runs)).toEqual([]);
});
