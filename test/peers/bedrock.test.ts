// Calls of the AWS SDK's client for Bedrock, and the runs that they become. The answers are those of the API's reference:
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime.html
import { getEventListeners } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { transformWithEsbuild } from 'vite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type BedrockLike, unwrapBedrock, wrapBedrock } from '#src/integrations/bedrock/client.ts';
import { record } from '../instrument/recorder.ts';
import { type BedrockAnswer, bedrockService, chunk } from '../integrations/bedrock-service.ts';
import { registered } from '../integrations/registered.ts';
import { makeSink } from '../run/memory-sink.ts';
import { collectUntil } from '../support/garbage.ts';
import { logLines } from '../support/log-lines.ts';
import { laterNode } from './later-node.ts';

interface Client extends BedrockLike {
  send(command: object, options?: object): Promise<Output>;
  destroy(): void;
}
interface Output {
  readonly stream?: AsyncIterable<object>;
  readonly body?: AsyncIterable<object> & Uint8Array;
}
interface Package {
  readonly BedrockRuntimeClient: new (options: object) => Client;
  readonly [command: `${string}Command`]: new (input: object) => object;
}

const today = new URL('./today/', import.meta.url);
const sdk = createRequire(new URL('package.json', today))('@aws-sdk/client-bedrock-runtime') as Package;
const command = (name: string, input: object): object =>
  new (sdk[`${name}Command`] as new (input: object) => object)(input);

function makeClient(url: string): Client {
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const client = new sdk.BedrockRuntimeClient({ region: 'us-east-1', endpoint: url, credentials, maxAttempts: 1 });
  onTestFinished(() => client.destroy());
  return client;
}

async function readAll({ stream, body }: Output, onEvent?: (event: object) => void): Promise<object[]> {
  const events: object[] = [];
  for await (const event of stream ?? (body as AsyncIterable<object>)) {
    events.push(event);
    onEvent?.(event);
  }
  return events;
}

const modelId = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';
const user = (text: string) => ({ role: 'user', content: [{ text }] });
const converse = (text = 'Rain?', more: object = {}) => ({ modelId, messages: [user(text)], ...more });
const invoke = (id: string, body: object) => ({ modelId: id, body: JSON.stringify(body) });

// 20 input tokens were read from the cache, 6 were written for an hour and 2 for five minutes, and 3 were neither. The
// page on prompt caching explains the counts: https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html
const usage = {
  ...{ inputTokens: 3, outputTokens: 5, totalTokens: 36, cacheReadInputTokens: 20, cacheWriteInputTokens: 8 },
  cacheDetails: [
    { ttl: '1h', inputTokens: 6 },
    { ttl: '5m', inputTokens: 2 },
  ],
};
const usage_metadata = {
  ...{ input_tokens: 31, output_tokens: 5, total_tokens: 36 },
  input_token_details: { cache_read: 20, ephemeral_5m_input_tokens: 2, ephemeral_1hr_input_tokens: 6 },
};
const metrics = { 'amazon-bedrock-invocationMetrics': { inputTokenCount: 7, outputTokenCount: 4 } };
const sevenAndFour = { input_tokens: 7, output_tokens: 4, total_tokens: 11 };
const weather = { toolUseId: 't1', name: 'weather' };
const message = {
  role: 'assistant',
  content: [
    { reasoningContent: { reasoningText: { text: 'Hm, so.', signature: 'c2ln' } } },
    { text: 'I look.' },
    { toolUse: { ...weather, input: { city: 'Oslo' } } },
  ],
};
const answer = { output: { message }, stopReason: 'tool_use', usage, metrics: { latencyMs: 5 } };
const delta = (contentBlockIndex: number, fields: object) =>
  ['contentBlockDelta', { contentBlockIndex, delta: fields }] as const;
