// The functions of the real `ai`, over HTTP to a server that speaks OpenAI's, and what is recorded of them.
import { createOpenAI } from '@ai-sdk/openai';
import * as ai from 'ai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { wrapAISDK } from '../../src/integrations/ai-sdk/sdk.ts';
import type { RunRecord } from '../../src/run/record.ts';
import { currentRun, startRun, withRun } from '../../src/run/start-run.ts';
import { record } from '../instrument/recorder.ts';
import { startOpenAiServer } from '../support/openai-server.ts';
import { told } from '../support/told.ts';

const sdk = wrapAISDK(ai);
const report = z.object({ city: z.string(), rain: z.boolean() });

/** What the server says that every answer has cost. */
const USAGE = {
  input_tokens: 20,
  output_tokens: 9,
  total_tokens: 29,
  input_token_details: { cache_read: 8 },
  output_token_details: { reasoning: 3 },
};

async function start() {
  const server = await startOpenAiServer();
  onTestFinished(server.close);
  const openai = createOpenAI({ baseURL: server.url, apiKey: 'a-secret' });
  return { server, openai, chat: openai.chat, recorder: record() };
}

const makeWeather = () =>
  ai.tool({ inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => ({ city, rain: true }) });

/** `name (type)` of every run in its place, one line each. */
function drawn(runs: readonly RunRecord[]): string[] {
  return runs.map((run) => `${'  '.repeat(run.dotted_order.split('.').length - 1)}${run.name} (${run.run_type})`);
}

const TWO_STEPS = ['  gpt (llm)', '  weather (tool)', '  gpt (llm)'];

