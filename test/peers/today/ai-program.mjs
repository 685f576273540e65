// Calls version 7 of the AI SDK: `ai-program.mjs <part>…`. Prints what the application sees. `WRAP` is what the program wraps: `sdk` or `model`.
import { createOpenAI } from '@ai-sdk/openai';
import * as ai from 'ai';
import { z } from 'zod';

const { MODEL, WRAP } = process.env;
const { wrapAISDK, wrapModel } = WRAP === undefined ? {} : await import('runspan/ai');
const sdk = WRAP === 'sdk' ? wrapAISDK(ai) : ai;
const openai = createOpenAI({ baseURL: MODEL, apiKey: 'key' });
const chat = (name) => (WRAP === 'model' ? wrapModel(openai.chat(name)) : openai.chat(name));
const print = (...values) => console.log(JSON.stringify(values));

const inputSchema = z.object({ city: z.string() });
/** Executed here. Calls a model below its own run. */
const weather = ai.tool({
  inputSchema,
  execute: async ({ city }, { toolCallId }) => {
    const { text } = await sdk.generateText({ model: chat('inner'), prompt: `Is ${city} wet?` });
    return { city, toolCallId, text };
  },
});
const failing = ai.tool({
  inputSchema,
  execute: async () => {
    throw new RangeError('no barometer');
  },
});
const umbrella = ai.tool({ inputSchema, execute: ({ city }) => `for ${city}` });
/** Executed by the client of the application. */
const locate = ai.tool({ inputSchema });
const asked = { model: chat('gpt'), prompt: 'Rain?', maxRetries: 0 };
const inSteps = (tools) => ({ ...asked, tools, stopWhen: ai.isStepCount(3), instructions: 'Be short.' });
const failed = ({ name, message }) => print(name, message);

async function read(options) {
  const result = sdk.streamText({ ...options, onError: ({ error }) => failed(error) });
  try {
    for await (const word of result.textStream) print(word);
    print(await result.finishReason);
  } catch (error) {
    failed(error);
  }
}

async function readOne() {
  const reader = sdk.streamText({ ...asked, model: chat('long') }).textStream.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return value;
}

const PARTS = {
  async text() {
    const { text, steps } = await sdk.generateText({
      ...inSteps({ weather }),
      temperature: 0.5,
      telemetry: { functionId: 'forecast' },
    });
    print(text, steps.length);
  },
  stream: () => read(inSteps({ weather })),
  async tools() {
    for (const tools of [{ failing }, { locate }]) {
      print((await sdk.generateText(inSteps(tools))).content.map(({ type }) => type));
      await read(inSteps(tools));
    }
  },
  async embeddings() {
    print((await sdk.embed({ model: openai.embedding('emb'), value: 'a' })).embedding);
    print((await sdk.embedMany({ model: openai.embedding('emb'), values: ['a', 'b'] })).embeddings);
  },
  async errors() {
    await sdk.generateText({ ...asked, model: chat('broken') }).catch(failed);
    await read({ ...asked, model: chat('broken') });
    await read({ ...asked, model: chat('cut') });
  },
  async abort() {
    const controller = new AbortController();
    const result = sdk.streamText({ ...asked, model: chat('endless'), abortSignal: controller.signal });
    let text = '';
    for await (const word of result.textStream) {
      text += word;
      if (text === 'It is raining.') controller.abort();
    }
    print(text);
    const silent = { ...asked, model: chat('silent'), abortSignal: AbortSignal.timeout(50) };
    await sdk.generateText(silent).catch(failed);
  },
  /** Stops reading a streamed text, without an abort. */
  async leave() {
    const word = await readOne();
    // Only the garbage collector tells that no consumer is left.
    for (let turn = 0; turn < 20; turn++) {
      await new Promise(setImmediate);
      gc();
    }
    print(word);
    process.exit();
  },
  async agent() {
    const telemetry = { functionId: 'forecast' };
    const agent = new sdk.ToolLoopAgent({ id: 'forecaster', model: chat('gpt'), tools: { weather }, telemetry });
    print((await agent.generate({ prompt: 'Rain?' })).text);
    const { textStream } = await agent.stream({ prompt: 'Rain?' });
    for await (const word of textStream) print(word);
  },
  async hidden() {
    for (const setting of [{ recordInputs: false }, { recordOutputs: false }, { isEnabled: false }]) {
      print((await sdk.generateText({ ...inSteps({ umbrella }), telemetry: setting })).text);
    }
  },
  async parallel() {
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, at) =>
        sdk.generateText({ ...inSteps({ weather }), prompt: `Rain ${at}?`, telemetry: { functionId: `f${at}` } }),
      ),
    );
    print(answers.map(({ steps }) => steps.length));
  },
};

for (const part of process.argv.slice(2)) await PARTS[part]();