const events: NonNullable<BedrockAnswer['events']> = [
  ['messageStart', { role: 'assistant' }],
  delta(0, { reasoningContent: { text: 'Hm, ' } }),
  delta(0, { reasoningContent: { text: 'so.' } }),
  delta(0, { reasoningContent: { signature: 'c2ln' } }),
  ['contentBlockStop', { contentBlockIndex: 0 }],
  delta(1, { text: 'I ' }),
  delta(1, { text: 'look.' }),
  ['contentBlockStart', { contentBlockIndex: 2, start: { toolUse: weather } }],
  delta(2, { toolUse: { input: '{"city":' } }),
  delta(2, { toolUse: { input: '"Oslo"}' } }),
  ['messageStop', { stopReason: 'tool_use' }],
  ['metadata', { usage, metrics: { latencyMs: 5 } }],
];
/** The events up to and including the second delta of the text. */
const beginning = events.slice(0, 7);

test('a conversation is recorded with its parameters, tools, media and cached tokens', async () => {
  const service = await bedrockService({ json: answer });
  const recorder = record();
  const bytes = new Uint8Array(1_500).fill(1);
  const tool = { name: 'weather', inputSchema: { json: { type: 'object' } } };
  const input = {
    modelId,
    system: [{ text: 'Be kind.' }],
    messages: [{ role: 'user', content: [{ text: 'Rain?' }, { image: { format: 'png', source: { bytes } } }] }],
    inferenceConfig: { maxTokens: 9, temperature: 0.5, stopSequences: ['END'] },
    toolConfig: { tools: [{ toolSpec: tool }] },
  };
  const client = wrapBedrock(makeClient(service.url), { tags: ['a'] });
  await client.send(command('Converse', input));
  const [run] = recorder.runs;
  expect(run).toMatchObject({
    name: 'bedrock.converse',
    run_type: 'llm',
    tags: ['a'],
    inputs: {
      messages: [
        { role: 'system', content: [{ text: 'Be kind.' }] },
        {
          content: [
            { text: 'Rain?' },
            { image: { source: { bytes: '[Attachment inputs_1: image/png, 1500 bytes]' } } },
          ],
        },
      ],
    },
    outputs: { output: { message }, stopReason: 'tool_use', usage_metadata },
    extra: {
      metadata: {
        ls_provider: 'amazon_bedrock',
        ls_model_name: modelId,
        ls_temperature: 0.5,
        ls_max_tokens: 9,
        ls_stop: ['END'],
        ls_invocation_params: { tools: [tool] },
        request_id: 'request-1',
        usage_metadata,
      },
    },
  });
  expect(run?.outputs).not.toHaveProperty('$metadata');
});

test('input tokens that include cached tokens are counted once', async () => {
  const { url } = await bedrockService({ json: { ...answer, usage: { ...usage, inputTokens: 31, totalTokens: 36 } } });
  const recorder = record();
  await wrapBedrock(makeClient(url)).send(command('Converse', converse()));
  expect(recorder.runs[0]?.outputs?.usage_metadata).toEqual(usage_metadata);
});

test('a streamed conversation is recorded like one that is not streamed, with its first token', async () => {
  const streamed = await bedrockService({ events });
  const whole = await bedrockService({ json: answer });
  const recorder = record();
  await readAll(await wrapBedrock(makeClient(streamed.url)).send(command('ConverseStream', converse())));
  await wrapBedrock(makeClient(whole.url)).send(command('Converse', converse()));
  const [one, other] = recorder.runs;
  expect(one?.outputs).toEqual(other?.outputs);
  expect(one).toMatchObject({ name: 'bedrock.converse', events: [{ name: 'new_token' }] });
});

