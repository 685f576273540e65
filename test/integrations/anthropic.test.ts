// Calls of @anthropic-ai/sdk and the runs that they become. The answers are those of test/support/local-model, which repeats
// the question and counts words as tokens.
import { type Anthropic, BaseAnthropic } from '@anthropic-ai/sdk';
import { Messages } from '@anthropic-ai/sdk/resources/messages';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, test } from 'vitest';
import { wrapAnthropic } from '#src/integrations/anthropic/client.ts';
import { record } from '../instrument/recorder.ts';
import { chunksOf, sharedModel } from './local-openai.ts';
import { ask, makeClient, WEATHER_TOOL } from './sdks.ts';

const model = sharedModel();
const makeWrapped = () => wrapAnthropic(makeClient(model()));
const toolUse = { type: 'tool_use', id: 'toolu_weather', name: 'weather' };
const repeated = {
  content: [{ type: 'text', text: 'You said: a' }],
  usage_metadata: { input_tokens: 1, output_tokens: 3, total_tokens: 4 },
};

test.each(
  Object.entries<(client: Anthropic) => unknown>({
    parse: ({ messages }) => messages.parse(ask('a')),
    stream: ({ messages }) => messages.stream(ask('a')).finalMessage(),
    'the beta resource': ({ beta }) => beta.messages.create(ask('a')),
    'the stream of the beta resource': ({ beta }) => beta.messages.stream(ask('a')).finalMessage(),
  }),
)('a call by %s is recorded', async (_, call) => {
  const recorder = record();
  await call(makeWrapped());
  expect(recorder.runs).toMatchObject([
    { name: 'anthropic.messages', outputs: repeated, end_time: expect.any(String) },
  ]);
});

test('a stream that is left within the input of a tool has the JSON text so far', async () => {
  const recorder = record();
  const question = { ...ask('a b c', { tools: [WEATHER_TOOL] }), stream: true } as const;
  for await (const event of await makeWrapped().messages.create(question)) {
    if (event.type === 'content_block_delta' && JSON.stringify(event.delta).includes('city')) break;
  }
  expect(recorder.runs[0]?.outputs?.content).toMatchObject([{ type: 'text' }, { input: '{"city":"a' }]);
});

describe('a tool runner', () => {
  const tools = [{ ...WEATHER_TOOL, run: () => 'rain', parse: (input: unknown) => input }];
  const said = [{ type: 'text', text: 'The tool said: rain' }];
  const runners: Readonly<Record<string, (client: Anthropic) => PromiseLike<unknown>>> = {
    'that is awaited': ({ beta }) => beta.messages.toolRunner({ ...ask('a'), tools }),
    'that is streamed': async ({ beta }) => {
      for await (const stream of beta.messages.toolRunner({ ...ask('a'), stream: true, tools })) await stream.done();
    },
  };

  test.each(Object.entries(runners))('%s is a run with its turns and tools below it', async (_, call) => {
    const recorder = record();
    await call(makeWrapped());
    const { runs } = recorder;
    expect(runs).toMatchObject([
      {
        name: 'anthropic.toolRunner',
        run_type: 'chain',
        inputs: { model: 'small', messages: [{ role: 'user', content: 'a' }], tools: ['weather'] },
        outputs: { messages: [{ role: 'assistant', content: said }] },
      },
      { outputs: { content: [{ text: 'I use weather.' }, { ...toolUse, input: { city: 'a', days: 1 } }] } },
      { name: 'weather', run_type: 'tool', inputs: { city: 'a', days: 1 }, outputs: { outputs: 'rain' } },
      { outputs: { content: said } },
    ]);
    expect(runs.map(({ parent_run_id }) => parent_run_id)).toEqual([undefined, ...Array(3).fill(runs[0]?.id)]);
  });

  test('that streams is cancelled with its turn if the turn is aborted', async () => {
    const recorder = record();
    const { messages } = makeWrapped().beta;
    for await (const stream of messages.toolRunner({
      ...ask('a', { model: 'hang-mid-stream' }),
      stream: true,
      tools,
    })) {
      stream.once('text', () => stream.abort());
      await stream.done().catch(() => {});
      break;
    }
    expect(recorder.runs.map(({ outputs, extra }) => [outputs?.content, extra?.runspan_end_reason])).toMatchObject([
      [undefined, 'cancelled'],
      [[{ text: 'I' }], 'cancelled'],
    ]);
  });
});

test('a call that the SDK refuses has the error', () => {
  const recorder = record();
  expect(() => makeWrapped().messages.create(ask('a', { max_tokens: 10_000_000 }))).toThrow(/Streaming/);
  expect(recorder.runs[0]?.error).toMatch(/Streaming/);
});

test('a call is one run if the SDK also makes spans', async () => {
  const recorder = record();
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const { messages } = wrapAnthropic(makeClient(model(), { openTelemetry: { tracerProvider } }));
  await messages.create(ask('a'));
  await messages.stream(ask('a')).done();
  await chunksOf(await messages.create({ ...ask('a'), stream: true }));
  expect(exporter.getFinishedSpans()).toHaveLength(3);
  expect(recorder.runs).toMatchObject(Array(3).fill({ outputs: repeated }));
});

describe('a wrapped client', () => {
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
    expect(recorder.runs).toMatchObject(Array(2).fill({ outputs: repeated }));
  });
});
