// Calls of the openai package and the runs that they become. The answers are those of test/support/local-model, which repeats
// the question and counts words as tokens.
import OpenAI, { AzureOpenAI } from 'openai';
import { describe, expect, test } from 'vitest';
import { unwrapOpenAI, wrapOpenAI } from '#src/integrations/openai/client.ts';
import type { RunRecord } from '#src/run/record.ts';
import { withContext } from '#src/run/start-run.ts';
import { record } from '../instrument/recorder.ts';
import { bareClient, chunksOf, localModel, lookUp, onlyRun, tea, tracedClient, weather } from './local-openai.ts';

const question = 'What is tea?';
const answered = { role: 'assistant', content: 'You said: What is tea?', refusal: null };
const ask = { model: 'small', messages: tea };
const respond = { model: 'small', input: question };
const tool = {
  type: 'function' as const,
  name: 'look_up',
  strict: false,
  parameters: { ...lookUp.function.parameters },
};
const image = new File([new Uint8Array([1, 2, 3])], 'tea.png', { type: 'image/png' });
// The PNG has 70 bytes.
const pixels = { b64_json: '[Image: 70 bytes]' };
const sound = new File([new Uint8Array(2_000)], 'tea.wav', { type: 'audio/wav' });
const transcript = { text: 'A drink.', usage: { type: 'tokens', input_tokens: 5, output_tokens: 3, total_tokens: 8 } };
/** Returns a client that gets one answer. */
const answering = (client: OpenAI, response: Response) => client.withOptions({ fetch: async () => response });
const dish = { type: 'object', properties: { dish: { type: 'string' } } };
const dishFormat = { name: 'dish', schema: dish, strict: true };
const items = [
  { role: 'user' as const, content: question },
  { type: 'function_call' as const, call_id: 'call_1', name: 'look_up', arguments: '{}' },
  { type: 'function_call_output' as const, call_id: 'call_1', output: 'a drink' },
];
const server = { type: 'mcp' as const, server_label: 'shop', server_url: 'https://shop.test' };
const chatParameters = { model: 'small', temperature: 0.5, max_completion_tokens: 9, stop: '.', tools: [lookUp] };
const usage = (input: number, output: number) => ({
  input_tokens: input,
  output_tokens: output,
  total_tokens: input + output,
});

interface Expected extends Partial<Omit<RunRecord, 'extra'>> {
  metadata?: object;
  /** Keys that the outputs do not have. */
  absent?: string[];
}

type Row = [title: string, call: (client: OpenAI) => PromiseLike<unknown>, expected: Expected];