const anthropic = {
  anthropic_version: 'bedrock-2023-05-31',
  max_tokens: 9,
  messages: [{ role: 'user', content: 'Rain?' }],
};
const claude = { id: 'msg_bdrk_1', type: 'message', role: 'assistant', model: 'claude' };
const ofAnthropic = { input_tokens: 3, cache_read_input_tokens: 20, cache_creation_input_tokens: 8, output_tokens: 5 };
const block = (fields: object) => ({ index: 0, ...fields });
const nova = { messages: [user('Rain?')], inferenceConfig: { maxTokens: 9 } };
const novaUsage = { inputTokens: 3, outputTokens: 5, totalTokens: 28, cacheReadInputTokenCount: 20 };
const ofNova = { message: { role: 'assistant', content: [{ text: 'No.' }] } };

test.each<[string, string, object, object, object[], object, object]>([
  [
    'Anthropic',
    modelId,
    anthropic,
    { ...claude, content: [{ type: 'text', text: 'No.' }], stop_reason: 'end_turn', usage: ofAnthropic },
    [
      { type: 'message_start', message: { ...claude, content: [], usage: { ...ofAnthropic, output_tokens: 1 } } },
      block({ type: 'content_block_start', content_block: { type: 'text', text: '' } }),
      ...['N', 'o.'].map((text) => block({ type: 'content_block_delta', delta: { type: 'text_delta', text } })),
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
      { type: 'message_stop', ...metrics },
    ],
    { messages: [{ role: 'user', content: 'Rain?' }] },
    {
      content: [{ type: 'text', text: 'No.' }],
      usage_metadata: {
        input_tokens: 31,
        output_tokens: 5,
        input_token_details: { cache_read: 20, cache_creation: 8 },
      },
    },
  ],
  [
    'Amazon Nova',
    'us.amazon.nova-lite-v1:0',
    nova,
    { output: ofNova, stopReason: 'end_turn', usage: novaUsage },
    [
      { messageStart: { role: 'assistant' } },
      ...['N', 'o.'].map((text) => ({ contentBlockDelta: { contentBlockIndex: 0, delta: { text } } })),
      { messageStop: { stopReason: 'end_turn' } },
      { metadata: { usage: novaUsage }, ...metrics },
    ],
    { messages: nova.messages },
    { output: ofNova, usage_metadata: { input_tokens: 23, output_tokens: 5, input_token_details: { cache_read: 20 } } },
  ],
  [
    'Meta Llama',
    'meta.llama3-70b-instruct-v1:0',
    { prompt: 'Rain?', max_gen_len: 9 },
    { generation: 'No.', prompt_token_count: 7, generation_token_count: 4, stop_reason: 'stop' },
    [
      { generation: 'N', prompt_token_count: 7, generation_token_count: 1, stop_reason: null },
      { generation: 'o.', prompt_token_count: null, generation_token_count: 4, stop_reason: 'stop', ...metrics },
    ],
    { prompt: 'Rain?' },
    { text: 'No.', stop_reason: 'stop', usage_metadata: sevenAndFour },
  ],
  [
    'Amazon Titan',
    'amazon.titan-text-express-v1',
    { inputText: 'Rain?', textGenerationConfig: { maxTokenCount: 9 } },
    { inputTextTokenCount: 7, results: [{ tokenCount: 4, outputText: 'No.', completionReason: 'FINISH' }] },
    [
      { outputText: 'N', index: 0, totalOutputTextTokenCount: null, completionReason: null, inputTextTokenCount: 7 },
      { outputText: 'o.', index: 0, totalOutputTextTokenCount: 4, completionReason: 'FINISH', ...metrics },
    ],
    { input: 'Rain?' },
    { text: 'No.', completionReason: 'FINISH', usage_metadata: sevenAndFour },
  ],
  [
    'an OpenAI-compatible model',
    'openai.gpt-oss-20b-1:0',
    { messages: [{ role: 'user', content: 'Rain?' }], max_tokens: 9 },
    {
      choices: [{ index: 0, message: { role: 'assistant', content: 'No.' } }],
      usage: { prompt_tokens: 7, completion_tokens: 4 },
    },
    [
      ...['N', 'o.'].map((content) => ({ choices: [{ index: 0, delta: { role: 'assistant', content } }] })),
      { choices: [], usage: { prompt_tokens: 7, completion_tokens: 4 }, ...metrics },
    ],
    { messages: [{ role: 'user', content: 'Rain?' }] },
    { choices: [{ message: { content: 'No.' } }], usage_metadata: sevenAndFour },
  ],
])(
  'InvokeModel is recorded in the format of %s, streamed or not',
  async (_, id, body, json, chunks, inputs, outputs) => {
    const whole = await bedrockService({ json });
    const streamed = await bedrockService({ events: chunks.map(chunk) });
    const recorder = record();
    await wrapBedrock(makeClient(whole.url)).send(command('InvokeModel', invoke(id, body)));
    const input = { ...invoke(id, body), body: Buffer.from(JSON.stringify(body)) };
    const client = wrapBedrock(makeClient(streamed.url));
    await readAll(await client.send(command('InvokeModelWithResponseStream', input)));
    const metadata = { ls_provider: 'amazon_bedrock', ls_model_name: id, ls_max_tokens: 9 };
    const run = { name: 'bedrock.invokeModel', run_type: 'llm', inputs, outputs, extra: { metadata } };
    expect(recorder.runs).toMatchObject([run, { ...run, events: [{ name: 'new_token' }] }]);
  },
);

