// The functions of `ai` over HTTP to a local server with OpenAI's protocol, and the runs that the calls become.
import { createServer } from 'node:http';
import { createOpenAI } from '@ai-sdk/openai';
import * as ai from 'ai';
import { MockImageModelV3, MockSpeechModelV3, MockTranscriptionModelV3 } from 'ai/test';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { wrapModel } from '#src/integrations/ai-sdk/model.ts';
import { wrapAISDK } from '#src/integrations/ai-sdk/sdk.ts';
import type { RunRecord } from '#src/run/record.ts';
import { currentRun, startRun, withContext, withRun } from '#src/run/start-run.ts';
import { record } from '../instrument/recorder.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { logLines } from '../support/log-lines.ts';
import { startOpenAiServer, USAGE_METADATA as usage_metadata } from '../support/openai-server.ts';

const sdk = wrapAISDK(ai);
const report = z.object({ city: z.string(), rain: z.boolean() });

async function start() {
  const server = await startOpenAiServer();
  onTestFinished(server.close);
  const openai = createOpenAI({ baseURL: server.url, apiKey: 'a-secret' });
  return { server, openai, chat: openai.chat, recorder: record() };
}
type Started = Awaited<ReturnType<typeof start>>;

/** The options of a call in two steps, with a tool that runs between the steps. */
const inTwoSteps = (
  chat: Started['chat'],
  execute: (input: { city: string }) => unknown = ({ city }) => ({ city, rain: true }),
) => {
  const weather = ai.tool({ inputSchema: z.object({ city: z.string() }), execute: execute as never });
  return { model: chat('gpt'), tools: { weather }, stopWhen: ai.stepCountIs(3), prompt: 'Rain?' };
};

/** Returns one line per run: the name and the type, indented by the depth. */
function drawn(runs: readonly RunRecord[]): string[] {
  return runs.map((run) => `${'  '.repeat(run.dotted_order.split('.').length - 1)}${run.name} (${run.run_type})`);
}

