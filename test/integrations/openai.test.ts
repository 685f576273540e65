// Calls of the openai package and the runs that they become. The answers are those of test/support/local-model, which repeats
// the question and counts words as tokens.
import OpenAI, { AzureOpenAI } from 'openai';
import { describe, expect, test } from 'vitest';
import { unwrapOpenAI, wrapOpenAI } from '#src/integrations/openai/client.ts';
import { withContext } from '#src/run/start-run.ts';
import { record } from '../instrument/recorder.ts';
import { bareClient, chunksOf, localModel, lookUp, onlyRun, tea, tracedClient } from './local-openai.ts';

const question = 'What is tea?';
const answered = { role: 'assistant', content: 'You said: What is tea?', refusal: null };
const ask = { model: 'small', messages: tea };
const respond = { model: 'small', input: question };
const sound = new File([new Uint8Array(2_000)], 'tea.wav', { type: 'audio/wav' });
const answering = (client: OpenAI, response: Response) => client.withOptions({ fetch: async () => response });
const dish = { type: 'object', properties: { dish: { type: 'string' } } };
const dishFormat = { name: 'dish', schema: dish, strict: true };

type Row = [title: string, call: (client: OpenAI) => PromiseLike<unknown>, expected: object];

const said = { outputs: { choices: [{ message: answered }] } };
const respondedText = (text: string) => ({ outputs: { output: [{ content: [{ text }] }] } });

/** The table of exchanges has the calls of `create`. */
const calls: Row[] = [
  [
    'the helper chat.completions.parse',
    (client) =>
      client.chat.completions.parse({ ...ask, response_format: { type: 'json_schema', json_schema: dishFormat } }),
    { outputs: { choices: [{ message: { content: '{"dish":"What is tea?"}' } }] } },
  ],
  ['the helper chat.completions.stream', (client) => client.chat.completions.stream(ask).finalChatCompletion(), said],
  [
    'a derived promise that alone reads the answer',
    (client) => {
      const call = client.chat.completions.create(ask);
      const content = call._thenUnwrap(({ choices }) => choices[0]?.message.content).then((text) => text);
      return Promise.all([content, call.asResponse()]);
    },
    said,
  ],
  [
    'a streamed response in the background',
    async (client) => chunksOf(await client.responses.create({ ...respond, background: true, stream: true })),
    respondedText('You said: What is tea?'),
  ],
  [
    'the helper responses.parse',
    (client) => client.responses.parse({ ...respond, text: { format: { type: 'json_schema', ...dishFormat } } }),
    respondedText('{"dish":"What is tea?"}'),
  ],
  [
    'the helper responses.stream',
    (client) => client.responses.stream(respond).finalResponse(),
    respondedText('You said: What is tea?'),
  ],
  [
    'a transcription of a file that only the SDK reads',
    (client) =>
      answering(client, Response.json({ text: 'A drink.' })).audio.transcriptions.create({
        model: 'whisper-1',
        file: new Response(sound),
      }),
    { inputs: { file: '[Response]' }, outputs: { text: 'A drink.' } },
  ],
];

test('the conversation and the user in a request apply to a run that inherits none', async () => {
  const { client, recorder } = await tracedClient();
  const request = { model: 'small', input: question, conversation: { id: 'conv_1' }, safety_identifier: 'ada' };
  await client.responses.create(request);
  await withContext({ userId: 'bob' }, () => client.responses.create({ ...request, conversation: 'conv_2' }));
  const seen = recorder.runs.map(({ extra }) => [extra?.metadata?.thread_id, extra?.metadata?.user_id]);
  expect(seen).toEqual([
    ['conv_1', 'ada'],
    ['conv_2', 'bob'],
  ]);
});

test.each(calls)('%s is recorded', async (_, call, expected) => {
  const { client, only } = await tracedClient();
  await call(client);
  expect(only()).toMatchObject({ ...expected, end_time: expect.any(String) });
  expect(only()).not.toHaveProperty('error');
});

test('speech is read only by the application, chunk by chunk', async () => {
  const { client, only } = await tracedClient();
  let given = 0;
  const pull = (controller: ReadableStreamDefaultController) => controller.enqueue(new Uint8Array([++given]));
  const body = new ReadableStream({ pull }, { highWaterMark: 0 });
  const response = new Response(body, { headers: { 'content-type': 'audio/mpeg' } });
  const speech = await answering(client, response).audio.speech.create({
    model: 'tts-1',
    voice: 'alloy',
    input: 'Tea',
  });
  await new Promise(setImmediate);
  expect([given, speech.bodyUsed, speech.body?.locked]).toEqual([0, false, false]);
  const reader = speech.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  expect(given).toBe(1);
  expect(only()).toMatchObject({
    outputs: { audio: { byteLength: 1 } },
    extra: { runspan_end_reason: 'cancelled' },
  });
});

