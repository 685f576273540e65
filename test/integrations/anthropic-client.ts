import Anthropic, { type ClientOptions } from '@anthropic-ai/sdk';
import { afterAll, beforeAll } from 'vitest';
import { type LocalModel, startLocalModel } from '../support/local-model/server.js';

/** Starts the local model server for the tests of one file. */
export function localModel(): () => LocalModel {
  let model: LocalModel;
  beforeAll(async () => {
    model = await startLocalModel();
  });
  afterAll(() => model.close());
  return () => model;
}

/** Returns a client that does not retry and does not log. */
export function makeClient({ url }: LocalModel, options: ClientOptions = {}): Anthropic {
  return new Anthropic({ apiKey: 'a-key', baseURL: url, maxRetries: 0, logLevel: 'off', ...options });
}

/** Returns the body of a request. */
export function ask(content: string, more: Partial<Anthropic.MessageCreateParamsNonStreaming> = {}) {
  return { model: 'small', max_tokens: 100, messages: [{ role: 'user' as const, content }], ...more };
}

export const WEATHER_TOOL: Anthropic.Tool = {
  name: 'weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } },
};