const twoSteps = ['  gpt (llm)', '  weather (tool)', '  gpt (llm)'];
const headlines = (runs: readonly RunRecord[]) => runs.map(({ name, error }) => [name, error?.split('\n')[0]]);
const payloads = (runs: readonly RunRecord[]) => runs.map(({ inputs, outputs }) => ({ inputs, outputs }));
const toolCalls = [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Cork"}' } }];
const asked = [
  { role: 'system', content: 'Be short.' },
  { role: 'user', content: 'Rain?' },
];
const answered = { text: 'It is raining.', finishReason: 'stop', steps: 2 };
const object = { city: 'Cork', rain: true };
const settings = { temperature: 0.5, maxOutputTokens: 100, stopSequences: ['!'], topP: 0.9, seed: 4 };
const vectors = (count: number) => ({ count, dimensions: 3 });
const embedded = (values: string[]) => ({
  inputs: { values },
  outputs: { ...vectors(values.length), usage_metadata: { input_tokens: 4, total_tokens: 4 } },
});

type Row = [
  title: string,
  call: (started: Started) => PromiseLike<unknown>,
  tree: string[],
  runs?: (Partial<RunRecord> | undefined)[],
];

test.each<Row>([
  [
    'a text with a tool',
    ({ chat }) => sdk.generateText({ ...inTwoSteps(chat), system: 'Be short.', headers: { key: 'b' } }),
    ['generateText (chain)', ...twoSteps],
    [
      { inputs: { model: 'gpt', system: 'Be short.', prompt: 'Rain?', tools: ['weather'] }, outputs: answered },
      {
        inputs: { messages: asked },
        outputs: {
          messages: [{ role: 'assistant', tool_calls: toolCalls, finish_reason: 'tool-calls' }],
          usage_metadata,
        },
      },
      { inputs: { city: 'Cork' }, outputs: object, extra: { metadata: { tool_call_id: 'call_1' } } },
      {
        inputs: {
          messages: [
            ...asked,
            { role: 'assistant', tool_calls: toolCalls },
            { role: 'tool', tool_call_id: 'call_1', name: 'weather', content: object },
          ],
        },
      },
    ],
  ],
  [
    'the settings of a text',
    ({ chat }) => sdk.generateText({ model: chat('gpt'), prompt: 'Rain?', ...settings }),
    ['generateText (chain)', '  gpt (llm)'],
    [
      { inputs: settings },
      {
        extra: {
          metadata: {
            ls_provider: 'openai',
            ls_model_name: 'gpt',
            ls_model_type: 'chat',
            ls_temperature: 0.5,
            ls_max_tokens: 100,
            ls_stop: ['!'],
            ls_invocation_params: { model: 'gpt', temperature: 0.5, max_tokens: 100, stop: ['!'], top_p: 0.9, seed: 4 },
            response_model: 'gpt-2026',
            usage_metadata,
          },
        },
      },
    ],
  ],
  [
    'a tool that changes its input',
    ({ chat }) => {
      const execute = (input: { city: string }): string => {
        input.city = 'changed';
        return 'rain';
      };
      return sdk.streamText({ ...inTwoSteps(chat, execute), stopWhen: ai.stepCountIs(1) }).consumeStream();
    },
    ['streamText (chain)', '  gpt (llm)', '  weather (tool)'],
    [
      { outputs: { toolCalls: [{ toolName: 'weather', input: { city: 'Cork' } }] } },
      undefined,
      { inputs: { city: 'Cork' } },
    ],
  ],
  [
    'a stream that is read in another run',
    async ({ chat }) => {
      const result = sdk.streamText(inTwoSteps(chat));
      const elsewhere = startRun({ name: 'elsewhere' });
      await withRun(elsewhere, () => result.consumeStream());
      elsewhere.end();
    },
    ['streamText (chain)', ...twoSteps, 'elsewhere (chain)'],
  ],
  [
    'a generated object',
    ({ chat }) => sdk.generateObject({ model: chat('gpt'), schema: report, prompt: 'Rain?' }),
    ['generateObject (chain)', '  gpt (llm)'],
    [{ outputs: { object, finishReason: 'stop' } }, { outputs: { usage_metadata } }],
  ],
  [
    'a streamed object',
    async ({ chat }) => {
      const result = sdk.streamObject({ model: chat('gpt'), schema: report, prompt: 'Rain?' });
      for await (const _ of result.partialObjectStream);
      expect(await result.object).toEqual(object);
    },
    ['streamObject (chain)', '  gpt (llm)'],
    [{ outputs: { object, finishReason: 'stop' } }, { outputs: { usage_metadata } }],
  ],
  [
    'an embedding, without the vector',
    ({ openai }) => sdk.embed({ model: openai.embedding('emb'), value: 'rain' }),
    ['embed (chain)', '  emb (embedding)'],
    [{ inputs: { model: 'emb', value: 'rain' }, outputs: vectors(1) }, embedded(['rain'])],
  ],
  [
    'several embeddings, without the vectors',
    ({ openai }) => sdk.embedMany({ model: openai.embedding('emb'), values: ['rain', 'sun'] }),
    ['embedMany (chain)', '  emb (embedding)'],
    [{ inputs: { model: 'emb', values: ['rain', 'sun'] }, outputs: vectors(2) }, embedded(['rain', 'sun'])],
  ],
  [
    'a tool that yields several results, of which the SDK uses the last',
    ({ chat }) => {
      async function* execute() {
        yield 'looking';
        yield 'rain';
      }
      return sdk.generateText(inTwoSteps(chat, execute));
    },
    ['generateText (chain)', ...twoSteps],
    [{}, {}, { outputs: { outputs: 'rain' } }],
  ],
  [
    'a model that a step chooses',
    ({ chat }) =>
      sdk.generateText({
        ...inTwoSteps(chat),
        prepareStep: ({ stepNumber }) => (stepNumber === 0 ? undefined : Promise.resolve({ model: chat('other') })),
      }),
    ['generateText (chain)', '  gpt (llm)', '  weather (tool)', '  other (llm)'],
  ],
  [
    'a traced model inside of middleware',
    async ({ chat, recorder }) => {
      const inner = chat('gpt');
      await sdk.generateText({ model: inner, prompt: 'Rain?' });
      recorder.clear();
      const middleware = ai.extractReasoningMiddleware({ tagName: 'think' });
      const model = ai.wrapLanguageModel({ model: inner, middleware });
      await sdk.generateText({ model, prompt: 'Rain?' });
      await sdk.streamText({ model, prompt: 'Rain?' }).consumeStream();
    },
    ['generateText', 'streamText'].flatMap((name) => [`${name} (chain)`, '  gpt (llm)', '    gpt (llm)']),
  ],
  [
    'a model that calls another traced model',
    async ({ chat }) => {
      const guard = wrapModel(chat('guard'));
      const middleware: ai.LanguageModelMiddleware = {
        specificationVersion: 'v3',
        wrapGenerate: async ({ doGenerate, params }) => {
          await guard.doGenerate(params);
          return doGenerate();
        },
      };
      await sdk.generateText({ model: ai.wrapLanguageModel({ model: chat('gpt'), middleware }), prompt: 'Rain?' });
    },
    ['generateText (chain)', '  gpt (llm)', '    guard (llm)'],
  ],
  [
    'a model that is given by name',
    async ({ chat }) => {
      const holder = globalThis as { AI_SDK_DEFAULT_PROVIDER?: unknown };
      onTestFinished(() => void delete holder.AI_SDK_DEFAULT_PROVIDER);
      holder.AI_SDK_DEFAULT_PROVIDER = ai.customProvider({ languageModels: { named: chat('gpt') } });
      for (let call = 0; call < 2; call++) await sdk.generateText({ model: 'named', prompt: 'Rain?' });
    },
    ['generateText (chain)', '  gpt (llm)', 'generateText (chain)', '  gpt (llm)'],
    [{ inputs: { model: 'named' } }],
  ],
  [
    'an agent by its id',
    async ({ chat }) => {
      const agent = new sdk.ToolLoopAgent({ id: 'forecaster', ...inTwoSteps(chat) });
      for (const Agent of [ai.ToolLoopAgent, sdk.ToolLoopAgent]) expect(agent).toBeInstanceOf(Agent);
      expect(agent.constructor).toBe(ai.ToolLoopAgent);
      await agent.generate({ prompt: 'Rain?' });
      await (await agent.stream({ prompt: 'Rain?' })).consumeStream();
    },
    ['forecaster.generate (chain)', ...twoSteps, 'forecaster.stream (chain)', ...twoSteps],
    [{ outputs: answered }, {}, {}, {}, { outputs: answered }],
  ],
  [
    'an extended agent',
    async ({ chat }) => {
      class Loud extends sdk.ToolLoopAgent {
        shout = '!';
      }
      const agent = new Loud({ model: chat('gpt') });
      expect([agent instanceof Loud, agent.shout]).toEqual([true, '!']);
      await agent.generate({ prompt: 'Rain?' });
    },
    ['ToolLoopAgent.generate (chain)', '  gpt (llm)'],
  ],
  [
    'a tool of an agent that is passed on',
    ({ chat }) => {
      const { tools } = new sdk.ToolLoopAgent(inTwoSteps(chat));
      return sdk.generateText({ ...inTwoSteps(chat), tools });
    },
    ['generateText (chain)', ...twoSteps],
  ],
])('%s is recorded', async (_, call, tree, runs = []) => {
  const started = await start();
  const { recorder } = started;
  await call(started);
  expect(drawn(recorder.runs)).toEqual(tree);
  for (const [at, run] of runs.entries()) expect(recorder.runs[at]).toMatchObject(run ?? {});
  expect(recorder.runs.filter(({ error, end_time }) => error !== undefined || end_time === undefined)).toEqual([]);
  const operations = recorder.runs.filter(({ run_type }) => run_type === 'chain');
  expect(JSON.stringify(operations)).not.toContain('usage_metadata');
  expect(JSON.stringify(recorder.runs)).not.toContain('a-secret');
});

test('a streamed text is recorded like the same text at once, with events for the first token', async () => {
  const { chat, recorder } = await start();
  await sdk.generateText(inTwoSteps(chat));
  const plain = payloads(recorder.runs);
  recorder.clear();
  let text = '';
  for await (const word of sdk.streamText(inTwoSteps(chat)).textStream) text += word;
  expect(text).toBe('It is raining.');
  expect(payloads(recorder.runs)).toEqual(plain);
  const event = ['new_token'];
  expect(recorder.runs.map(({ events }) => events?.map(({ name }) => name))).toEqual([event, event, undefined, event]);
});

test('files are attachments', async () => {
  const { chat, recorder } = await start();
  const [first, second] = [Buffer.alloc(3_000, 7), Buffer.alloc(3_000, 8)];
  const content = [first, second.toString('base64')].map(
    (data) => ({ type: 'file', mediaType: 'image/png', data }) as const,
  );
  await sdk.generateText({ model: chat('gpt'), messages: [{ role: 'user', content }] });
  expect(recorder.runs).toHaveLength(2);
  for (const { inputs, attachments } of recorder.runs) {
    expect(JSON.stringify(inputs).length).toBeLessThan(1_000);
    expect(attachments?.map(({ bytes, mimeType }) => [Buffer.from(bytes as Uint8Array), mimeType])).toEqual([
      [first, 'image/png'],
      [second, 'image/png'],
    ]);
  }
});

describe('media is recorded as a marker with its type and size:', () => {
  const response = { timestamp: new Date(0), modelId: 'model-2026', headers: { key: 'a-secret' } };
  // The text starts like a PNG and has 66 bytes.
  const png = `iVBORw0KGgo${'A'.repeat(77)}`;
  const wav = Buffer.concat([Buffer.from('RIFF....WAVE'), Buffer.alloc(2_000)]);
  const metadata = {
    ls_provider: 'studio',
    ls_model_name: 'model',
    ls_model_type: 'llm',
    response_model: 'model-2026',
  };
  const model = { provider: 'studio.media', modelId: 'model' };

  test('images', async () => {
    const { recorder } = await start();
    const usage = { inputTokens: 4, outputTokens: 6, totalTokens: 10 };
    const doGenerate = async () => ({ images: [png], warnings: [], response, usage });
    const painter = new MockImageModelV3({ ...model, doGenerate });
    const settings = { size: '8x8', n: 1, seed: 7 } as const;
    const { image } = await sdk.generateImage({ model: painter, prompt: 'A cat', ...settings });
    expect(image.base64).toBe(png);
    await sdk.generateImage({ model: painter, prompt: { text: 'A dog', images: [wav, png], mask: wav } });
    const files = [
      expect.stringMatching(/^\[Image: .*2012 bytes\]$/),
      expect.stringMatching(/^\[Image: .*66 bytes\]$/),
    ];
    expect(recorder.runs).toMatchObject([
      {
        name: 'generateImage',
        run_type: 'chain',
        inputs: { model: 'model', prompt: 'A cat', ...settings },
        outputs: { images: ['[Image: image/png, 66 bytes]'] },
      },
      {
        name: 'model',
        run_type: 'llm',
        inputs: { prompt: 'A cat', size: '8x8', n: 1 },
        outputs: {
          images: ['[Image: 66 bytes]'],
          usage_metadata: { input_tokens: 4, output_tokens: 6, total_tokens: 10 },
        },
        extra: { metadata: { ...metadata, ls_invocation_params: { seed: 7 } } },
      },
      {
        inputs: {
          prompt: { text: 'A dog', images: ['[Image: 2012 bytes]', '[Image: 66 bytes]'], mask: '[Image: 2012 bytes]' },
        },
      },
      { inputs: { prompt: 'A dog', files, mask: expect.stringContaining('2012 bytes') } },
    ]);
    expect(JSON.stringify(recorder.runs)).not.toMatch(/iVBOR|UklGR|a-secret/);
  });

  test('speech', async () => {
    const { recorder } = await start();
    const speaker = new MockSpeechModelV3({
      ...model,
      doGenerate: async () => ({ audio: wav, warnings: [], response }),
    });
    const settings = { text: 'Hello.', voice: 'alloy', speed: 2 };
    const { audio } = await sdk.experimental_generateSpeech({ model: speaker, ...settings });
    expect(Buffer.from(audio.uint8Array)).toEqual(wav);
    expect(recorder.runs).toMatchObject([
      { name: 'generateSpeech', inputs: settings, outputs: { audio: '[Audio: audio/wav, 2012 bytes]' } },
      {
        name: 'model',
        run_type: 'llm',
        inputs: settings,
        outputs: { audio: '[Audio: 2012 bytes]' },
        extra: { metadata },
      },
    ]);
    expect(JSON.stringify(recorder.runs)).not.toMatch(/UklGR|a-secret/);
  });

  test('a transcription', async () => {
    const { recorder } = await start();
    const text = { text: 'Hello.', segments: [{ text: 'Hello.', startSecond: 0, endSecond: 1 }] };
    const outputs = { ...text, language: 'en', durationInSeconds: 1 };
    const doGenerate = async () => ({ ...outputs, warnings: [], response });
    const listener = new MockTranscriptionModelV3({ ...model, doGenerate });
    expect(await sdk.experimental_transcribe({ model: listener, audio: wav })).toMatchObject(outputs);
    await sdk.experimental_transcribe({ model: listener, audio: wav.toString('base64') });
    const called = { name: 'model', run_type: 'llm', inputs: { audio: '[Audio: audio/wav, 2012 bytes]' }, outputs };
    expect(recorder.runs).toMatchObject([
      { name: 'transcribe', inputs: { audio: '[Audio: 2012 bytes]' }, outputs },
      { ...called, extra: { metadata } },
      { name: 'transcribe', inputs: { audio: '[Audio: 2012 bytes]' } },
      called,
    ]);
    expect(JSON.stringify(recorder.runs)).not.toMatch(/UklGR|a-secret/);
  });

  test('a model that only `wrapModel` wraps', async () => {
    const { recorder } = await start();
    const doGenerate = async () => ({ images: [wav], warnings: [], response });
    const painter = wrapModel(new MockImageModelV3({ ...model, doGenerate }));
    await ai.generateImage({ model: painter, prompt: 'A cat' });
    expect(recorder.runs).toMatchObject([{ name: 'model', outputs: { images: ['[Image: 2012 bytes]'] } }]);
  });
});

describe('the telemetry option', () => {
  const metadata = { userId: 42, sessionId: 's1', plan: 'pro' };

  // Version 7 renames the option.
  test.each(['experimental_telemetry', 'telemetry'])(
    '`%s` gives the run its metadata and function id',
    async (option) => {
      const { chat, recorder } = await start();
      const options = { [option]: { isEnabled: false, functionId: 'forecast', metadata } };
      await sdk.generateText({ model: chat('gpt'), prompt: 'Rain?', ...options });
      await new sdk.ToolLoopAgent({ model: chat('gpt'), ...options }).generate({ prompt: 'Rain?' });
      const given = { ...metadata, function_id: 'forecast', user_id: '42', thread_id: 's1' };
      expect(recorder.runs).toMatchObject([
        { name: 'generateText', inputs: { prompt: 'Rain?' }, outputs: { text: 'It is raining.' } },
        { name: 'gpt' },
        { name: 'ToolLoopAgent.generate' },
        { name: 'gpt' },
      ]);
      expect(recorder.runs[0]?.extra?.metadata).toEqual(given);
      expect(recorder.runs[2]?.extra?.metadata).toEqual(given);
      expect(recorder.runs[1]?.extra?.metadata).not.toHaveProperty('function_id');
    },
  );

  test('does not replace the conversation of the enclosing run', async () => {
    const { chat, recorder } = await start();
    const experimental_telemetry = { metadata };
    await withContext({ threadId: 't1' }, () =>
      sdk.generateText({ model: chat('gpt'), prompt: 'Rain?', experimental_telemetry }),
    );
    expect(recorder.runs[0]?.extra?.metadata).toMatchObject({ thread_id: 't1', user_id: '42' });
  });

  test.each<[object, object, object, object]>([
    [{ recordInputs: false }, {}, { text: 'It is raining.' }, { messages: expect.anything() }],
    [{ recordOutputs: false }, { prompt: 'Rain?' }, {}, {}],
  ])('with %j hides these payloads of the call and of its model calls', async (telemetry, inputs, outputs, answer) => {
    const { chat, recorder } = await start();
    const call = { ...inTwoSteps(chat), experimental_telemetry: telemetry };
    await sdk.generateText(call);
    await sdk.streamText(call).consumeStream();
    await new sdk.ToolLoopAgent({ ...call }).generate({ prompt: 'Rain?' });
    expect(drawn(recorder.runs)).toEqual([
      'generateText (chain)',
      ...twoSteps,
      'streamText (chain)',
      ...twoSteps,
      'ToolLoopAgent.generate (chain)',
      ...twoSteps,
    ]);
    for (const at of [0, 4, 8]) {
      const [operation, model, tool] = recorder.runs.slice(at);
      expect([operation, model]).toMatchObject([{ outputs }, { outputs: answer }]);
      expect(Object.keys({ ...operation?.inputs }).includes('prompt')).toBe('prompt' in inputs);
      expect(Object.keys({ ...model?.inputs }).includes('messages')).toBe('prompt' in inputs);
      expect([{ ...operation?.outputs }, { ...model?.outputs }].every((one) => Object.keys(one).length > 0)).toBe(
        'text' in outputs,
      );
      // A tool's input comes from the model, and its output goes to the model.
      expect([{ ...tool?.inputs }, { ...tool?.outputs }]).toEqual([{}, {}]);
      expect(model?.extra?.metadata?.usage_metadata).toEqual(usage_metadata);
    }
    recorder.clear();
    await sdk.generateText({ model: chat('gpt'), prompt: 'Rain?' });
    expect(recorder.runs).toMatchObject([{ inputs: { prompt: 'Rain?' }, outputs: { text: 'It is raining.' } }, {}]);
  });
});

test('concurrent calls are separate traces', async () => {
  const { chat, recorder } = await start();
  await Promise.all(['a', 'b', 'c'].map((prompt) => sdk.generateText({ ...inTwoSteps(chat), prompt })));
  const roots = recorder.runs.filter((run) => run.parent_run_id === undefined);
  expect(roots.map(({ inputs }) => inputs.prompt).sort()).toEqual(['a', 'b', 'c']);
  for (const { trace_id } of roots) {
    const trace = recorder.runs.filter((run) => run.trace_id === trace_id);
    expect(drawn(trace)).toEqual(['generateText (chain)', ...twoSteps]);
  }
});

describe('a call that fails', () => {
  const service = 'AI_APICallError: no such tune';

  test('has the error of the service', async () => {
    const { chat, recorder } = await start();
    const errors: unknown[] = [await sdk.generateText({ model: chat('broken'), prompt: 'x' }).catch((error) => error)];
    const onError = ({ error }: { error: unknown }): void => void errors.push(error);
    await sdk.streamText({ model: chat('broken'), prompt: 'x', onError }).consumeStream();
    expect(errors.map((error) => ai.APICallError.isInstance(error))).toEqual([true, true]);
    expect(headlines(recorder.runs)).toEqual([
      ['generateText', service],
      ['broken', service],
      ['streamText', service],
      ['broken', service],
    ]);
  });

  test('because the connection breaks has the text so far', async () => {
    const { chat, recorder, server } = await start();
    const onChunk = ({ chunk }: { chunk: { type: string; text?: string } }): void => {
      if (chunk.text === '.') void server.close();
    };
    await sdk.streamText({ model: chat('endless'), prompt: 'Rain?', onError: () => {}, onChunk }).consumeStream();
    const error = expect.stringMatching(/^\w*Error: /);
    expect(recorder.runs).toMatchObject([
      { error, outputs: { text: 'It is raining.' } },
      { error, outputs: { messages: [{ content: 'It is raining.' }] } },
    ]);
  });

  test('because the application aborts it is cancelled', async () => {
    const { chat, recorder, server } = await start();
    const controller = new AbortController();
    const result = sdk.streamText({ model: chat('endless'), prompt: 'Rain?', abortSignal: controller.signal });
    let text = '';
    for await (const word of result.textStream) {
      text += word;
      if (text === 'It is raining.') controller.abort();
    }
    await server.left;
    const error = expect.stringMatching(/^AbortError: This operation was aborted(\n|$)/);
    const cancelled = { error, end_time: expect.any(String), extra: { runspan_end_reason: 'cancelled' } };
    expect(recorder.runs).toMatchObject([
      { name: 'streamText', ...cancelled },
      { name: 'endless', ...cancelled },
    ]);
  });

  const stopped = new Error('the user has left');
  const withOwnReason = () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(stopped), 50);
    return controller.signal;
  };

  test.each<[string, () => object, string | undefined]>([
    ['signal that aborts with an own reason is cancelled', () => ({ abortSignal: withOwnReason() }), 'cancelled'],
    ['signal that times out fails', () => ({ abortSignal: AbortSignal.timeout(50) }), undefined],
    ['time limit fails', () => ({ timeout: 50 }), undefined],
  ])('with a %s, and so does its model call, also during a tool', async (_, options, reason) => {
    const { chat, recorder } = await start();
    const call = { model: chat('endless'), prompt: 'Rain?' };
    await sdk.streamText({ ...call, ...options(), onError: () => {} }).consumeStream();
    await expect(sdk.generateText({ ...call, model: chat('silent'), ...options() })).rejects.toThrow();
    expect(recorder.runs.map(({ name, extra }) => [name, extra?.runspan_end_reason])).toEqual([
      ['streamText', reason],
      ['endless', reason],
      ['generateText', reason],
      ['silent', reason],
    ]);
    expect(recorder.runs.map(({ error }) => typeof error)).toEqual(Array(4).fill('string'));
    const tool = () => new Promise((resolve) => setTimeout(resolve, 100));
    await sdk.streamText({ ...inTwoSteps(chat, tool), ...options() }).consumeStream();
    expect([typeof recorder.runs[4]?.error, recorder.runs[4]?.extra?.runspan_end_reason]).toEqual(['string', reason]);
  });

  test('of a tool has the error on the run of the tool', async () => {
    const { chat, recorder } = await start();
    const execute = () => Promise.reject(new RangeError('no weather there'));
    await sdk.generateText(inTwoSteps(chat, execute));
    expect(headlines(recorder.runs)).toEqual([
      ['generateText', undefined],
      ['gpt', undefined],
      ['weather', 'RangeError: no weather there'],
      ['gpt', undefined],
    ]);
  });
});

