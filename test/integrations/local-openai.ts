import OpenAI, { type ClientOptions } from 'openai';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { wrapOpenAI } from '#src/integrations/openai/client.ts';
import type { RunRecord } from '#src/run/record.ts';
import { record } from '../instrument/recorder.ts';
import { type LocalModel, startLocalModel } from '../support/local-model/server.js';

export { readAll as chunksOf } from '../support/read-all.ts';

export async function localModel(): Promise<LocalModel> {
  const model = await startLocalModel();
  onTestFinished(() => model.close());
  return model;
}

export function sharedModel(): () => LocalModel {
  let model: LocalModel;
  beforeAll(async () => {
    model = await startLocalModel();
  });
  afterAll(() => model.close());
  return () => model;
}

export function bareClient({ url }: LocalModel, options: ClientOptions = {}): OpenAI {
  return new OpenAI({ apiKey: 'none', baseURL: `${url}/v1`, logLevel: 'off', ...options });
}

export async function tracedClient(options?: ClientOptions) {
  const recorder = record();
  const model = await localModel();
  const client = wrapOpenAI(bareClient(model, options));
  return { client, model, recorder, only: () => onlyRun(recorder.runs) };
}

/** Records the runs of the test, also of its model calls with `fetch`. */
export function recordWithFetch() {
  onTestFinished(recordFetch());
  return record();
}

export function onlyRun<Recorded extends RunRecord>(runs: readonly Recorded[]): Recorded {
  const [run] = runs;
  if (run === undefined || runs.length > 1) throw new Error(`expected one run, got ${runs.length}`);
  return run;
}

export const tea = [{ role: 'user' as const, content: 'What is tea?' }];

export const lookUp = {
  type: 'function' as const,
  function: {
    name: 'look_up',
    parameters: { type: 'object', properties: { query: { type: 'string' }, limit: { type: 'integer' } } },
  },
};