test('embeddings are recorded as the number of vectors, and tokens that only the headers contain', async () => {
  const titan = await bedrockService({ json: { embedding: [0.1, 0.2, 0.3], inputTextTokenCount: 2 } });
  const headers = { 'x-amzn-bedrock-input-token-count': '2' };
  const cohere = await bedrockService({ json: { embeddings: { float: [[0.1], [0.2]] } }, headers });
  const recorder = record();
  const send = (url: string, input: object) => wrapBedrock(makeClient(url)).send(command('InvokeModel', input));
  await send(titan.url, invoke('amazon.titan-embed-text-v2:0', { inputText: 'Rain?' }));
  await send(cohere.url, invoke('cohere.embed-v4:0', { texts: ['Rain?', 'Sun?'], input_type: 'search_query' }));
  const usage_metadata = { input_tokens: 2 };
  expect(recorder.runs).toMatchObject([
    { run_type: 'embedding', inputs: { input: 'Rain?' }, outputs: { count: 1, dimensions: 3, usage_metadata } },
    {
      run_type: 'embedding',
      inputs: { texts: ['Rain?', 'Sun?'] },
      outputs: { count: 2, dimensions: 1, usage_metadata },
    },
  ]);
});

const fault = { status: 429, headers: { 'x-amzn-errortype': 'ThrottlingException' }, json: { message: 'Too many.' } };
const broken: BedrockAnswer = { events: [...beginning, ['modelStreamErrorException', { message: 'It broke.' }]] };

