import { type Anthropic, BaseAnthropic } from '@anthropic-ai/sdk';
import { Messages } from '@anthropic-ai/sdk/resources/messages';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, test } from 'vitest';
import { traceable } from '../../src/instrument/traceable.ts';
import { unwrapAnthropic, wrapAnthropic } from '../../src/integrations/anthropic/client.ts';
import { record, treeOf } from '../instrument/recorder.ts';
import { allOf, ask, localModel, makeClient, WEATHER_TOOL } from './anthropic-client.ts';

const model = localModel();
const makeWrapped = () => wrapAnthropic(makeClient(model()));

describe('a call of a model', () => {
  test('is recorded with messages, parameters, answer and tokens', async () => {
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

  test('is recorded with cached and reasoning tokens', async () => {
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
  ])('is one run when made by %s', async (_, call) => {
    const recorder = record();
    await call(makeWrapped());
    expect(recorder.runs).toHaveLength(1);
    expect(recorder.runs[0]).toMatchObject({
      name: 'anthropic.messages',
      outputs: { content: [{ text: 'You said: a' }], usage_metadata: { input_tokens: 1, output_tokens: 3 } },
    });
    expect(recorder.runs[0]).toHaveProperty('end_time');
  });

  test('is one of several runs of a streaming tool runner', async () => {
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

  test('is recorded without the credentials of tool servers', async () => {
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

  test('that the SDK refuses has the error', () => {
    const recorder = record();
    expect(() => makeWrapped().messages.create(ask('a', { max_tokens: 10_000_000 }))).toThrow(/Streaming/);
    expect(recorder.runs[0]?.error).toMatch(/Streaming/);
  });

  test('is one run if the SDK also makes spans', async () => {
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

  test.each(Object.entries(questions))('of %s has the same outputs as the answer at once', async (_, question) => {
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

  test('that is left within the input of a tool has the JSON text so far', async () => {
    const recorder = record();
    const question = { ...ask('a b c', { tools: [WEATHER_TOOL] }), stream: true } as const;
    for await (const event of await makeWrapped().messages.create(question)) {
      if (event.type === 'content_block_delta' && JSON.stringify(event.delta).includes('city')) break;
    }
    expect(recorder.runs[0]?.outputs?.content).toMatchObject([{ type: 'text' }, { input: '{"city":"a' }]);
  });
});

describe('the wrapped client', () => {
  test('may have only messages, and may return plain promises', async () => {
    const recorder = record();
    const message = { content: [], usage: { input_tokens: 1, output_tokens: 2 } };
    const client = wrapAnthropic({ messages: { create: async (_params: object) => message } });
    expect(await client.messages.create(ask('a'))).toBe(message);
    expect(recorder.runs[0]).toMatchObject({ inputs: { messages: [{ content: 'a' }] }, outputs: message });
  });

  test('may be of another class, as on other platforms', async () => {
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

  test('may have completions, as in older versions of the SDK', async () => {
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
});

// Of the interface, and of older versions of the SDK; the types of this one leave it out.
const WARM = { temperature: 0.5 };

const hanging = { ...ask('a', { model: 'hang-mid-stream' }), stream: true } as const;

const PIXELS = Buffer.alloc(3_000, 7);
const PAGES = Buffer.alloc(2_000, 8);

function image(bytes: Buffer): Anthropic.ImageBlockParam {
  return { type: 'image', source: { type: 'base64', media_type: 'image/png', data: bytes.toString('base64') } };
}

function pdf(bytes: Buffer): Anthropic.DocumentBlockParam {
  const source = { type: 'base64' as const, media_type: 'application/pdf' as const, data: bytes.toString('base64') };
  return { type: 'document', title: 'pages', source };
}

const text = (words: string): Anthropic.TextBlockParam => ({ type: 'text', text: words });

describe('images and documents of a request', () => {
  test('are attachments, and are sent unchanged', async () => {
    const recorder = record();
    const question = ask('', {
      messages: [
        { role: 'user', content: [text('What is it?'), image(PIXELS)] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'scan', input: {} }] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [image(PIXELS), pdf(PAGES)] }],
        },
      ],
    });
    const before = structuredClone(question);
    await wrapAnthropic(makeClient(model())).messages.create(question);
    expect(question).toEqual(before);
    expect(model().requests.at(-1)?.body).toEqual(before);
    const [run] = recorder.runs;
    const png = { type: 'base64', media_type: 'image/png', data: '[Attachment inputs_1: image/png, 3000 bytes]' };
    const pages = {
      type: 'base64',
      media_type: 'application/pdf',
      data: '[Attachment inputs_2: application/pdf, 2000 bytes]',
    };
    expect(run?.inputs).toEqual({
      messages: [
        { role: 'user', content: [text('What is it?'), { type: 'image', source: png }] },
        question.messages[1],
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'toolu_1',
              content: [
                { type: 'image', source: png },
                { type: 'document', title: 'pages', source: pages },
              ],
            },
          ],
        },
      ],
    });
    expect(run?.attachments?.map(({ name, mimeType }) => [name, mimeType])).toEqual([
      ['inputs_1', 'image/png'],
      ['inputs_2', 'application/pdf'],
    ]);
    expect(Buffer.compare(run?.attachments?.[0]?.bytes as Uint8Array, PIXELS)).toBe(0);
  });
});
