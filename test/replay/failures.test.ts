// Model calls that fail in a replay as they failed when they were recorded.

import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { streamText } from 'ai';
import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { wrapModel } from '#src/integrations/ai-sdk/model.ts';
import { wrapOpenAI } from '#src/integrations/openai/client.ts';
import { replay } from '#src/replay/run-replay.ts';
import type { RecordedRun } from '#src/testing/record-runs.ts';
import { startLocalModel } from '../support/local-model/server.js';
import { fixtureFile, recordedProgram } from './recorded-fixture.ts';

/** Reads a stream until its end or its error. */
type Program = (url: string, model: string) => Promise<void>;

const messages = [{ role: 'user' as const, content: 'What is tea?' }];

async function read(chunks: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of chunks);
}

const PROGRAMS: Readonly<Record<string, Program>> = {
  async openai(url, model) {
    const client = new OpenAI({ apiKey: 'none', baseURL: `${url}/v1`, maxRetries: 1 });
    await read(await client.chat.completions.create({ model, messages, stream: true }));
  },
  async wrapped(url, model) {
    const client = wrapOpenAI(new OpenAI({ apiKey: 'none', baseURL: `${url}/v1`, maxRetries: 1 }));
    await read(await client.chat.completions.create({ model, messages, stream: true }));
  },
  async responses(url, model) {
    const client = new OpenAI({ apiKey: 'none', baseURL: `${url}/v1`, maxRetries: 0 });
    await read(await client.responses.create({ model, input: 'What is tea?', stream: true }));
  },
  async anthropic(url, model) {
    const client = new Anthropic({ apiKey: 'none', baseURL: url, maxRetries: 0 });
    await read(await client.messages.create({ model, max_tokens: 100, messages, stream: true }));
  },
  async 'ai-sdk'(url, model) {
    const { chat } = createOpenAI({ apiKey: 'none', baseURL: `${url}/v1` });
    await read(streamText({ model: wrapModel(chat(model)), messages, maxRetries: 0, onError() {} }).fullStream);
  },
};

/** The model calls with their outputs, and with the name and message of their errors. */
function callsIn(runs: readonly Pick<RecordedRun, 'run_type' | 'outputs' | 'error'>[]) {
  return runs
    .filter(({ run_type }) => run_type === 'llm')
    .map(({ outputs, error }) => ({ outputs, error: error?.split('\n', 1)[0] }));
}

async function closedServer(): Promise<string> {
  const { url, close } = await startLocalModel();
  await close();
  return url;
}

const MODELS = ['fail-500', 'fail-mid-stream', 'drop-mid-stream', 'no service'];
const CASES = Object.keys(PROGRAMS).flatMap((sdk) => MODELS.map((model): [string, string] => [sdk, model]));

// The local model has no error event of the responses.
test.each(CASES.filter((names) => names.join() !== 'responses,fail-mid-stream'))(
  'a stream of %s fails as it was recorded: %s',
  async (sdk, model) => {
    const service = await startLocalModel();
    const url = model === 'no service' ? await closedServer() : service.url;
    const program = PROGRAMS[sdk] as Program;
    const run = () => traceable(() => program(url, model).catch(() => {}), { name: 'agent' })();
    const recorded = await recordedProgram(run).finally(service.close);
    const file = fixtureFile(recorded);
    const { runs, notes } = await replay(file, { run });
    expect(notes).toEqual([]);
    expect(callsIn(runs)).toEqual(callsIn(recorded));
    expect(callsIn(runs).at(-1)?.error).toEqual(expect.any(String));
  },
);
