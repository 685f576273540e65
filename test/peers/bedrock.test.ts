// Calls of the AWS SDK's client for Bedrock, and the runs that they become. The answers are those of the API's reference:
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime.html
import { getEventListeners } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { transformWithEsbuild } from 'vite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type BedrockLike, unwrapBedrock, wrapBedrock } from '#src/integrations/bedrock/client.ts';
import { messages } from '../exchanges/anthropic.ts';
import { bedrock, converse } from '../exchanges/bedrock.ts';
import { ANSWER, type Exchange, exchangeOf, type Format, tokens } from '../exchanges/exchange.ts';
import { chat } from '../exchanges/openai.ts';
import { expectRun } from '../exchanges/run.ts';
import { record } from '../instrument/recorder.ts';
import { type BedrockAnswer, bedrockService, chunk } from '../integrations/bedrock-service.ts';
import { onlyRun } from '../integrations/local-openai.ts';
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
const ask = (text = 'Rain?', more: object = {}) => ({ modelId, messages: [user(text)], ...more });
const invoke = (id: string, body: object) => ({ modelId: id, body: JSON.stringify(body) });

const answer = converse.response(ANSWER, converse.counts);
/** An event of the table in the form of the service: the type, and the fields. */
const eventOf = (event: object) => Object.entries(event)[0] as [string, object];
const events = converse.events(ANSWER, converse.counts).map(eventOf);
/** The events up to and including the last delta of the text. */
const beginning = events.slice(0, 7);

/** Sends the request of an exchange to a local service, and reads the answer to its end. */
async function call(name: string, input: object, given: BedrockAnswer): Promise<void> {
  const { url } = await bedrockService(given);
  const output = await wrapBedrock(makeClient(url), { tags: ['a'] }).send(command(name, input));
  if (given.events) await readAll(output);
}

const withRequestId = (exchange: Exchange) => ({
  ...exchange,
  metadata: { ...exchange.metadata, request_id: 'request-1' },
});
const rows = bedrock.flatMap((exchange) =>
  [false, true].map((isStreamed) => [exchange.title, isStreamed, exchange] as const),
);
test.each(rows)('%s is recorded, streamed: %s', async (_, isStreamed, exchange) => {
  const recorder = record();
  const text = JSON.stringify(exchange.body);
  const body = JSON.parse(text, (key, value) => (key === 'bytes' ? Buffer.from(value, 'base64') : value));
  const streamed = { events: (exchange.events as object[]).map(eventOf) };
  const given = isStreamed ? streamed : { json: exchange.response as object };
  await call(isStreamed ? 'ConverseStream' : 'Converse', body, given);
  expectRun(onlyRun(recorder.runs), withRequestId(exchange), isStreamed);
  expect(recorder.runs).toMatchObject([{ tags: ['a'] }]);
});

const metrics = { 'amazon-bedrock-invocationMetrics': { inputTokenCount: 7, outputTokenCount: 4 } };
const invoked = { name: 'bedrock.invokeModel', provider: 'amazon_bedrock' };
/** An exchange with a model whose format another service has. */
const inFormat = (title: string, id: string, format: Format, body: object, more: Partial<Exchange> = {}): Exchange => {
  const { model: _, ...given } = format.body as { model?: string };
  const metadata = { ls_model_name: id, ls_max_tokens: 9 };
  return { ...exchangeOf(format, { title, ...more }), ...invoked, url: id, body: { ...given, ...body }, metadata };
};
const completed = { ...invoked, usage: tokens(7, 4), said: ['assistant: No.'] };
const novaUsage = { inputTokens: 3, outputTokens: 5, totalTokens: 28, cacheReadInputTokenCount: 20 };
const llama = { prompt_token_count: 7, generation_token_count: 4, stop_reason: 'stop' };
const titan = { completionReason: 'FINISH', inputTextTokenCount: 7 };

