import { type Anthropic, BaseAnthropic } from '@anthropic-ai/sdk';
import { Messages } from '@anthropic-ai/sdk/resources/messages';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, test } from 'vitest';
import { traceable } from '../../src/instrument/traceable.ts';
import { unwrapAnthropic, wrapAnthropic } from '../../src/integrations/anthropic/client.ts';
import { recordRuns } from '../../src/testing/record-runs.ts';
import { record, treeOf } from '../instrument/recorder.ts';
import { told } from '../support/told.ts';
import { allOf, ask, localModel, makeClient, WEATHER_TOOL } from './anthropic-client.ts';

const model = localModel();
const makeWrapped = () => wrapAnthropic(makeClient(model()));

describe('a call of a model', () => {
  test('is one run below the current one, with messages, parameters, answer and tokens', async () => {
    const recorder = record();
    const client = makeWrapped();
    await traceable(
      () =>
        client.messages.create(
          ask('How are you?', { system: 'Be kind.', ...WARM, stop_sequences: ['END'], tools: [WEATHER_TOOL] }),
        ),
      { name: 'answer' },
    )();
    expect(treeOf(recorder.runs)).toEqual({ answer: { 'anthropic.messages': {} } });
    const message = {
      id: 'msg_3',
      type: 'message',
      role: 'assistant',
      model: 'small',
      content: [
        { type: 'text', text: 'I use weather.' },
        { type: 'tool_use', id: 'toolu_weather', name: 'weather', input: { city: 'How are you?', days: 3 } },
      ],
      stop_reason: 'tool_use',
    };
    const counts = { input_tokens: 5, output_tokens: 5, total_tokens: 10 };
    expect(recorder.runs[1]).toMatchObject({
      run_type: 'llm',
      inputs: {
        messages: [
          { role: 'system', content: 'Be kind.' },
          { role: 'user', content: 'How are you?' },
        ],
      },
      outputs: { ...message, usage_metadata: counts },
      extra: {
        metadata: {
          ls_provider: 'anthropic',
          ls_model_type: 'chat',
          ls_model_name: 'small',
          ls_temperature: 0.5,
          ls_max_tokens: 100,
          ls_stop: ['END'],
          ls_invocation_params: {
            model: 'small',
            max_tokens: 100,
            temperature: 0.5,
            stop_sequences: ['END'],
            tools: [WEATHER_TOOL],
          },
          usage_metadata: counts,
          response_model: 'small',
          request_id: expect.stringMatching(/^req_/),
        },
      },
    });
    expect(Object.keys(recorder.runs[1]?.extra?.metadata?.ls_invocation_params ?? {})).not.toContain('messages');
  });

  test('counts cached and reasoning tokens, and says how many they are', async () => {
    const recorder = record();
    const cache_control = { type: 'ephemeral' } as const;
    await makeWrapped().messages.create({
      ...ask(''),
      system: [{ type: 'text', text: 'one two three', cache_control }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'four five', cache_control },
            { type: 'text', text: 'six' },
          ],
        },
      ],
      thinking: { type: 'enabled', budget_tokens: 1024 },
    });
    // 'The question has 3 words.' is thought.
    expect(recorder.runs[0]?.outputs?.usage).toMatchObject({
      input_tokens: 1,
      cache_read_input_tokens: 3,
      cache_creation_input_tokens: 2,
      output_tokens_details: { thinking_tokens: 5 },
    });
    expect(recorder.runs[0]?.outputs?.usage_metadata).toEqual({
      input_tokens: 6,
      output_tokens: 9,
      total_tokens: 15,
      input_token_details: { cache_read: 3, cache_creation: 2 },
      output_token_details: { reasoning: 5 },
    });
  });

  test.each<[string, (client: Anthropic) => unknown]>([
    ['parse', (client) => client.messages.parse(ask('a'))],
    ['stream', (client) => client.messages.stream(ask('a')).finalMessage()],
    ['withResponse', (client) => client.messages.create(ask('a')).withResponse()],
    ['the beta resource', (client) => client.beta.messages.create(ask('a'))],
    ['the stream of the beta resource', (client) => client.beta.messages.stream(ask('a')).finalMessage()],
    ['a tool runner', (client) => client.beta.messages.toolRunner({ ...ask('a'), tools: [] })],
    ['retries', (client) => client.messages.create(ask('a', { model: 'fail-429-once' }), { maxRetries: 1 })],
    ['a client with other options', (client) => client.withOptions({ timeout: 5_000 }).messages.create(ask('a'))],
  ])('is one run by way of %s', async (_, call) => {
    const recorder = record();
    await call(makeWrapped());
    expect(recorder.runs).toHaveLength(1);
    expect(recorder.runs[0]).toMatchObject({
      name: 'anthropic.messages',
      outputs: { content: [{ text: 'You said: a' }], usage_metadata: { input_tokens: 1, output_tokens: 3 } },
    });
    expect(recorder.runs[0]).toHaveProperty('end_time');
  });

  // The SDK says so of `BetaUsage.iterations`: the tokens of a compaction are not in the top-level fields.
  test('counts what it took to compact the conversation, and nothing of other models', async () => {
    const recorder = record();
    const iterations = [
      { type: 'compaction', input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 7 },
      { type: 'message', input_tokens: 5, output_tokens: 3, cache_read_input_tokens: 2 },
      { type: 'advisor_message', model: 'another', input_tokens: 50, output_tokens: 50 },
    ];
    const usage = { input_tokens: 5, output_tokens: 3, cache_read_input_tokens: 2, iterations };
    const fetch = async () => Response.json({ type: 'message', role: 'assistant', content: [], usage });
    await wrapAnthropic(makeClient(model(), { fetch })).beta.messages.create(ask(''));
    expect(recorder.runs[0]?.outputs?.usage_metadata).toEqual({
      input_tokens: 114,
      output_tokens: 23,
      total_tokens: 137,
      input_token_details: { cache_read: 9 },
    });
  });

  test('of a streaming tool runner is a run for each turn', async () => {
    const recorder = record();
    const runner = makeWrapped().beta.messages.toolRunner({
      ...ask('a'),
      stream: true,
      tools: [{ ...WEATHER_TOOL, run: () => 'rain', parse: (input: unknown) => input }],
    });
    for await (const stream of runner) await stream.done();
    expect(recorder.runs.map(({ outputs }) => outputs?.content)).toMatchObject([
      [{ text: 'I use weather.' }, { type: 'tool_use', input: { city: 'a', days: 1 } }],
      [{ text: 'The tool said: rain' }],
    ]);
    expect(recorder.runs.map(({ extra }) => extra?.metadata?.end_reason)).toEqual([undefined, undefined]);
  });

  test('without an answer to read has the status', async () => {
    const recorder = record();
    const response = await makeWrapped().messages.create(ask('a')).asResponse();
    expect(recorder.runs[0]).toMatchObject({
      outputs: { status: 200 },
      extra: { metadata: { request_id: expect.any(String) } },
    });
    expect(recorder.runs[0]).toHaveProperty('end_time');
    await response.text();
  });

  test('leaves out the tokens that servers of tools are asked with', async () => {
    const recorder = record();
    await makeWrapped().beta.messages.create({
      ...ask('a'),
      mcp_servers: [{ type: 'url', name: 'files', url: 'http://localhost', authorization_token: 'a-secret' }],
    });
    expect(recorder.runs[0]?.extra?.metadata?.ls_invocation_params).toEqual({
      model: 'small',
      max_tokens: 100,
      mcp_servers: [{ type: 'url', name: 'files', url: 'http://localhost' }],
    });
    expect(JSON.stringify(recorder.runs)).not.toContain('a-secret');
    expect(model().requests.at(-1)?.text).toContain('a-secret');
  });

  test('that fails has the error, and the id of the request', async () => {
    const recorder = record();
    await expect(makeWrapped().messages.create(ask('a', { model: 'fail-400' }))).rejects.toThrow();
    expect(recorder.runs[0]).toMatchObject({
      error: expect.stringMatching(/^BadRequestError: 400 .*invalid_request_error/),
      extra: { metadata: { request_id: expect.stringMatching(/^req_/) } },
    });
  });

  test('that the SDK refuses to make has the error', () => {
    const recorder = record();
    expect(() => makeWrapped().messages.create(ask('a', { max_tokens: 10_000_000 }))).toThrow(/Streaming/);
    expect(recorder.runs[0]?.error).toMatch(/Streaming/);
  });

  test('is sent to the service as it would be without us', async () => {
    record();
    const [bare, wrapped] = [makeClient(model()), makeWrapped()];
    for (const client of [bare, wrapped]) await client.messages.create(ask('a', { system: 'b' }));
    const [first, second] = model().requests.slice(-2);
    expect(second?.text).toBe(first?.text);
    expect(second?.headers).toEqual(first?.headers);
  });

  test('is one run beside the spans that the SDK makes itself', async () => {
    const recorder = record();
    const exporter = new InMemorySpanExporter();
    const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
    const client = wrapAnthropic(makeClient(model(), { openTelemetry: { tracerProvider } }));
    await client.messages.create(ask('a'));
    await client.messages.stream(ask('a')).done();
    await allOf(await client.messages.create({ ...ask('a'), stream: true }));
    expect(exporter.getFinishedSpans()).toHaveLength(3);
    expect(recorder.runs).toHaveLength(3);
    for (const run of recorder.runs) expect(run.outputs).toMatchObject({ content: [{ text: 'You said: a' }] });
  });

  test('is made in the context of its run, what follows is not', async () => {
    const recorder = record();
    const fetch = traceable(globalThis.fetch, { name: 'fetch', inputs: () => ({}), outputs: () => ({}) });
    const client = wrapAnthropic(makeClient(model(), { fetch }));
    await traceable(
      async () => {
        await client.messages.create(ask('a'));
        traceable(() => 1, { name: 'after' })();
      },
      { name: 'answer' },
    )();
    expect(treeOf(recorder.runs)).toEqual({ answer: { 'anthropic.messages': { fetch: {} }, after: {} } });
  });
});