test('a response in the background has no answer and is not recorded', async () => {
  const { client, recorder } = await tracedClient();
  expect((await client.responses.create({ ...respond, background: true })).status).toBe('queued');
  expect(recorder.runs).toEqual([]);
});

const toolsOf = (look: (input: object) => unknown) => [
  { ...lookUp, function: { ...lookUp.function, description: '', parse: JSON.parse, function: look } },
];

test.each([[false], [true]])('runTools is a run with its turns and tools below it, streamed: %s', async (stream) => {
  const { client, recorder } = await tracedClient();
  const tools = toolsOf(() => 'a drink');
  const body = { ...ask, tools, stream: stream as false };
  expect(await client.chat.completions.runTools(body).finalContent()).toBe('The tools say: a drink');
  const { runs } = recorder;
  const said = { role: 'assistant', content: 'The tools say: a drink' };
  expect(runs).toMatchObject([
    {
      name: 'openai.runTools',
      run_type: 'chain',
      inputs: { ...ask, tools: ['look_up'] },
      outputs: { messages: [said] },
    },
    { outputs: { choices: [{ message: { tool_calls: [{ function: { name: 'look_up' } }] } }] } },
    { name: 'look_up', run_type: 'tool', inputs: { query: question }, outputs: { outputs: 'a drink' } },
    { inputs: { messages: [...tea, { role: 'assistant' }, { role: 'tool', content: 'a drink' }] } },
  ]);
  const [root] = runs;
  expect(runs.map(({ parent_run_id }) => parent_run_id)).toEqual([undefined, ...Array(3).fill(root?.id)]);
});

test('runTools has the options of the client, and the original method after the client is unwrapped', async () => {
  const recorder = record();
  const options = { name: 'ask', tags: ['a'], metadata: { team: 'b' }, threadId: 'c', hideInputs: true };
  const client = wrapOpenAI(bareClient(await localModel()), options);
  const tools = toolsOf(() => 'a drink');
  await client.chat.completions.runTools({ ...ask, tools }).done();
  const metadata = { team: 'b', thread_id: 'c' };
  expect(recorder.runs).toMatchObject([
    { name: 'ask', tags: ['a'], extra: { metadata } },
    { name: 'openai.chat.completions', tags: ['a'], extra: { metadata } },
    { name: 'look_up', extra: { metadata } },
    { name: 'openai.chat.completions', tags: ['a'], extra: { metadata } },
  ]);
  expect(recorder.runs.map(({ inputs }) => inputs)).toEqual(Array(4).fill({}));
  await unwrapOpenAI(client)
    .chat.completions.runTools({ ...ask, tools })
    .done();
  expect(recorder.runs).toHaveLength(4);
  expect(client.chat.completions.runTools).toBe(Object.getPrototypeOf(client.chat.completions).runTools);
});

test('a streamed answer has no usage if the application requests none', async () => {
  const { client, model, only } = await tracedClient();
  const body = { ...ask, stream: true as const };
  await chunksOf(await client.chat.completions.create(body));
  expect(model.requests.map((request) => request.body)).toEqual([{ ...ask, stream: true }]);
  expect(only().outputs).not.toHaveProperty('usage_metadata');
  expect(only().extra?.metadata).not.toHaveProperty('usage_metadata');
});

describe('the provider is determined', () => {
  const providerOf = async (client: OpenAI, url: string) => {
    const recorder = record();
    client.baseURL = url;
    wrapOpenAI(client);
    await client.chat.completions.create(ask).catch(() => {});
    return onlyRun(recorder.runs).extra?.metadata?.ls_provider;
  };
  const offline = { apiKey: 'none', maxRetries: 0, fetch: async () => Response.json({ choices: [] }) };

  test.each([
    ['https://x.ai/v1', 'xai'],
    ['https://notx.ai/v1', 'openai'],
    ['https://api.cerebras.ai/v1', 'cerebras'],
    ['https://ollama.com/v1', 'ollama'],
    ['http://ollama:8080/v1', 'ollama'],
    ['http://vllm.shop.test/v1', 'vllm'],
    ['https://litellm-proxy.shop.test', 'litellm'],
    ['https://gateway.shop.test:8000/v1', 'openai'],
    ['https://notollama.com/v1', 'openai'],
    ['no address', 'openai'],
  ])('by the host of %s: %s', async (url, provider) => {
    expect(await providerOf(new OpenAI(offline), url)).toBe(provider);
  });

  test('by the class of a client for Azure', async () => {
    const recorder = record();
    const model = await localModel();
    const azure = new AzureOpenAI({ apiKey: 'none', apiVersion: '2026-01-01', baseURL: `${model.url}/openai` });
    const client = wrapOpenAI(azure);
    await client.chat.completions.create(ask);
    expect(model.requests.map(({ path }) => path)).toEqual(['/openai/deployments/small/chat/completions']);
    expect(onlyRun(recorder.runs)).toMatchObject({ extra: { metadata: { ls_provider: 'azure' } } });
  });
});
