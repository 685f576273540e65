// Programs that run with the bare `ai` and with the wrapped `ai`, and that must see the same.
import * as ai from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { unwrapModel, wrapModel } from '#src/integrations/ai-sdk/model.ts';
import { wrapAISDK } from '#src/integrations/ai-sdk/sdk.ts';
import { installSink } from '#src/run/sink.ts';
import { record } from '../instrument/recorder.ts';
import { logLines } from '../support/log-lines.ts';

type Sdk = typeof ai;
type StreamResult = Awaited<ReturnType<MockLanguageModelV3['doStream']>>;
type StreamPart = StreamResult['stream'] extends ReadableStream<infer Part> ? Part : never;
type Generated = Awaited<ReturnType<MockLanguageModelV3['doGenerate']>>;

const usage: Generated['usage'] = {
  inputTokens: { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};
const stop = { unified: 'stop', raw: 'stop' } as const;
const toolCall = { type: 'tool-call', toolCallId: '1', toolName: 'weather', input: '{"city":"Cork"}' } as const;

const WORDS: StreamPart[] = [
  { type: 'stream-start', warnings: [] },
  { type: 'text-start', id: '1' },
  ...['It ', 'is ', 'raining', '.'].map((delta) => ({ type: 'text-delta', id: '1', delta }) as const),
  { type: 'text-end', id: '1' },
  { type: 'finish', finishReason: stop, usage },
];
const CALLS: StreamPart[] = [
  { type: 'stream-start', warnings: [] },
  toolCall,
  { type: 'finish', finishReason: { unified: 'tool-calls', raw: undefined }, usage },
];

/** A model that first calls the tool and then generates words. Requests for chunks are logged. */
function singer(log: string[], answers: StreamPart[][] = [CALLS, WORDS]) {
  let steps = 0;
  return new MockLanguageModelV3({
    doStream: async () => {
      log.push('asked');
      const parts = answers[steps++] ?? WORDS;
      let at = 0;
      const stream = new ReadableStream<StreamPart>({
        async pull(controller) {
          await nextTurn();
          const part = parts[at++];
          log.push(`gives ${part?.type ?? 'the end'}`);
          if (part === undefined) controller.close();
          else controller.enqueue(part);
        },
        cancel: (reason) => void log.push(`cancelled ${reason}`),
      });
      return { stream };
    },
    doGenerate: async () => ({ content: [{ type: 'text', text: 'La.' }], finishReason: stop, usage, warnings: [] }),
  });
}

const makeWeather = (log: string[]) =>
  ai.tool({
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }, { toolCallId }) => {
      log.push(`executes ${toolCallId}`);
      return { city };
    },
  });

/** Chunks from a network arrive in separate turns of the event loop. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Waits until all stages of a stream are idle. Each stage buffers at most one chunk. */
async function still(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await nextTurn();
}