describe('a stream', () => {
  const questions: Record<string, Anthropic.MessageCreateParamsNonStreaming> = {
    text: ask('How are you?'),
    'no text': ask(''),
    'a tool': ask('How "are" you?', { tools: [WEATHER_TOOL] }),
    'a tool without input': ask('a', { tools: [{ name: 'now', input_schema: { type: 'object' } }] }),
    'a tool of the service': ask('tea', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
    'a thought': ask('a', { thinking: { type: 'enabled', budget_tokens: 1024 }, tools: [WEATHER_TOOL] }),
    citations: ask('', {
      messages: [
        {
          role: 'user',
          content: [
            {
              type: 'document',
              source: { type: 'text', media_type: 'text/plain', data: 'Tea is a plant.' },
              citations: { enabled: true },
            },
            { type: 'text', text: 'What is tea?' },
          ],
        },
      ],
    }),
  };

  test.each(Object.entries(questions))('of %s has the outputs of the same answer unstreamed', async (_, question) => {
    const recorder = record();
    const client = makeWrapped();
    const message = await client.messages.create(question);
    await allOf(await client.messages.create({ ...question, stream: true }));
    await client.messages.stream(question).done();
    const [plain, ...streamed] = recorder.runs;
    expect(plain?.outputs).toMatchObject(JSON.parse(JSON.stringify(message)));
    for (const run of streamed) expect(run.outputs).toEqual(plain?.outputs);
    for (const run of streamed) expect(run.extra?.metadata?.usage_metadata).toEqual(plain?.outputs?.usage_metadata);
    for (const run of streamed) expect(run.events).toMatchObject([{ name: 'new_token' }]);
  });

  test('is cancelled when a streaming tool runner is left', async () => {
    const recorder = record();
    const runner = makeWrapped().beta.messages.toolRunner({ ...hanging, tools: [] });
    for await (const stream of runner) {
      stream.once('text', () => stream.abort());
      await stream.done().catch(() => {});
      break;
    }
    expect(recorder.runs).toMatchObject([
      { outputs: { content: [{ type: 'text', text: 'You' }] }, extra: { metadata: { end_reason: 'cancelled' } } },
    ]);
  });

  test('that is left within the input of a tool has the text that had come', async () => {
    const recorder = record();
    const question = { ...ask('a b c', { tools: [WEATHER_TOOL] }), stream: true } as const;
    for await (const event of await makeWrapped().messages.create(question)) {
      if (event.type === 'content_block_delta' && JSON.stringify(event.delta).includes('city')) break;
    }
    expect(recorder.runs[0]?.outputs?.content).toMatchObject([{ type: 'text' }, { input: '{"city":"a' }]);
  });
});

describe('wrapAnthropic', () => {
  test('gives back the same client, and changes nothing the second time', async () => {
    const recorder = record();
    const client = makeClient(model());
    const resources = [client.messages, client.beta, client.beta.messages];
    expect(wrapAnthropic(client)).toBe(client);
    const { create } = client.messages;
    expect(wrapAnthropic(client)).toBe(client);
    expect(client.messages.create).toBe(create);
    expect([client.messages, client.beta, client.beta.messages]).toEqual(resources);
    await client.withOptions({}).messages.create(ask('a'));
    expect(recorder.runs).toHaveLength(1);
  });

  test('takes tags, metadata, a project and an exporter', async () => {
    const recorder = recordRuns();
    recorder.stop();
    const options = { tags: ['a'], metadata: { team: 'b' }, project: 'c', exporter: recorder.exporter };
    const client = wrapAnthropic(makeClient(model()), options);
    await client.messages.create(ask('a'));
    await client.withOptions({}).messages.create(ask('a'));
    for (const run of recorder.runs) {
      expect(run).toMatchObject({
        tags: ['a'],
        session_name: 'c',
        extra: { metadata: { team: 'b', ls_model_name: 'small' } },
      });
    }
    expect(recorder.runs).toHaveLength(2);
  });

  test('leaves a client alone that is not enabled', () => {
    const client = makeClient(model());
    expect(wrapAnthropic(client, { enabled: false })).toBe(client);
    expect(Object.hasOwn(client.messages, 'create')).toBe(false);
  });

  const expected = (got: string) =>
    `warn: wrapAnthropic(client): expected a client of @anthropic-ai/sdk, got ${got}; it is not traced.`;
  test.each([
    ['nothing', undefined, expected('undefined')],
    ['null', null, expected('null')],
    ['text', 'client', expected('string')],
    ['an object', {}, expected('another object')],
    ['messages without create', { messages: {} }, expected('another object')],
    [
      'a client that cannot be read',
      Object.defineProperty({}, 'messages', { get: () => fail() }),
      'warn: wrapAnthropic failed, the application is not affected: unreadable',
    ],
  ])('gives back %s, and says so once', (_, client, complaint) => {
    const lines = told();
    for (let time = 0; time < 2; time++) expect(wrapAnthropic(client as never)).toBe(client);
    expect(unwrapAnthropic(client as never)).toBe(client);
    expect(lines).toEqual([complaint]);
  });

  test('says what is wrong with its options, and traces', async () => {
    const lines = told();
    const recorder = record();
    await wrapAnthropic(makeClient(model()), { name: 'a', tags: 1 } as never).messages.create(ask('a'));
    expect(lines).toEqual([
      'warn: wrapAnthropic: unknown option `name`; left out.',
      'warn: wrapAnthropic: expected `tags` to be a list of at most 1000 texts; left out.',
    ]);
    expect(recorder.runs).toHaveLength(1);
  });

  test('is undone by unwrapAnthropic', async () => {
    const recorder = record();
    const client = makeWrapped();
    expect(unwrapAnthropic(client)).toBe(client);
    for (const owner of [client.messages, client.beta.messages]) expect(Object.hasOwn(owner, 'create')).toBe(false);
    expect(Object.hasOwn(client, 'withOptions')).toBe(false);
    await client.messages.create(ask('a'));
    await client.withOptions({}).messages.create(ask('a'));
    expect(recorder.runs).toEqual([]);
    await wrapAnthropic(client).messages.create(ask('a'));
    expect(recorder.runs).toHaveLength(1);
  });

  test('takes a client that has messages alone, and one that answers with plain promises', async () => {
    const recorder = record();
    const message = { content: [], usage: { input_tokens: 1, output_tokens: 2 } };
    const client = wrapAnthropic({ messages: { create: async (_params: object) => message } });
    expect(await client.messages.create(ask('a'))).toBe(message);
    expect(recorder.runs[0]).toMatchObject({ inputs: { messages: [{ content: 'a' }] }, outputs: message });
  });

  test('takes clients of other platforms, which are classes of their own', async () => {
    const recorder = record();
    class Platform extends BaseAnthropic {
      readonly messages = new Messages(this);
    }
    const client = wrapAnthropic(new Platform({ apiKey: 'a', baseURL: model().url }));
    await client.messages.create(ask('a'));
    await client.withOptions({}).messages.stream(ask('a')).done();
    expect(recorder.runs).toHaveLength(2);
    expect(recorder.runs[1]?.outputs).toEqual(recorder.runs[0]?.outputs);
  });

  test('traces the completions of older versions', async () => {
    const recorder = record();
    const made = makeClient(model());
    // As these versions have it.
    const create = (body: { prompt: string; stream?: boolean; [parameter: string]: unknown }) =>
      made.post('/v1/complete', { body, stream: body.stream ?? false });
    const client = wrapAnthropic(Object.assign(made, { completions: { create } }));
    const question = { model: 'small', prompt: ' one two', max_tokens_to_sample: 9, stop_sequences: ['H:'] };
    const answer = await client.completions.create(question);
    const events = await allOf(
      (await client.completions.create({ ...question, stream: true })) as AsyncIterable<unknown>,
    );
    expect(events).toHaveLength(5);
    expect(recorder.runs).toHaveLength(2);
    for (const run of recorder.runs) {
      expect(run).toMatchObject({
        name: 'anthropic.completions',
        run_type: 'llm',
        inputs: { prompt: ' one two' },
        extra: { metadata: { ls_model_type: 'llm', ls_model_name: 'small', ls_max_tokens: 9, ls_stop: ['H:'] } },
      });
      expect(run.outputs).toEqual(answer);
    }
    expect(answer).toMatchObject({ completion: ' You said: one two' });
    unwrapAnthropic(client);
    expect(client.completions.create).toBe(create);
  });

  test('keeps its methods what they are with tracing off', async () => {
    const client = makeWrapped();
    expect((await client.messages.create(ask('a'))).content).toMatchObject([{ text: 'You said: a' }]);
    expect((await allOf(await client.messages.create({ ...ask('a'), stream: true }))).length).toBeGreaterThan(5);
  });
});

// Of the interface, and of older versions of the SDK; the types of this one leave it out.
const WARM = { temperature: 0.5 };

const hanging = { ...ask('a', { model: 'hang-mid-stream' }), stream: true } as const;

function fail(): never {
  throw new Error('unreadable');
}