describe('a wrapped client behaves like a bare one, and its run ends like the call', () => {
  const withSignal = async (client: Client) => {
    const controller = new AbortController();
    const output = await client.send(command('ConverseStream', converse()), { abortSignal: controller.signal });
    let count = 0;
    return readAll(output, () => ++count === beginning.length && controller.abort());
  };
  const stream = (client: Client) => client.send(command('ConverseStream', converse()));
  const text = { output: { message: { content: [{}, { text: 'I look.' }] } } };

  test.each<[string, BedrockAnswer, (client: Client) => Promise<unknown>, object, string?]>([
    ['with an answer', { json: answer }, (client) => client.send(command('Converse', converse())), {}],
    [
      'with a callback',
      { json: answer },
      (client) => {
        return new Promise((done) => client.send(command('Converse', converse()), (...args: unknown[]) => done(args)));
      },
      {},
    ],
    ['with a stream', { events }, async (client) => readAll(await stream(client)), {}],
    [
      'with an error',
      fault,
      (client) => client.send(command('Converse', converse())),
      { error: expect.stringMatching(/^ThrottlingException: Too many\.\n/) },
    ],
    [
      'with an error in a stream',
      broken,
      async (client) => readAll(await stream(client)),
      { outputs: text, error: expect.stringMatching(/^ModelStreamErrorException: It broke\.\n/) },
    ],
    [
      'with a stream that the application leaves',
      { events },
      async (client) => {
        for await (const event of (await stream(client)).stream as AsyncIterable<object>) return event;
      },
      {},
      'cancelled',
    ],
    ['with an aborted stream', { events: beginning, staysOpen: true }, withSignal, { outputs: text }, 'cancelled'],
    [
      'with an aborted request',
      { json: answer },
      (client) => client.send(command('Converse', converse()), { abortSignal: AbortSignal.abort() }),
      { error: expect.stringMatching(/^AbortError/) },
      'cancelled',
    ],
  ])('%s', async (_, given, program, expected, reason) => {
    const seen = async (wrap: (client: Client) => Client) => {
      const { url, requests } = await bedrockService(given);
      const result = await program(wrap(makeClient(url))).then(
        (value) => ({ value }),
        ({ name, message, $fault, $metadata }) => ({ name, message, $fault, $metadata }),
      );
      return { ...result, requests };
    };
    const bare = await seen((client) => client);
    const recorder = record();
    expect(await seen((client) => wrapBedrock(client))).toEqual(bare);
    expect(recorder.runs).toMatchObject([{ end_time: expect.any(String), ...expected }]);
    expect(recorder.runs[0]?.extra?.metadata?.end_reason).toBe(reason);
  });

  test('with a stream that is never read', async () => {
    const { url } = await bedrockService({ events, staysOpen: true });
    const recorder = record();
    await stream(wrapBedrock(makeClient(url)));
    await collectUntil(() => recorder.runs[0]?.end_time !== undefined);
    expect(recorder.runs[0]).toMatchObject({ error: expect.stringMatching(/^Interrupted: /) });
    expect(recorder.runs[0]?.outputs).toBeUndefined();
  });
});

test('no listener stays on an abort signal that streamed calls share', async () => {
  const { url } = await bedrockService({ events });
  const faulty = await bedrockService(broken);
  const count = async (wrap: (client: Client) => Client) => {
    const { signal: abortSignal } = new AbortController();
    const stream = (to: string) => wrap(makeClient(to)).send(command('ConverseStream', converse()), { abortSignal });
    await readAll(await stream(url));
    for await (const _ of (await stream(url)).stream as AsyncIterable<object>) break;
    await expect(readAll(await stream(faulty.url))).rejects.toThrow('It broke.');
    return getEventListeners(abortSignal, 'abort').length;
  };
  record();
  expect(await count((client) => wrapBedrock(client))).toBe(await count((client) => client));
});

test('with hidden inputs and outputs, no text of a message is recorded', async () => {
  const { url } = await bedrockService({ json: { ...answer, generations: ['look'] } });
  const sink = makeSink({ hideInputs: true, hideOutputs: true });
  const client = wrapBedrock(makeClient(url), { exporter: sink });
  await client.send(command('Converse', converse('Rain?', { system: [{ text: 'Rain.' }] })));
  const unknown = { message: 'Rain?', chat_history: ['Rain.'] };
  await client.send(command('InvokeModel', invoke('cohere.command-text-v14', unknown)));
  expect(sink.records()).toMatchObject([{ extra: { metadata: { usage_metadata } } }, { name: 'bedrock.invokeModel' }]);
  expect(JSON.stringify(sink.records())).not.toMatch(/Rain|look/);
});