const programs: Readonly<Record<string, (sdk: Sdk, log: string[]) => Promise<unknown>>> = {
  'never reads the stream': async (sdk, log) => {
    sdk.streamText({ model: singer(log), prompt: 'Sing.' });
  },
  'reads the stream chunk by chunk': async (sdk, log) => {
    const result = sdk.streamText({ model: singer(log, [WORDS]), prompt: 'Sing.' });
    const reader = result.textStream.getReader();
    for (;;) {
      await still();
      const { done, value } = await reader.read();
      log.push(`reads ${value}`);
      if (done) return;
    }
  },
  'leaves the stream': async (sdk, log) => {
    for await (const word of sdk.streamText({ model: singer(log, [WORDS]), prompt: 'Sing.' }).textStream) {
      log.push(word);
      if (word === 'is ') break;
    }
  },
  'cancels the stream of an object': async (sdk, log) => {
    const result = sdk.streamObject({ model: singer(log, [WORDS]), output: 'no-schema', prompt: 'Sing.' });
    await result.fullStream.cancel('enough');
  },
  'reads two streams of one result, and its promises': async (sdk, log) => {
    const options = { tools: { weather: makeWeather(log) }, stopWhen: ai.stepCountIs(3), prompt: 'Sing.' };
    const result = sdk.streamText({ model: singer(log), ...options });
    const texts = await Promise.all([text(result.textStream), text(result.textStream)]);
    return [texts, await result.text, await result.usage, await result.toolCalls, (await result.steps).length];
  },
  'answers a request': async (sdk, log) => {
    const result = sdk.streamText({ model: singer(log, [WORDS]), prompt: 'Sing.' });
    const response = result.toUIMessageStreamResponse({ generateMessageId: () => 'id', sendSources: true });
    return [response.status, [...response.headers], await response.text()];
  },
  'has callbacks': async (sdk, log) => {
    await sdk
      .streamText({
        model: singer(log),
        tools: { weather: makeWeather(log) },
        stopWhen: ai.stepCountIs(3),
        prompt: 'Sing.',
        onChunk: ({ chunk }) => void log.push(`chunk ${chunk.type}`),
        onStepFinish: ({ finishReason }) => void log.push(`step ${finishReason}`),
        onFinish: ({ text: said, totalUsage }) => void log.push(`finish ${said} ${totalUsage.totalTokens}`),
        experimental_onToolCallStart: ({ toolCall: { toolName } }) => void log.push(`calls ${toolName}`),
      })
      .consumeStream();
  },
  aborts: async (sdk, log) => {
    const controller = new AbortController();
    const onAbort = ({ steps }: { steps: unknown[] }): void => void log.push(`aborts after ${steps.length}`);
    const options = { model: singer(log, [WORDS]), prompt: 'Sing.', abortSignal: controller.signal, onAbort };
    const parts: string[] = [];
    for await (const part of sdk.streamText(options).fullStream) {
      parts.push(part.type);
      if (part.type === 'text-delta') controller.abort();
    }
    return parts;
  },
  'has a stream that breaks': async (sdk, log) => {
    const stream = new ReadableStream<StreamPart>({ pull: (controller) => controller.error(new RangeError('hoarse')) });
    const model = new MockLanguageModelV3({ doStream: { stream } });
    const onError = ({ error }: { error: unknown }): void => void log.push(String(error));
    return await text(sdk.streamText({ model, prompt: 'Sing.', onError }).textStream);
  },
  'has a callback that throws': async (sdk, log) => {
    const onFinish = (): void => {
      throw new RangeError('no end');
    };
    return await text(sdk.streamText({ model: singer(log, [WORDS]), prompt: 'Sing.', onFinish }).textStream);
  },
  'passes options that are an instance of a class': async (sdk, log) => {
    class Options {
      readonly #model = singer(log);
      readonly tools = { weather: makeWeather(log) };
      readonly prompt = 'Sing.';
      get model() {
        return this.#model;
      }
    }
    return (await sdk.generateText(new Options())).text;
  },
  'passes invalid options': async (sdk) =>
    await sdk.generateText({ model: singer([]), prompt: 'Sing.', messages: [] } as never),
  'passes no options': async (sdk) => await sdk.generateText(undefined as never),
  'passes a model of an unknown kind': async (sdk) =>
    await sdk.generateText({ model: { a: 1 } as never, prompt: 'Sing.' }),
  'transforms its stream': async (sdk, log) => {
    const experimental_transform = ai.smoothStream({ delayInMs: null, chunking: 'line' });
    return await text(
      sdk.streamText({ model: singer(log, [WORDS]), prompt: 'Sing.', experimental_transform }).textStream,
    );
  },
  'streams what a tool yields': async (sdk, log) => {
    const count = ai.tool({
      inputSchema: z.object({ city: z.string() }),
      async *execute() {
        yield 1;
        log.push('between');
        yield 2;
      },
    });
    const options = { tools: { weather: count }, stopWhen: ai.stepCountIs(2), prompt: 'Sing.' };
    const outputs: unknown[] = [];
    for await (const part of sdk.streamText({ model: singer(log), ...options }).fullStream) {
      if (part.type === 'tool-result') outputs.push([part.output, part.preliminary]);
    }
    return outputs;
  },
};

async function text(stream: AsyncIterable<string>): Promise<string> {
  let all = '';
  for await (const piece of stream) all += piece;
  return all;
}

/** Returns the log of a program, and its result or error. */
async function observed(program: (sdk: Sdk, log: string[]) => Promise<unknown>, sdk: Sdk) {
  const log: string[] = [];
  const outcome = await program(sdk, log).then(
    (value) => ({ value }),
    (error: Error) => ({ error: error.constructor.name, message: error.message }),
  );
  await still();
  return { log, outcome };
}

test.each(Object.entries(programs))('a program that %s sees the same with tracing', async (_, program) => {
  const bare = await observed(program, ai);
  const recorder = record();
  expect(await observed(program, wrapAISDK(ai))).toEqual(bare);
  expect(recorder.runs.length).toBeGreaterThan(0);
});

const sdk = wrapAISDK(ai);