describe('a consumer that leaves a streamed text', () => {
  const cancelled = { outputs: { text: 'It is raining.' }, extra: { runspan_end_reason: 'cancelled' } };

  async function readWords(stream: ReadableStream<string | Uint8Array>) {
    const reader = stream.getReader();
    const decoder = new TextDecoder();
    for (let text = ''; text !== 'It is raining.'; ) {
      const { value } = await reader.read();
      text += typeof value === 'string' ? value : decoder.decode(value);
    }
    return reader;
  }

  const leaving: Readonly<Record<string, (result: ReturnType<typeof sdk.streamText>) => Promise<unknown>>> = {
    'by `break`': async (result) => {
      let text = '';
      for await (const word of result.textStream) {
        text += word;
        if (text === 'It is raining.') break;
      }
    },
    'with a cancelled response': async (result) =>
      (await readWords(result.toTextStreamResponse().body as never)).cancel(),
    'with a cancelled stream': async (result) => (await readWords(result.textStream)).cancel(),
    'with a closed browser': async (result) => {
      const server = createServer((_, response) => result.pipeTextStreamToResponse(response));
      const controller = new AbortController();
      const { body } = await fetch(await listenInTest(server), { signal: controller.signal });
      await readWords(body as never);
      controller.abort();
    },
  };

  test.each(Object.entries(leaving))('%s ends the run as cancelled, with the text so far', async (_, leave) => {
    const { chat, recorder } = await start();
    await leave(sdk.streamText({ model: chat('endless'), prompt: 'Rain?', onError: () => {} }));
    await expect.poll(() => recorder.runs[0]?.end_time).toBeDefined();
    expect(recorder.runs).toMatchObject([{ name: 'streamText', ...cancelled }, { name: 'endless' }]);
    expect(recorder.runs[0]?.error).toBeUndefined();
    // Version 6 of the SDK still reads the model's response.
    expect(recorder.runs[1]?.end_time).toBeUndefined();
  });

  test('leaves the model call with its whole answer and usage if the SDK reads it to its end', async () => {
    const { chat, recorder } = await start();
    for await (const _ of sdk.streamText({ model: chat('gpt'), prompt: 'Rain?' }).textStream) break;
    await expect.poll(() => recorder.runs.map(({ end_time }) => end_time)).not.toContain(undefined);
    expect(recorder.runs).toMatchObject([
      { name: 'streamText', extra: { runspan_end_reason: 'cancelled' } },
      { name: 'gpt', outputs: { messages: [{ content: 'It is raining.' }], usage_metadata } },
    ]);
    expect(recorder.runs[1]?.extra).not.toHaveProperty('runspan_end_reason');
  });

  test.each<[string, (result: ReturnType<typeof sdk.streamText>) => Promise<unknown>]>([
    ['reads two streams', ({ textStream, fullStream }) => Promise.all([readAll(textStream), readAll(fullStream)])],
    [
      'leaves one of two streams',
      async ({ textStream, fullStream }) => {
        for await (const _ of textStream) break;
        await readAll(fullStream);
      },
    ],
    [
      'leaves the stream and then awaits the text',
      async (result) => {
        for await (const _ of result.textStream) break;
        expect(await result.text).toBe('It is raining.');
      },
    ],
  ])('does not cancel the run of a program that %s', async (_, read) => {
    const { chat, recorder } = await start();
    await read(sdk.streamText({ model: chat('gpt'), prompt: 'Rain?' }));
    await expect.poll(() => recorder.runs.map(({ end_time }) => end_time)).not.toContain(undefined);
    expect(recorder.runs).toMatchObject([
      { outputs: { text: 'It is raining.', finishReason: 'stop' } },
      { outputs: { usage_metadata } },
    ]);
    expect(JSON.stringify(recorder.runs)).not.toContain('cancelled');
  });
});