test('other commands are not recorded, and an unwrapped client records nothing', async () => {
  const { url } = await bedrockService({ json: { inputTokens: 1 } });
  const recorder = record();
  const client = wrapBedrock(makeClient(url));
  await client.send(command('CountTokens', { modelId, input: { converse: converse() } }));
  expect(unwrapBedrock(client)).toBe(client);
  await client.send(command('Converse', converse()));
  expect(recorder.runs).toEqual([]);
});

test('the options of the last wrapper apply, and each call is recorded once', async () => {
  const { url } = await bedrockService({ json: answer });
  const recorder = record();
  const client = wrapBedrock(wrapBedrock(makeClient(url), { tags: ['a'] }), { tags: ['b'] });
  await client.send(command('Converse', converse()));
  expect(recorder.runs).toMatchObject([{ tags: ['b'] }]);
});

test('a client of another service is not changed', () => {
  const lines = logLines('warn');
  const client = {
    config: { serviceId: 'S3' },
    middlewareStack: { add: () => expect.unreachable(), remove: () => true },
  };
  expect(wrapBedrock(client)).toBe(client);
  expect(lines).toEqual([
    'warn: wrapBedrock(client): expected a client of @aws-sdk/client-bedrock-runtime, got another object; the value is not traced.',
  ]);
});

describe.each(['module', 'commonjs'] as const)('with runspan/register, a program of the format %s', (format) => {
  async function run(code: string, given: BedrockAnswer) {
    const { url } = await bedrockService(given);
    const program = `
      import { BedrockRuntime } from '@aws-sdk/client-bedrock-runtime';
      import { wrapBedrock } from 'runspan/bedrock';
      import { ChatBedrockConverse } from '@langchain/aws';
      import { HumanMessage, ToolMessage } from '@langchain/core/messages';
      const options = { region: 'us-east-1', credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, maxAttempts: 1 };
      const client = new BedrockRuntime({ ...options, endpoint: '${url}' });
      const input = ${JSON.stringify(converse())};
      void (async () => {${code}; client.destroy()})();`;
    const text = format === 'module' ? program : (await transformWithEsbuild(program, 'a.mjs', { format: 'cjs' })).code;
    const register = import.meta.resolve('runspan/register');
    const command = [laterNode(), '--import', register, `--input-type=${format}`, '-e', text];
    const ended = await registered(command, {}, fileURLToPath(today));
    expect([ended.code, ended.stderr]).toEqual([0, '']);
    return ended;
  }

  test('has a run for each call, wrapped or not', async () => {
    const code = `
      console.log((await client.converse(input)).stopReason);
      await wrapBedrock(client, { tags: ['own'] }).converse(input);`;
    const { stdout, tree, runs } = await run(code, { json: answer });
    expect(stdout).toBe('tool_use\n');
    expect(tree).toEqual(['bedrock.converse', 'bedrock.converse']);
    expect(runs.map(({ tags = [] }) => tags)).toEqual([[], ['own']]);
  });

  test("has LangChain's run of a call, with a result of a tool and streamed, and no second run", async () => {
    const code = `
      const model = new ChatBedrockConverse({ ...options, client, model: input.modelId });
      const result = new ToolMessage({ tool_call_id: 't1', content: 'Rain' });
      for await (const chunk of await model.stream([new HumanMessage('Rain?'), result])) console.log(chunk.content);`;
    const { tree, runs } = await run(code, { events });
    expect(tree).toEqual(['ChatBedrockConverse']);
    expect(runs[0]?.outputs?.usage_metadata).toMatchObject({ input_tokens: 31, output_tokens: 5 });
  });

  test('has no second run for the attempts of a step of LangChain that fails', async () => {
    const code = `
      const model = new ChatBedrockConverse({ ...options, client, model: input.modelId, maxRetries: 1 });
      await model.invoke('Rain?').catch(({ name }) => console.log(name));`;
    const { stdout, tree } = await run(code, { ...fault, status: 503 });
    expect(stdout).toBe('ThrottlingException\n');
    expect(tree).toEqual(['ChatBedrockConverse']);
  });
});