describe('a wrapped function', () => {
  test('does not change its options, which may be frozen', async () => {
    const recorder = record();
    const log: string[] = [];
    const tools = Object.freeze({ weather: Object.freeze(makeWeather(log)) });
    const options = { model: singer(log), tools, stopWhen: ai.stepCountIs(3), prompt: 'Sing.' };
    await sdk.streamText(Object.freeze(options)).consumeStream();
    expect(log.filter((line) => line.startsWith('executes'))).toEqual(['executes 1']);
    expect(recorder.runs.map(({ name }) => name)).toEqual(['streamText', 'mock-model-id', 'weather', 'mock-model-id']);
  });

  test('calls a tool with the tool of the application as `this`', async () => {
    record();
    const weather = {
      inputSchema: z.object({ city: z.string() }),
      seen: undefined as unknown,
      async execute(): Promise<string> {
        this.seen = this;
        return 'rain';
      },
    };
    const options = { model: singer([]), tools: { weather }, stopWhen: ai.stepCountIs(2), prompt: 'x' };
    await sdk.streamText(options).consumeStream();
    expect(weather.seen).toBe(weather);
  });

  test('passes the same options and changes no model while tracing is off', async () => {
    installSink(undefined);
    onTestFinished(() => installSink(undefined));
    const given: unknown[] = [];
    const off = wrapAISDK({ generateText: async (...args: unknown[]) => void given.push(...args) });
    const model = singer([]);
    const { doStream } = model;
    const options = { model, tools: { weather: makeWeather([]) } };
    await off.generateText(options, 2);
    expect(given[0]).toBe(options);
    expect(given[1]).toBe(2);
    expect(model.doStream).toBe(doStream);
  });

  test('returns a plain promise or stream with the members of the SDK', async () => {
    record();
    const call = ({ generateText, streamText }: Sdk) =>
      [
        generateText({ model: singer([]), prompt: 'Sing.' }),
        streamText({ model: singer([]), prompt: 'Sing.' }),
      ] as const;
    const [[promise, stream], [barePromise, bareStream]] = [call(sdk), call(ai)];
    expect(Object.getPrototypeOf(promise)).toBe(Promise.prototype);
    for (const [wrapped, bare] of [
      [await promise, await barePromise],
      [stream, bareStream],
    ] as [object, object][]) {
      expect(Object.getPrototypeOf(wrapped)).toBe(Object.getPrototypeOf(bare));
      expect(Reflect.ownKeys(wrapped)).toEqual(Reflect.ownKeys(bare));
    }
  });

  test('throws the same error object as the model', async () => {
    record();
    const error = new RangeError('out of tune');
    const fail = () => Promise.reject(error);
    const model = new MockLanguageModelV3({ doGenerate: fail, doStream: fail });
    const errors: unknown[] = [];
    await sdk.streamText({ model, prompt: 'x', onError: (event) => void errors.push(event.error) }).consumeStream();
    await expect(sdk.generateText({ model, prompt: 'Sing.' })).rejects.toBe(error);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toBe(error);
  });

  test('records a call with arguments that are nested too deeply for JSON', async () => {
    const recorder = record();
    let input: unknown = 'x';
    for (let depth = 0; depth < 100_000; depth++) input = [input];
    const content = [{ type: 'tool-call' as const, toolCallId: 'c1', toolName: 'sing', input }];
    await wrapModel(singer([])).doGenerate({ prompt: [{ role: 'assistant', content }] });
    expect(recorder.runs).toMatchObject([{ inputs: { messages: [{ tool_calls: [{ id: 'c1' }] }] } }]);
  });

  test('does not read a result of an unknown form, because that would start its stream', () => {
    const recorder = record();
    const result = { textStream: new ReadableStream() };
    for (const key of ['text', 'steps']) Object.defineProperty(result, key, { get: () => expect.unreachable(key) });
    const { streamText } = wrapAISDK({ streamText: (_: object) => result });
    expect(streamText({})).toBe(result);
    expect(recorder.runs).toMatchObject([{ name: 'streamText', outputs: {}, end_time: expect.any(String) }]);
  });
});

describe('a wrapped model', () => {
  test('that is frozen is called untraced, and one line per method is logged', async () => {
    const lines = logLines();
    const recorder = record();
    expect((await sdk.generateText({ model: Object.freeze(singer([])), prompt: 'Sing.' })).text).toBe('La.');
    expect(recorder.runs.map(({ name }) => name)).toEqual(['generateText']);
    expect(lines).toEqual(
      ['doGenerate', 'doStream'].map(
        (name) =>
          `warn: wrapModel: expected \`${name}\` to be a method that can be replaced; the method is not traced.`,
      ),
    );
  });

  test.each([
    ['undefined', undefined, 'undefined'],
    ['text', 'gpt', 'string'],
    ['an object', { a: 1 }, 'another object'],
    ['a function', () => {}, 'function'],
  ])('must be a model: %s is returned unchanged, and one line is logged', (_, given, got) => {
    const lines = logLines();
    expect(wrapModel(given)).toBe(given);
    expect(unwrapModel(given)).toBe(given);
    const expected = 'a model of the AI SDK';
    expect(lines).toEqual([`warn: wrapModel: expected ${expected}, got ${got}; the value is not traced.`]);
  });
});
