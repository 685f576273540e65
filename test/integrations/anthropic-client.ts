import Anthropic, { type ClientOptions } from '@anthropic-ai/sdk';
import { afterAll, beforeAll } from 'vitest';
import { type LocalModel, startLocalModel } from '../../examples/local-model/server.js';

/** A model for the tests of one file. */
export function localModel(): () => LocalModel {
  let model: LocalModel;
  beforeAll(async () => {
    model = await startLocalModel();
  });
  afterAll(() => model.close());
  return () => model;
}

/** A client that asks it once, and says nothing on the console. */
export function makeClient({ url }: LocalModel, options: ClientOptions = {}): Anthropic {
  return new Anthropic({ apiKey: 'a-key', baseURL: url, maxRetries: 0, logLevel: 'off', ...options });
}

/** The parameters of a question. */
export function ask(content: string, more: Partial<Anthropic.MessageCreateParamsNonStreaming> = {}) {
  return { model: 'small', max_tokens: 100, messages: [{ role: 'user' as const, content }], ...more };
}

export const WEATHER_TOOL: Anthropic.Tool = {
  name: 'weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } },
};

/** Everything that a stream gives. */
export async function allOf<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of stream) items.push(item);
  return items;
}