const invocations: readonly Exchange[] = [
  inFormat('Anthropic', modelId, messages, { anthropic_version: 'bedrock-2023-05-31' }),
  inFormat('an OpenAI-compatible model', 'openai.gpt-oss-20b-1:0', chat, {}),
  inFormat(
    'Amazon Nova',
    'us.amazon.nova-lite-v1:0',
    converse,
    {},
    { counts: novaUsage, usage: tokens(23, 5, { cache_read: 20 }) },
  ),
  {
    ...{ ...completed, title: 'Meta Llama', url: 'meta.llama3-70b-instruct-v1:0', inputs: { prompt: 'Rain?' } },
    ...{
      body: { prompt: 'Rain?', max_gen_len: 9 },
      response: { generation: 'No.', ...llama },
      outputs: { text: 'No.', ...llama },
    },
    events: [
      { generation: 'N', ...llama, generation_token_count: 1, stop_reason: null },
      { generation: 'o.', ...llama, prompt_token_count: null },
    ],
  },
  {
    ...{ ...completed, title: 'Amazon Titan', url: 'amazon.titan-text-express-v1', inputs: { input: 'Rain?' } },
    body: { inputText: 'Rain?', textGenerationConfig: { maxTokenCount: 9 } },
    response: { inputTextTokenCount: 7, results: [{ tokenCount: 4, outputText: 'No.', completionReason: 'FINISH' }] },
    events: [
      { outputText: 'N', index: 0, totalOutputTextTokenCount: null, completionReason: null, inputTextTokenCount: 7 },
      { outputText: 'o.', index: 0, totalOutputTextTokenCount: 4, completionReason: 'FINISH' },
    ],
    outputs: { text: 'No.', tokenCount: 4, ...titan },
    streamed: { tokenCount: undefined, totalOutputTextTokenCount: 4, index: 0 },
  },
];

test.each(
  invocations.flatMap((exchange) => [false, true].map((isStreamed) => [exchange.title, isStreamed, exchange] as const)),
)('InvokeModel in the format of %s is recorded, streamed: %s', async (_, isStreamed, exchange) => {
  const recorder = record();
  const text = JSON.stringify(exchange.body);
  const body = isStreamed ? Buffer.from(text) : text;
  const chunks = (exchange.events as object[]).map((event, at, { length }) =>
    chunk({ ...event, ...(at === length - 1 && metrics) }),
  );
  const given = isStreamed ? { events: chunks } : { json: exchange.response as object };
  await call(isStreamed ? 'InvokeModelWithResponseStream' : 'InvokeModel', { modelId: exchange.url, body }, given);
  expectRun(onlyRun(recorder.runs), withRequestId(exchange), isStreamed);
});

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
    const output = await client.send(command('ConverseStream', ask()), { abortSignal: controller.signal });
    let count = 0;
    return readAll(output, () => ++count === beginning.length && controller.abort());
  };
  const stream = (client: Client) => client.send(command('ConverseStream', ask()));
  const text = { output: { message: { content: [{}, { text: 'It rains.' }] } } };

  test.each<[string, BedrockAnswer, (client: Client) => Promise<unknown>, object, string?]>([
    ['with an answer', { json: answer }, (client) => client.send(command('Converse', ask())), {}],
    [
      'with a callback',
      { json: answer },
      (client) => {
        return new Promise((done) => client.send(command('Converse', ask()), (...args: unknown[]) => done(args)));
      },
      {},
    ],
    ['with a stream', { events }, async (client) => readAll(await stream(client)), {}],
    [
      'with an error',
      fault,
      (client) => client.send(command('Converse', ask())),
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
      (client) => client.send(command('Converse', ask()), { abortSignal: AbortSignal.abort() }),
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
    expect(recorder.runs[0]?.extra?.runspan_end_reason).toBe(reason);
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
    const stream = (to: string) => wrap(makeClient(to)).send(command('ConverseStream', ask()), { abortSignal });
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
  await client.send(command('Converse', ask('Rain?', { system: [{ text: 'Rain.' }] })));
  const unknown = { message: 'Rain?', chat_history: ['Rain.'] };
  await client.send(command('InvokeModel', invoke('cohere.command-text-v14', unknown)));
  expect(sink.records()).toMatchObject([
    { extra: { metadata: { usage_metadata: converse.usage } } },
    { name: 'bedrock.invokeModel' },
  ]);
  expect(JSON.stringify(sink.records())).not.toMatch(/[Rr]ain|look/);
});

test('other commands are not recorded, and an unwrapped client records nothing', async () => {
  const { url } = await bedrockService({ json: { inputTokens: 1 } });
  const recorder = record();
  const client = wrapBedrock(makeClient(url));
  await client.send(command('CountTokens', { modelId, input: { converse: ask() } }));
  expect(unwrapBedrock(client)).toBe(client);
  await client.send(command('Converse', ask()));
  expect(recorder.runs).toEqual([]);
});

test('a client of another service is not changed', () => {
  const lines = logLines('warn');
  const client = {
    config: { serviceId: 'S3' },
    middlewareStack: { add: () => expect.unreachable(), remove: () => true },
  };
  expect(wrapBedrock(client)).toBe(client);
  expect(lines).toEqual([
    'warn: wrapBedrock: expected a client of @aws-sdk/client-bedrock-runtime, got another object; the value is not traced.',
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
      const input = ${JSON.stringify(ask())};
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
    expect(stdout).toBe('end_turn\n');
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