describe('a text', () => {
  it('is one run, with a run for each call of the model and of a tool below it', async () => {
    const { chat, recorder } = await start();
    const options = { model: chat('gpt'), tools: { weather: makeWeather() }, stopWhen: ai.stepCountIs(3) };
    const { text } = await sdk.generateText({
      ...options,
      system: 'Be short.',
      prompt: 'Rain?',
      headers: { key: 'b' },
    });

    expect(text).toBe('It is raining.');
    expect(drawn(recorder.runs)).toEqual(['generateText (chain)', ...TWO_STEPS]);
    const [call, first, tool, last] = recorder.runs;
    expect(call).toMatchObject({
      inputs: { model: 'gpt', system: 'Be short.', prompt: 'Rain?', tools: ['weather'] },
      outputs: { text: 'It is raining.', finishReason: 'stop', steps: 2 },
    });
    const asked = [
      { role: 'system', content: 'Be short.' },
      { role: 'user', content: 'Rain?' },
    ];
    const calls = [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Cork"}' } }];
    expect(first?.inputs).toEqual({ messages: asked });
    expect(first?.outputs).toEqual({
      messages: [{ role: 'assistant', content: '', tool_calls: calls, finish_reason: 'tool-calls' }],
      usage_metadata: USAGE,
    });
    expect(tool).toMatchObject({
      inputs: { city: 'Cork' },
      outputs: { city: 'Cork', rain: true },
      extra: { metadata: { tool_call_id: 'call_1' } },
    });
    const answered = { type: 'json', value: { city: 'Cork', rain: true } };
    expect(last?.inputs.messages).toEqual([
      ...asked,
      { role: 'assistant', tool_calls: calls },
      { role: 'tool', tool_call_id: 'call_1', name: 'weather', content: answered },
    ]);
    expect(JSON.stringify(recorder.runs)).not.toContain('a-secret');
  });

  it('tells of the model, its settings and its tokens on the run of the model alone', async () => {
    const { chat, recorder } = await start();
    const settings = { temperature: 0.5, maxOutputTokens: 100, stopSequences: ['!'], topP: 0.9, seed: 4 };
    await sdk.generateText({ model: chat('gpt'), prompt: 'Rain?', ...settings });

    const [call, model] = recorder.runs;
    expect(call?.inputs).toMatchObject(settings);
    expect(JSON.stringify(call)).not.toContain('usage_metadata');
    expect(model?.extra?.metadata).toEqual({
      ls_provider: 'openai',
      ls_model_name: 'gpt',
      ls_model_type: 'chat',
      ls_temperature: 0.5,
      ls_max_tokens: 100,
      ls_stop: ['!'],
      ls_invocation_params: { model: 'gpt', temperature: 0.5, max_tokens: 100, stop: ['!'], top_p: 0.9, seed: 4 },
      response_model: 'gpt-2026',
      usage_metadata: USAGE,
    });
  });

  it('is recorded alike when it is streamed, and its first token is an event', async () => {
    const { chat, recorder } = await start();
    const options = {
      model: chat('gpt'),
      tools: { weather: makeWeather() },
      stopWhen: ai.stepCountIs(3),
      prompt: 'Rain?',
    };
    await sdk.generateText(options);
    const plain = recorder.runs;
    recorder.clear();
    let text = '';
    for await (const word of sdk.streamText(options).textStream) text += word;

    expect(text).toBe('It is raining.');
    expect(drawn(recorder.runs)).toEqual(['streamText (chain)', ...TWO_STEPS]);
    const payloads = (runs: readonly RunRecord[]) => runs.map(({ inputs, outputs }) => ({ inputs, outputs }));
    expect(payloads(recorder.runs)).toEqual(payloads(plain));
    expect(recorder.runs.map(({ events }) => events?.map(({ name }) => name))).toEqual([
      ['new_token'],
      ['new_token'],
      undefined,
      ['new_token'],
    ]);
  });

  it('has its files beside the runs, as they were given', async () => {
    const { chat, recorder } = await start();
    const bytes = Buffer.alloc(3_000, 7);
    const files = [bytes, bytes.toString('base64')].map(
      (data) => ({ type: 'file', mediaType: 'image/png', data }) as const,
    );
    await sdk.generateText({ model: chat('gpt'), messages: [{ role: 'user', content: files }] });

    expect(recorder.runs).toHaveLength(2);
    for (const { inputs, attachments } of recorder.runs) {
      expect(JSON.stringify(inputs).length).toBeLessThan(1_000);
      expect(attachments?.map((one) => Buffer.compare(one.bytes as Uint8Array, bytes))).toEqual([0, 0]);
    }
  });

  it('tells what a tool was called with, whatever the tool makes of it', async () => {
    const { chat, recorder } = await start();
    const execute = async (input: { city: string }) => {
      input.city = 'changed';
      return 'rain';
    };
    const weather = ai.tool({ inputSchema: z.object({ city: z.string() }), execute });
    await sdk.streamText({ model: chat('gpt'), tools: { weather }, prompt: 'Rain?' }).consumeStream();

    const [call, , tool] = recorder.runs;
    expect(call?.outputs).toMatchObject({ toolCalls: [{ toolName: 'weather', input: { city: 'Cork' } }] });
    expect(tool?.inputs).toEqual({ city: 'Cork' });
  });

  it('has its tools in the tree wherever its stream is read', async () => {
    const { chat, recorder } = await start();
    const options = {
      model: chat('gpt'),
      tools: { weather: makeWeather() },
      stopWhen: ai.stepCountIs(3),
      prompt: 'Rain?',
    };
    const result = sdk.streamText(options);
    const elsewhere = startRun({ name: 'elsewhere' });
    await withRun(elsewhere, () => result.consumeStream());
    elsewhere.end();

    expect(drawn(recorder.runs)).toEqual(['streamText (chain)', ...TWO_STEPS, 'elsewhere (chain)']);
  });

  it('keeps calls that run at once apart', async () => {
    const { chat, recorder } = await start();
    const model = chat('gpt');
    const tools = { weather: makeWeather() };
    const ask = (prompt: string) => sdk.generateText({ model, tools, stopWhen: ai.stepCountIs(3), prompt });
    await Promise.all(['a', 'b', 'c'].map(ask));

    const roots = recorder.runs.filter((run) => run.parent_run_id === undefined);
    expect(roots.map(({ inputs }) => inputs.prompt).sort()).toEqual(['a', 'b', 'c']);
    for (const { trace_id } of roots) {
      const trace = recorder.runs.filter((run) => run.trace_id === trace_id);
      expect(drawn(trace)).toEqual(['generateText (chain)', ...TWO_STEPS]);
    }
  });
});

describe('an end that is none of an answer', () => {
  it('is the error of the service, on both runs', async () => {
    const { chat, recorder } = await start();
    const error = await sdk.generateText({ model: chat('broken'), prompt: 'Sing.' }).catch((thrown) => thrown);

    expect(ai.APICallError.isInstance(error)).toBe(true);
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual([
      'AI_APICallError: no such tune',
      'AI_APICallError: no such tune',
    ]);
  });

  it('is the error of the service where only the stream tells of it', async () => {
    const { chat, recorder } = await start();
    const errors: unknown[] = [];
    const onError = ({ error }: { error: unknown }): void => void errors.push(error);
    await sdk.streamText({ model: chat('broken'), prompt: 'Sing.', onError }).consumeStream();

    expect(errors).toHaveLength(1);
    expect(recorder.runs.map(({ name, error }) => [name, error?.split('\n')[0]])).toEqual([
      ['streamText', 'AI_APICallError: no such tune'],
      ['broken', 'AI_APICallError: no such tune'],
    ]);
  });

  it('keeps what came before the connection broke', async () => {
    const { chat, recorder, server } = await start();
    const onChunk = ({ chunk }: { chunk: { type: string; text?: string } }): void => {
      if (chunk.text === '.') void server.close();
    };
    await sdk.streamText({ model: chat('endless'), prompt: 'Rain?', onError: () => {}, onChunk }).consumeStream();

    const [call, model] = recorder.runs;
    expect(model?.error).toMatch(/^\w*Error: /);
    expect(model?.outputs).toMatchObject({ messages: [{ content: 'It is raining.' }] });
    expect(call?.error).toMatch(/^\w*Error: /);
    expect(call?.outputs).toMatchObject({ text: 'It is raining.' });
  });

  it('is an abort, by the signal of the application', async () => {
    const { chat, recorder, server } = await start();
    const controller = new AbortController();
    const result = sdk.streamText({ model: chat('endless'), prompt: 'Rain?', abortSignal: controller.signal });
    let text = '';
    for await (const word of result.textStream) {
      text += word;
      if (text === 'It is raining.') controller.abort();
    }
    await server.left;

    expect(recorder.runs.map(({ name, error }) => [name, error?.split('\n')[0]])).toEqual([
      ['streamText', 'AbortError: This operation was aborted'],
      ['endless', 'AbortError: This operation was aborted'],
    ]);
    expect(recorder.runs.map(({ extra }) => extra?.metadata?.end_reason)).toEqual(['cancelled', 'cancelled']);
    expect(recorder.runs.every((run) => run.end_time !== undefined)).toBe(true);
  });

  it('is the error of a tool, on the run of the tool; the model hears of it', async () => {
    const { chat, recorder } = await start();
    const execute = async (): Promise<string> => {
      throw new RangeError('no weather there');
    };
    const weather = ai.tool({ inputSchema: z.object({ city: z.string() }), execute });
    await sdk.generateText({ model: chat('gpt'), tools: { weather }, stopWhen: ai.stepCountIs(3), prompt: 'Rain?' });

    expect(drawn(recorder.runs)).toEqual(['generateText (chain)', ...TWO_STEPS]);
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual([
      undefined,
      undefined,
      'RangeError: no weather there',
      undefined,
    ]);
  });
});

it('records outputs set by the application instead of the result', async () => {
  const { chat, recorder } = await start();
  const set = (outputs: object): undefined => void currentRun()?.set({ outputs });
  const execute = async (): Promise<object> => {
    set({ tool: 'own' });
    return { rain: true };
  };
  const weather = ai.tool({ inputSchema: z.object({ city: z.string() }), execute });
  const options = { model: chat('gpt'), tools: { weather }, stopWhen: ai.stepCountIs(3), prompt: 'Rain?' };
  const prepareStep = () => set({ call: 'own' });
  await sdk.generateText({ ...options, prepareStep });
  await sdk.streamText({ ...options, prepareStep }).consumeStream();

  const own = { generateText: { call: 'own' }, streamText: { call: 'own' }, weather: { tool: 'own' } };
  const seen = recorder.runs.flatMap(({ name, outputs }) => (name in own ? [[name, outputs]] : []));
  expect(seen).toEqual([
    ['generateText', own.generateText],
    ['weather', own.weather],
    ['streamText', own.streamText],
    ['weather', own.weather],
  ]);
});

describe('other functions', () => {
  it('records an object, at once and streamed', async () => {
    const { chat, recorder } = await start();
    const options = { model: chat('gpt'), schema: report, prompt: 'Rain?' };
    const { object } = await sdk.generateObject(options);
    const result = sdk.streamObject(options);
    for await (const _ of result.partialObjectStream);

    expect(await result.object).toEqual(object);
    expect(drawn(recorder.runs)).toEqual([
      'generateObject (chain)',
      '  gpt (llm)',
      'streamObject (chain)',
      '  gpt (llm)',
    ]);
    for (const at of [0, 2]) expect(recorder.runs[at]?.outputs).toEqual({ object, finishReason: 'stop' });
    for (const at of [1, 3]) expect(recorder.runs[at]?.outputs).toMatchObject({ usage_metadata: USAGE });
  });

  it('records how many vectors there are, and not their numbers', async () => {
    const { openai, recorder } = await start();
    await sdk.embed({ model: openai.embedding('emb'), value: 'rain' });
    await sdk.embedMany({ model: openai.embedding('emb'), values: ['rain', 'sun'] });

    const usage_metadata = { input_tokens: 4, total_tokens: 4 };
    expect(drawn(recorder.runs)).toEqual([
      'embed (chain)',
      '  emb (embedding)',
      'embedMany (chain)',
      '  emb (embedding)',
    ]);
    expect(recorder.runs.map(({ inputs, outputs }) => [inputs, outputs])).toEqual([
      [
        { model: 'emb', value: 'rain' },
        { count: 1, dimensions: 3 },
      ],
      [{ values: ['rain'] }, { count: 1, dimensions: 3, usage_metadata }],
      [
        { model: 'emb', values: ['rain', 'sun'] },
        { count: 2, dimensions: 3 },
      ],
      [{ values: ['rain', 'sun'] }, { count: 2, dimensions: 3, usage_metadata }],
    ]);
  });

  it('traces an agent by its id, at once and streamed', async () => {
    const { chat, recorder } = await start();
    const settings = { id: 'forecaster', model: chat('gpt'), tools: { weather: makeWeather() } };
    const agent = new sdk.ToolLoopAgent(settings);
    const { text } = await agent.generate({ prompt: 'Rain?' });
    await (await agent.stream({ prompt: 'Rain?' })).consumeStream();

    expect(text).toBe('It is raining.');
    expect(agent).toBeInstanceOf(ai.ToolLoopAgent);
    expect(agent).toBeInstanceOf(sdk.ToolLoopAgent);
    expect(agent.constructor).toBe(ai.ToolLoopAgent);
    expect(drawn(recorder.runs)).toEqual([
      'forecaster.generate (chain)',
      ...TWO_STEPS,
      'forecaster.stream (chain)',
      ...TWO_STEPS,
    ]);
    expect(recorder.runs[4]?.outputs).toEqual({ text: 'It is raining.', finishReason: 'stop', steps: 2 });
  });

  it('traces the tools of an agent once when they are passed on', async () => {
    const { chat, recorder } = await start();
    const { tools } = new sdk.ToolLoopAgent({ model: chat('gpt'), tools: { weather: makeWeather() } });
    await sdk.generateText({ model: chat('gpt'), tools, stopWhen: ai.stepCountIs(3), prompt: 'Rain?' });

    expect(drawn(recorder.runs)).toEqual(['generateText (chain)', ...TWO_STEPS]);
  });

  it('takes what a tool yields last for its answer, as the SDK does', async () => {
    const { chat, recorder } = await start();
    async function* execute() {
      yield 'looking';
      yield 'rain';
    }
    const weather = ai.tool({ inputSchema: z.object({ city: z.string() }), execute });
    await sdk.generateText({ model: chat('gpt'), tools: { weather }, stopWhen: ai.stepCountIs(3), prompt: 'Rain?' });

    expect(recorder.runs[2]).toMatchObject({ name: 'weather', run_type: 'tool', outputs: { outputs: 'rain' } });
  });

  it('refuses an agent without `new`, as the SDK does', () => {
    const make = sdk.ToolLoopAgent as unknown as () => unknown;
    expect(() => make()).toThrow(/^Class constructor ToolLoopAgent cannot be invoked without 'new'$/);
  });

  it('lets an agent be extended', async () => {
    const { chat, recorder } = await start();
    class Loud extends sdk.ToolLoopAgent {
      shout = '!';
    }
    const agent = new Loud({ model: chat('gpt') });
    await agent.generate({ prompt: 'Rain?' });

    expect(agent).toBeInstanceOf(Loud);
    expect(agent.shout).toBe('!');
    expect(drawn(recorder.runs)).toEqual(['ToolLoopAgent.generate (chain)', '  gpt (llm)']);
  });
});

describe('a model', () => {
  it('that is given by its name is traced through the provider for names', async () => {
    const { chat, recorder } = await start();
    const holder = globalThis as { AI_SDK_DEFAULT_PROVIDER?: unknown };
    onTestFinished(() => void delete holder.AI_SDK_DEFAULT_PROVIDER);
    holder.AI_SDK_DEFAULT_PROVIDER = ai.customProvider({ languageModels: { named: chat('gpt') } });
    await sdk.generateText({ model: 'named', prompt: 'Rain?' });
    await sdk.generateText({ model: 'named', prompt: 'Rain?' });

    const once = ['generateText (chain)', '  gpt (llm)'];
    expect(drawn(recorder.runs)).toEqual([...once, ...once]);
    expect(recorder.runs[0]?.inputs).toMatchObject({ model: 'named' });
  });

  it('that a step chooses is traced too', async () => {
    const { chat, recorder } = await start();
    await sdk.generateText({
      model: chat('gpt'),
      tools: { weather: makeWeather() },
      stopWhen: ai.stepCountIs(3),
      prompt: 'Rain?',
      prepareStep: ({ stepNumber }) => (stepNumber === 0 ? undefined : Promise.resolve({ model: chat('other') })),
    });

    expect(drawn(recorder.runs).slice(1)).toEqual(['  gpt (llm)', '  weather (tool)', '  other (llm)']);
  });

  it('that middleware makes of a traced one is one call', async () => {
    const { chat, recorder } = await start();
    const inner = chat('gpt');
    await sdk.generateText({ model: inner, prompt: 'Rain?' });
    recorder.clear();
    const model = ai.wrapLanguageModel({
      model: inner,
      middleware: ai.extractReasoningMiddleware({ tagName: 'think' }),
    });
    await sdk.generateText({ model, prompt: 'Rain?' });
    await sdk.streamText({ model, prompt: 'Rain?' }).consumeStream();

    expect(drawn(recorder.runs)).toEqual(['generateText (chain)', '  gpt (llm)', 'streamText (chain)', '  gpt (llm)']);
  });
});

describe('wrapAISDK', () => {
  it('leaves every other member as it is', () => {
    const { generateText, streamText, generateObject, streamObject, embed, embedMany, rerank, ...others } = sdk;
    const { ToolLoopAgent, Experimental_Agent, ...rest } = others;

    expect(ToolLoopAgent).toBe(Experimental_Agent);
    expect(Object.keys(sdk)).toEqual(Object.keys(ai));
    const bareMembers: Readonly<Record<string, unknown>> = { ...ai };
    for (const [name, member] of Object.entries(rest)) expect(member).toBe(bareMembers[name]);
    const wrapped = { generateText, streamText, generateObject, streamObject, embed, embedMany, rerank };
    for (const [name, fn] of Object.entries(wrapped)) {
      const bare = bareMembers[name] as typeof fn;
      expect(fn).not.toBe(bare);
      expect([fn.name, fn.length]).toEqual([bare.name, bare.length]);
      expect(Object.getPrototypeOf(fn)).toBe(Object.getPrototypeOf(bare));
    }
  });

  it('gives the same functions again, and does not wrap twice', () => {
    expect(wrapAISDK(ai).generateText).toBe(sdk.generateText);
    expect(wrapAISDK(sdk).generateText).toBe(sdk.generateText);
    expect(wrapAISDK(wrapAISDK(ai)).ToolLoopAgent).toBe(sdk.ToolLoopAgent);
  });

  it('says what it was given where that is something else', () => {
    const lines = told();
    const others: object[] = [{}, { generateText: 1 }, [], null as never, 'ai' as never];

    for (const other of others) expect(wrapAISDK(other)).toBe(other);
    expect(lines).toEqual(
      ['another object', 'a list', 'null', 'string'].map(
        (got) => `warn: wrapAISDK(ai): expected what \`import * as ai from 'ai'\` gives, got ${got}; it is not traced.`,
      ),
    );
  });

  it('says which options it was given, for it takes none, and traces', async () => {
    const lines = told();
    const { chat, recorder } = await start();
    const { generateText } = (wrapAISDK as (sdk: typeof ai, options: object) => typeof ai)(ai, { tags: ['shop'] });
    await generateText({ model: chat('gpt'), prompt: 'Rain?' });

    expect(lines).toEqual(['warn: wrapAISDK: unknown option `tags`; left out.']);
    expect(recorder.runs).toHaveLength(2);
  });
});