const calls: Row[] = [
  [
    'a chat completion',
    (client) =>
      client.chat.completions.create({
        model: 'small',
        messages: [{ role: 'system', content: 'Be brief' }, ...tea],
        reasoning_effort: 'low',
      }),
    {
      name: 'openai.chat.completions',
      run_type: 'llm',
      inputs: { messages: [{ role: 'system', content: 'Be brief' }, ...tea] },
      outputs: {
        object: 'chat.completion',
        choices: [{ message: { ...answered, reasoning_content: 'Let me think.' } }],
        // Five words of an answer and three of reasoning. The first two words were in the cache.
        usage_metadata: {
          ...usage(5, 8),
          input_token_details: { cache_read: 2, audio: 0 },
          output_token_details: { reasoning: 3, audio: 0 },
        },
      },
    },
  ],
  [
    'the parameters of a chat completion',
    (client) => client.chat.completions.create({ ...chatParameters, messages: tea, user: 'ada' }),
    {
      metadata: {
        ls_provider: 'openai',
        ls_model_type: 'chat',
        ls_model_name: 'small',
        recorded_by: ['wrapOpenAI'],
        response_id: 'chatcmpl-local',
        response_model: 'small-2026-01-01',
        ls_temperature: 0.5,
        ls_max_tokens: 9,
        ls_stop: ['.'],
        ls_invocation_params: { ...chatParameters, user: 'ada' },
        user_id: 'ada',
        request_id: 'req_1',
        usage_metadata: expect.anything(),
      },
    },
  ],
  [
    'audio that a chat completion generates',
    (client) => client.chat.completions.create({ ...ask, modalities: ['text', 'audio'] }),
    { outputs: { choices: [{ message: { audio: { data: '[Audio: 70 bytes]' } } }] } },
  ],
  [
    'the helper chat.completions.parse',
    (client) =>
      client.chat.completions.parse({ ...ask, response_format: { type: 'json_schema', json_schema: dishFormat } }),
    { outputs: { choices: [{ message: { content: '{"dish":"What is tea?"}' } }] } },
  ],
  [
    'the helper chat.completions.stream',
    (client) => client.chat.completions.stream(ask).finalChatCompletion(),
    { outputs: { choices: [{ message: answered, finish_reason: 'stop' }] } },
  ],
  [
    'a derived promise that alone reads the answer',
    (client) => {
      const call = client.chat.completions.create(ask);
      const content = call._thenUnwrap(({ choices }) => choices[0]?.message.content).then((text) => text);
      return Promise.all([content, call.asResponse()]);
    },
    { outputs: { choices: [{ message: answered }] } },
  ],
  [
    'an error that a gateway reports instead of choices',
    (client) => {
      const fetch = async () => Response.json({ error: { code: 502, message: 'Provider returned error' } });
      return client.withOptions({ fetch }).chat.completions.create(ask);
    },
    { error: '502: Provider returned error', outputs: { error: { code: 502 } } },
  ],
  [
    'a response',
    (client) =>
      client.responses.create({
        ...respond,
        instructions: 'Be brief',
        max_output_tokens: 9,
        tools: [tool],
        tool_choice: 'none',
        reasoning: {},
      }),
    {
      name: 'openai.responses',
      run_type: 'llm',
      inputs: {
        messages: [
          { role: 'system', content: 'Be brief' },
          { role: 'user', content: question },
        ],
      },
      outputs: {
        object: 'response',
        status: 'completed',
        model: 'small-2026-01-01',
        usage_metadata: {
          ...usage(5, 6),
          input_token_details: { cache_read: 2 },
          output_token_details: { reasoning: 3 },
        },
      },
      absent: ['instructions', 'tools', 'output_text'],
      metadata: {
        ls_provider: 'openai',
        ls_model_type: 'chat',
        ls_model_name: 'small',
        ls_max_tokens: 9,
        ls_invocation_params: {
          model: 'small',
          max_output_tokens: 9,
          tools: [tool],
          tool_choice: 'none',
          reasoning: {},
        },
        recorded_by: ['wrapOpenAI'],
        response_id: 'resp_local',
        response_model: 'small-2026-01-01',
        request_id: 'req_1',
        usage_metadata: expect.anything(),
      },
    },
  ],
  [
    'the items and the prompt of a response',
    (client) => client.responses.create({ model: 'small', input: items, prompt: { id: 'pmpt_1' } }),
    {
      inputs: { messages: items, prompt: { id: 'pmpt_1' } },
      outputs: { output: [{ content: [{ text: 'The tools say: a drink' }] }] },
    },
  ],
  [
    'a response with a tool server, without its credentials',
    (client) =>
      client.responses.create({
        ...respond,
        tools: [{ ...server, authorization: 'secret', headers: { a: 'secret' } }],
      }),
    {
      metadata: expect.objectContaining({ ls_invocation_params: { model: 'small', tools: [server] } }),
    },
  ],
  [
    'a response that failed',
    (client) => client.responses.create({ ...respond, model: 'fail-response' }),
    { error: 'server_error: the model gave up', outputs: { status: 'failed' } },
  ],
  [
    'a streamed response in the background',
    async (client) => chunksOf(await client.responses.create({ ...respond, background: true, stream: true })),
    { outputs: { output: [{ content: [{ text: 'You said: What is tea?' }] }] } },
  ],
  [
    'the helper responses.parse',
    (client) => client.responses.parse({ ...respond, text: { format: { type: 'json_schema', ...dishFormat } } }),
    { outputs: { output: [{ content: [{ text: '{"dish":"What is tea?"}' }] }] } },
  ],
  [
    'the helper responses.stream',
    (client) => client.responses.stream(respond).finalResponse(),
    { outputs: { status: 'completed', output: [{ content: [{ text: 'You said: What is tea?' }] }] } },
  ],
  [
    'a compacted conversation',
    (client) => {
      const usage = { input_tokens: 9, output_tokens: 2, total_tokens: 11 };
      const fetch = async () => Response.json({ output: [{ type: 'compaction', encrypted_content: 'x' }], usage });
      return client.withOptions({ fetch }).responses.compact(respond as never);
    },
    {
      name: 'openai.responses.compact',
      run_type: 'llm',
      inputs: { messages: tea },
      outputs: { output: [{ type: 'compaction', encrypted_content: 'x' }], usage_metadata: usage(9, 2) },
    },
  ],
  [
    'a completion',
    (client) => client.completions.create({ model: 'small', prompt: question, max_tokens: 5 }),
    {
      name: 'openai.completions',
      run_type: 'llm',
      inputs: { prompt: question },
      outputs: {
        choices: [{ index: 0, text: ' You said: What is tea?', finish_reason: 'stop' }],
        usage_metadata: usage(3, 5),
      },
      metadata: expect.objectContaining({ ls_model_type: 'llm', ls_max_tokens: 5 }),
    },
  ],
  ...(['float', 'base64', undefined] as const).map(
    (format): Row => [
      `embeddings as ${format}, without the vectors`,
      (client) =>
        client.embeddings.create({
          model: 'small',
          input: ['green tea', 'black tea'],
          dimensions: 12,
          ...(format && { encoding_format: format }),
        }),
      {
        name: 'openai.embeddings',
        run_type: 'embedding',
        inputs: { input: ['green tea', 'black tea'] },
        outputs: {
          object: 'list',
          model: 'small',
          count: 2,
          dimensions: 12,
          usage: { prompt_tokens: 4, total_tokens: 4 },
          usage_metadata: { input_tokens: 4, total_tokens: 4 },
        },
        absent: ['data'],
        metadata: expect.objectContaining({ ls_model_type: 'embedding' }),
      },
    ],
  ),
  [
    'a generated image, without the pixels',
    (client) => client.images.generate({ model: 'small', prompt: 'a cup of tea' }),
    {
      name: 'openai.images.generate',
      inputs: { prompt: 'a cup of tea' },
      outputs: { data: [pixels], usage_metadata: { input_tokens: 5, output_tokens: 100 } },
    },
  ],
  [
    'an edited image, whose file the SDK reads',
    (client) => client.images.edit({ model: 'small', prompt: 'with milk', image }),
    {
      name: 'openai.images.edit',
      inputs: { prompt: 'with milk' },
      outputs: { data: [pixels] },
      metadata: expect.objectContaining({ ls_invocation_params: { model: 'small' } }),
    },
  ],
  [
    'a variation of an image',
    (client) => client.images.createVariation({ model: 'small', image }),
    { name: 'openai.images.createVariation', outputs: { data: [pixels] } },
  ],
  ...(['transcriptions', 'translations'] as const).map(
    (kind): Row => [
      `an audio file to ${kind}`,
      (client) =>
        answering(client, Response.json(transcript)).audio[kind].create({
          model: 'whisper-1',
          file: sound,
          prompt: 'tea',
        }),
      {
        name: `openai.audio.${kind}`,
        run_type: 'llm',
        inputs: { file: { type: 'File', byteLength: 2_000, attachment: 'inputs_1' }, prompt: 'tea' },
        outputs: { text: 'A drink.', usage_metadata: usage(5, 3) },
        metadata: expect.objectContaining({ ls_model_name: 'whisper-1' }),
      },
    ],
  ),
  [
    'a transcription as plain text, of a file that only the SDK reads',
    (client) =>
      answering(
        client,
        new Response('A drink.', { headers: { 'content-type': 'text/plain' } }),
      ).audio.transcriptions.create({
        model: 'whisper-1',
        file: new Response(sound),
        response_format: 'text',
      }),
    { inputs: { file: '[Response]' }, outputs: { outputs: 'A drink.' } },
  ],
  [
    'a streamed transcription',
    async (client) => {
      const events = [
        { type: 'transcript.text.delta', delta: 'A ' },
        { type: 'transcript.text.delta', delta: 'drink.' },
        { type: 'transcript.text.done', ...transcript },
      ];
      const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
      const { audio } = answering(client, new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
      await chunksOf(await audio.transcriptions.create({ model: 'gpt', file: sound, stream: true }));
    },
    {
      outputs: { text: 'A drink.', usage_metadata: usage(5, 3) },
      events: [expect.objectContaining({ name: 'new_token' })],
    },
  ],
  [
    'generated speech',
    async (client) => {
      const response = new Response(new Uint8Array(3_000), { headers: { 'content-type': 'audio/mpeg' } });
      const speech = await answering(client, response).audio.speech.create({
        model: 'tts-1',
        voice: 'alloy',
        input: 'Tea',
      });
      expect(speech).toBe(response);
      expect((await speech.arrayBuffer()).byteLength).toBe(3_000);
    },
    {
      name: 'openai.audio.speech',
      inputs: { input: 'Tea' },
      outputs: { audio: { byteLength: 3_000, attachment: 'outputs_1' } },
      metadata: expect.objectContaining({ ls_invocation_params: { model: 'tts-1', voice: 'alloy' } }),
    },
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

test.each(calls)('%s is recorded', async (_, call, { metadata, absent = [], ...expected }) => {
  const { client, only } = await tracedClient();
  await call(client);
  const run = only();
  expect(run).toMatchObject({ ...expected, end_time: expect.any(String) });
  if (expected.error === undefined) expect(run).not.toHaveProperty('error');
  for (const key of absent) expect(run.outputs).not.toHaveProperty(key);
  if (metadata !== undefined) expect(run.extra?.metadata).toEqual(metadata);
  expect(JSON.stringify(run)).not.toMatch(/secret|iVBOR/);
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
    extra: { metadata: { end_reason: 'cancelled' } },
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
  const client = wrapOpenAI(bareClient(await localModel()), { tags: ['a'], metadata: { team: 'b' }, threadId: 'c' });
  const tools = toolsOf(() => 'a drink');
  await client.chat.completions.runTools({ ...ask, tools }).done();
  const metadata = { team: 'b', thread_id: 'c' };
  expect(recorder.runs).toMatchObject([
    { name: 'openai.runTools', tags: ['a'], extra: { metadata } },
    { tags: ['a'], extra: { metadata } },
    { name: 'look_up', extra: { metadata } },
    { tags: ['a'], extra: { metadata } },
  ]);
  await unwrapOpenAI(client)
    .chat.completions.runTools({ ...ask, tools })
    .done();
  expect(recorder.runs).toHaveLength(4);
  expect(client.chat.completions.runTools).toBe(Object.getPrototypeOf(client.chat.completions).runTools);
});

describe('a streamed answer is recorded like the same answer at once:', () => {
  const withUsage = { stream: true as const, stream_options: { include_usage: true } };
  const both = (options: object): Row[1] => {
    return async ({ chat }) => {
      await chat.completions.create({ ...ask, ...options });
      await chunksOf(await chat.completions.create({ ...ask, ...options, ...withUsage }));
    };
  };
  const bothResponses = (options: object): Row[1] => {
    return async ({ responses }) => {
      await responses.create({ ...respond, ...options });
      await chunksOf(await responses.create({ ...respond, ...options, stream: true }));
    };
  };

  test.each<[string, Row[1], extra?: object]>([
    ['a chat completion', both({})],
    ['several choices', both({ n: 2 })],
    ['a tool call', both({ tools: [lookUp] })],
    ['several tool calls', both({ tools: [lookUp, weather], messages: [{ role: 'user', content: 'Ask all' }] })],
    ['a refusal', both({ model: 'refuse' })],
    ['log probabilities', both({ logprobs: true })],
    ['reasoning', both({ reasoning_effort: 'low' })],
    ['audio', both({ modalities: ['text', 'audio'] })],
    ['a response', bothResponses({})],
    ['a response with a function call', bothResponses({ tools: [tool] })],
    ['a response with reasoning', bothResponses({ reasoning: {} })],
    ['a response with a refusal', bothResponses({ model: 'refuse' })],
    ['a response that failed', bothResponses({ model: 'fail-response' })],
    [
      'a completion',
      async ({ completions }) => {
        await completions.create({ model: 'small', prompt: question });
        await chunksOf(await completions.create({ model: 'small', prompt: question, stream: true }));
      },
      // The model streams no usage.
      { usage: undefined, usage_metadata: undefined },
    ],
    [
      'an image, with the number of partial images',
      async ({ images }) => {
        const body = { model: 'small', prompt: 'a cup of tea' };
        await images.generate(body);
        await chunksOf(await images.generate({ ...body, stream: true, partial_images: 1 }));
      },
      { partial_images: 1 },
    ],
  ])('%s', async (_, call, extra = {}) => {
    const { client, recorder } = await tracedClient();
    await call(client);
    const [atOnce, streamed] = recorder.runs;
    expect(streamed?.outputs).toEqual({ ...atOnce?.outputs, ...extra });
    expect(streamed?.error).toEqual(atOnce?.error);
    expect(streamed?.extra?.metadata?.usage_metadata).toEqual(streamed?.outputs?.usage_metadata);
    expect(JSON.stringify(recorder.runs)).not.toContain('iVBOR');
  });

  test('without usage if the application requests none', async () => {
    const { client, model, only } = await tracedClient();
    const body = { ...ask, stream: true as const };
    await chunksOf(await client.chat.completions.create(body));
    expect(model.requests.map((request) => request.body)).toEqual([{ ...ask, stream: true }]);
    expect(only().outputs).not.toHaveProperty('usage_metadata');
    expect(only().extra?.metadata).not.toHaveProperty('usage_metadata');
  });
});

test('audio in a request is an attachment, and is sent unchanged', async () => {
  const sound = Buffer.alloc(3_000, 7);
  const part = (format: 'mp3' | 'wav', data = sound.toString('base64')) => ({
    type: 'input_audio' as const,
    input_audio: { data, format },
  });
  const { client, model, recorder } = await tracedClient();
  const body = { model: 'small', messages: [{ role: 'user' as const, content: [part('wav')] }] };
  const before = structuredClone(body);
  await client.chat.completions.create(body);
  await client.responses.create({ model: 'small', input: [{ role: 'user', content: [part('mp3')] }] as never });
  expect([body, model.requests[0]?.body]).toEqual([before, before]);
  const [chat, response] = recorder.runs;
  const marker = '[Attachment inputs_1: audio/wav, 3000 bytes]';
  expect(chat?.inputs.messages).toEqual([{ role: 'user', content: [part('wav', marker)] }]);
  expect(chat?.attachments).toMatchObject([{ name: 'inputs_1', mimeType: 'audio/wav' }]);
  expect(Buffer.compare(chat?.attachments?.[0]?.bytes as Uint8Array, sound)).toBe(0);
  expect(response?.attachments).toMatchObject([{ name: 'inputs_1', mimeType: 'audio/mpeg' }]);
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
    ['https://api.openai.com/v1', 'openai'],
    ['https://shop.openai.azure.com/openai/v1', 'azure'],
    ['https://api.deepseek.com', 'deepseek'],
    ['https://x.ai/v1', 'xai'],
    ['https://notx.ai/v1', 'openai'],
    ['https://gateway.shop.test/v1', 'openai'],
    ['https://api.cerebras.ai/v1', 'cerebras'],
    ['https://ollama.com/v1', 'ollama'],
    ['http://127.0.0.1:11434/v1', 'ollama'],
    ['http://ollama:8080/v1', 'ollama'],
    ['http://localhost:8000/v1', 'vllm'],
    ['http://vllm.shop.test/v1', 'vllm'],
    ['http://localhost:4000', 'litellm'],
    ['https://litellm-proxy.shop.test', 'litellm'],
    ['https://gateway.shop.test:8000/v1', 'openai'],
    ['https://notollama.com/v1', 'openai'],
    ['http://127.0.0.1:1234/v1', 'openai'],
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
