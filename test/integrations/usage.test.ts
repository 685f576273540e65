// Token counts and costs as the documentation of each service describes them. Token details have the names used by
// LangSmith's wrappers (langsmith 0.10.5), so that its prices apply.
import Anthropic from '@anthropic-ai/sdk';
import { generateText } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { wrapModel } from '../../src/ai.ts';
import { wrapAnthropic } from '../../src/anthropic.ts';
import { startRun } from '../../src/index.ts';
import { wrapOpenAI } from '../../src/openai.ts';
import { record } from '../instrument/recorder.ts';

const messages = [{ role: 'user' as const, content: 'Hi' }];

/** Returns the usage recorded for a chat completion with this response. */
async function openaiUsage(answer: object): Promise<unknown> {
  const recorder = record();
  const fetch = async () => Response.json({ choices: [], ...answer });
  const client = wrapOpenAI(new OpenAI({ apiKey: 'none', fetch, baseURL: 'https://openrouter.ai/api/v1' }));
  await client.chat.completions.create({ model: 'm', messages });
  expect(recorder.runs[0]?.extra?.metadata?.usage_metadata).toEqual(recorder.runs[0]?.outputs?.usage_metadata);
  return recorder.runs[0]?.outputs?.usage_metadata;
}

describe('usage of OpenAI and compatible services', () => {
  const usage = {
    prompt_tokens: 100,
    completion_tokens: 50,
    total_tokens: 150,
    prompt_tokens_details: { cached_tokens: 40 },
    completion_tokens_details: { reasoning_tokens: 20, accepted_prediction_tokens: 3, rejected_prediction_tokens: 4 },
  };
  const counts = { input_tokens: 100, output_tokens: 50, total_tokens: 150 };
  const predicted = { accepted_prediction: 3, rejected_prediction: 4 };
  const plain = {
    ...counts,
    input_token_details: { cache_read: 40 },
    output_token_details: { reasoning: 20, ...predicted },
  };

  test.each<[string, object, object]>([
    ['the tier `default`', { usage, service_tier: 'default' }, plain],
    [
      'the tier `flex`',
      { usage, service_tier: 'flex' },
      {
        ...counts,
        input_token_details: { flex: 60, flex_cache_read: 40 },
        output_token_details: { flex: 30, flex_reasoning: 20, ...predicted },
      },
    ],
    [
      'the tier `priority`',
      { usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }, service_tier: 'priority' },
      {
        input_tokens: 10,
        output_tokens: 5,
        total_tokens: 15,
        input_token_details: { priority: 10 },
        output_token_details: { priority: 5 },
      },
    ],
    // https://openrouter.ai/docs/use-cases/usage-accounting
    ['the cost that OpenRouter adds', { usage: { ...usage, cost: 0.0125 } }, { ...plain, total_cost: 0.0125 }],
    [
      'no total',
      { usage: { prompt_tokens: 10, completion_tokens: 5 } },
      { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
    ],
  ])('with %s', async (_, answer, expected) => {
    expect(await openaiUsage(answer)).toEqual(expected);
  });

  test('of a streamed response uses the service tier of the response', async () => {
    const recorder = record();
    const response = {
      id: 'resp_1',
      object: 'response',
      status: 'completed',
      service_tier: 'flex',
      output: [],
      usage: { input_tokens: 9, output_tokens: 4, total_tokens: 13, input_tokens_details: { cached_tokens: 2 } },
    };
    const event = { type: 'response.completed', sequence_number: 0, response };
    const body = `event: response.completed\ndata: ${JSON.stringify(event)}\n\n`;
    const fetch = async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    const client = wrapOpenAI(new OpenAI({ apiKey: 'none', fetch }));
    for await (const _ of await client.responses.create({ model: 'm', input: 'Hi', stream: true }));
    expect(recorder.runs[0]?.outputs?.usage_metadata).toEqual({
      input_tokens: 9,
      output_tokens: 4,
      total_tokens: 13,
      input_token_details: { flex: 7, flex_cache_read: 2 },
      output_token_details: { flex: 4 },
    });
  });
});

describe('cache writes of Anthropic', () => {
  const written = { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 3 };
  const own = { ephemeral_5m_input_tokens: 2, ephemeral_1hr_input_tokens: 3 };

  // https://docs.claude.com/en/docs/build-with-claude/prompt-caching#1-hour-cache-duration
  test.each<[string, object, object]>([
    ['of both durations', { cache_creation_input_tokens: 5, cache_creation: written }, own],
    ['of no known duration', { cache_creation_input_tokens: 5 }, { cache_creation: 5 }],
    [
      'of one known duration and others',
      { cache_creation_input_tokens: 9, cache_creation: { ephemeral_1h_input_tokens: 3 } },
      { ephemeral_1hr_input_tokens: 3, cache_creation: 6 },
    ],
  ])('%s are distinguished', async (_, cache, details) => {
    const recorder = record();
    const usage = { input_tokens: 7, output_tokens: 1, cache_read_input_tokens: 4, ...cache };
    const fetch = async () => Response.json({ type: 'message', role: 'assistant', content: [], usage });
    const client = wrapAnthropic(new Anthropic({ apiKey: 'none', fetch }));
    await client.messages.create({ model: 'm', max_tokens: 9, messages });
    const total = 7 + 4 + (cache as { cache_creation_input_tokens: number }).cache_creation_input_tokens;
    expect(recorder.runs[0]?.outputs?.usage_metadata).toEqual({
      input_tokens: total,
      output_tokens: 1,
      total_tokens: total + 1,
      input_token_details: { cache_read: 4, ...details },
    });
  });

  test('through the AI SDK are counted by duration, and OpenAI tokens by service tier', async () => {
    const recorder = record();
    const call = async (providerMetadata: object) => {
      const usage = {
        inputTokens: { total: 16, cacheRead: 4, cacheWrite: 5 },
        outputTokens: { total: 3, reasoning: 1 },
      };
      const answer = {
        content: [],
        finishReason: { unified: 'stop', raw: 'stop' },
        usage,
        warnings: [],
        providerMetadata,
      };
      const model = new MockLanguageModelV3({ doGenerate: async () => answer as never });
      await generateText({ model: wrapModel(model), prompt: 'Hi' });
      return recorder.runs.at(-1)?.outputs?.usage_metadata;
    };
    const usage = { cache_creation: written };
    expect(await call({ anthropic: { usage } })).toMatchObject({ input_token_details: { cache_read: 4, ...own } });
    expect(await call({ openai: { serviceTier: 'flex' } })).toMatchObject({
      input_token_details: { flex: 12, flex_cache_read: 4, cache_creation: 5 },
      output_token_details: { flex: 2, flex_reasoning: 1 },
    });
  });
});

test('usage set by the application gets a total', () => {
  const recorder = record();
  const run = startRun({ name: 'call', runType: 'llm' });
  run.set({ usage: { input_tokens: 3, output_tokens: 5 } });
  run.end();
  const usage = { input_tokens: 3, output_tokens: 5, total_tokens: 8 };
  expect(recorder.runs[0]?.extra?.metadata?.usage_metadata).toEqual(usage);
});
