// Programs with the bare or the wrapped SDK: `node ai.mjs bare|wrapped <deed>`.
import * as ai from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { wrapAISDK } from 'runspan/ai';
import { recordRuns } from 'runspan/testing';

const [kind, deed] = process.argv.slice(2);
const recorder = recordRuns();
const sdk = kind === 'wrapped' ? wrapAISDK(ai) : ai;

const failing = () =>
  new MockLanguageModelV3({
    doGenerate: async () => {
      throw new RangeError('out of tune');
    },
    doStream: async () => {
      throw new RangeError('out of tune');
    },
  });

/** Streams two words and then never ends. */
const stalling = () =>
  new MockLanguageModelV3({
    doStream: async () => {
      const words = ['It ', 'is '].map((delta) => ({ type: 'text-delta', id: '1', delta }));
      const parts = [{ type: 'stream-start', warnings: [] }, { type: 'text-start', id: '1' }, ...words];
      const pull = (controller) => (parts.length > 0 ? controller.enqueue(parts.shift()) : new Promise(() => {}));
      return { stream: new ReadableStream({ pull }) };
    },
  });

const deeds = {
  'leaves a rejection unhandled': () => {
    void sdk.generateText({ model: failing(), prompt: 'Sing.', maxRetries: 0 });
  },
  'reads a stream that fails, without onError': async () => {
    for await (const _ of sdk.streamText({ model: failing(), prompt: 'Sing.', maxRetries: 0 }).textStream);
  },
  'awaits the text of a stream that fails': async () => {
    await sdk.streamText({ model: failing(), prompt: 'Sing.', maxRetries: 0 }).text;
  },
  'never reads a stream that fails': async () => {
    sdk.streamText({ model: failing(), prompt: 'Sing.', maxRetries: 0 });
  },
  'drops a stream': async () => {
    sdk.streamText({ model: stalling(), prompt: 'Sing.' });
    await new Promise((resolve) => setImmediate(resolve));
    for (let round = 0; round < 50 && recorder.runs.some((run) => run.end_time === undefined); round++) {
      globalThis.gc();
      await new Promise((resolve) => setImmediate(resolve));
    }
    console.log(
      JSON.stringify(
        recorder.runs.map(({ name, end_time, extra }) => [name, end_time !== undefined, extra?.runspan_end_reason]),
      ),
    );
  },
};

await deeds[deed]();