async function readAll(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

test('outputs set by the application are recorded instead of the result', async () => {
  const { chat, recorder } = await start();
  const set = (outputs: object): undefined => void currentRun()?.set({ outputs });
  const execute = async (): Promise<object> => {
    set({ tool: 'own' });
    return { rain: true };
  };
  const options = { ...inTwoSteps(chat, execute), prepareStep: () => set({ call: 'own' }) };
  await sdk.generateText(options);
  await sdk.streamText(options).consumeStream();
  const own = recorder.runs.filter(({ name }) => name !== 'gpt').map(({ outputs }) => outputs);
  expect(own).toEqual([{ call: 'own' }, { tool: 'own' }, { call: 'own' }, { tool: 'own' }]);
});

describe('wrapAISDK', () => {
  test('does not change any other member', () => {
    const { generateText, streamText, generateObject, streamObject, embed, embedMany, rerank, ...others } = sdk;
    const { generateImage, experimental_generateImage, experimental_generateSpeech, experimental_transcribe } = others;
    const media = { generateImage, experimental_generateImage, experimental_generateSpeech, experimental_transcribe };
    const { ToolLoopAgent, Experimental_Agent, ...members } = others;
    const rest = Object.fromEntries(Object.entries(members).filter(([name]) => !(name in media)));

    expect(ToolLoopAgent).toBe(Experimental_Agent);
    expect(Object.keys(sdk)).toEqual(Object.keys(ai));
    const bareMembers: Readonly<Record<string, unknown>> = { ...ai };
    for (const [name, member] of Object.entries(rest)) expect(member).toBe(bareMembers[name]);
    const wrapped = { generateText, streamText, generateObject, streamObject, embed, embedMany, rerank, ...media };
    for (const [name, fn] of Object.entries(wrapped)) {
      const bare = bareMembers[name] as typeof fn;
      expect(fn).not.toBe(bare);
      expect([fn.name, fn.length]).toEqual([bare.name, bare.length]);
      expect(Object.getPrototypeOf(fn)).toBe(Object.getPrototypeOf(bare));
    }
  });

  test('logs one line if the value is not the SDK', () => {
    const lines = logLines();
    const others: object[] = [{}, { generateText: 1 }, [], null as never, 'ai' as never];

    for (const other of others) expect(wrapAISDK(other)).toBe(other);
    expect(lines).toEqual(
      ['another object', 'a list', 'null', 'string'].map(
        (got) =>
          `warn: wrapAISDK: expected what \`import * as ai from 'ai'\` gives, got ${got}; the value is not traced.`,
      ),
    );
  });

  test('has agents that require `new`, like those of the SDK', () => {
    const make = sdk.ToolLoopAgent as unknown as () => unknown;
    expect(() => make()).toThrow(/^Class constructor ToolLoopAgent cannot be invoked without 'new'$/);
  });
});
