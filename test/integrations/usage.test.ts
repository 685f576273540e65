// Token counts and costs, as the documentation of each service describes them. Token details have the names used by
// LangSmith's wrappers (langsmith 0.10.5), so that its prices apply.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { startRun, type UsageMetadata } from '#src/index.ts';
import { usageOf } from '#src/integrations/ai-sdk/answer.ts';
import { messageCall } from '#src/integrations/anthropic/calls.ts';
import { openaiCalls } from '#src/integrations/openai/calls.ts';
import type { Attributes } from '#src/otel/conventions/values.ts';
import { record } from '../instrument/recorder.ts';
import { mapped } from '../otel/mapped.ts';

const openai = (usage: object, service_tier?: string) =>
  openaiCalls.chat.read({ choices: [], usage, service_tier }).usage;
const anthropic = (usage: object) => messageCall.read({ content: [], usage }).usage;

const chat = {
  prompt_tokens: 100,
  completion_tokens: 50,
  total_tokens: 150,
  prompt_tokens_details: { cached_tokens: 40 },
  completion_tokens_details: { reasoning_tokens: 20, accepted_prediction_tokens: 3, rejected_prediction_tokens: 4 },
};
const cached = { cached_tokens: 4, cache_write_tokens: 3 };
const counts = (input_tokens: number, output_tokens: number, total_tokens = input_tokens + output_tokens) => ({
  input_tokens,
  output_tokens,
  total_tokens,
});
const predicted = { accepted_prediction: 3, rejected_prediction: 4 };
const plain = {
  ...counts(100, 50),
  input_token_details: { cache_read: 40 },
  output_token_details: { reasoning: 20, ...predicted },
};
const written = { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 3 };
const durations = { ephemeral_5m_input_tokens: 2, ephemeral_1hr_input_tokens: 3 };
const message = { input_tokens: 7, output_tokens: 1, cache_read_input_tokens: 4 };
const apart = { ...counts(115, 9), input_token_details: { cache_read: 100, cache_creation: 10 } };
const major6 = { inputTokens: { total: 16, cacheRead: 4, cacheWrite: 5 }, outputTokens: { total: 3, reasoning: 1 } };

test.each<[string, unknown, object | undefined]>([
  ['OpenAI, tier `default`', openai(chat, 'default'), plain],
  [
    'OpenAI, tier `flex`',
    openai(chat, 'flex'),
    {
      ...counts(100, 50),
      input_token_details: { flex: 60, flex_cache_read: 40 },
      output_token_details: { flex: 30, flex_reasoning: 20, ...predicted },
    },
  ],
  [
    'OpenAI, tier `priority`',
    openai({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }, 'priority'),
    { ...counts(10, 5), input_token_details: { priority: 10 }, output_token_details: { priority: 5 } },
  ],
  // https://openrouter.ai/docs/use-cases/usage-accounting
  ['OpenRouter, with its cost', openai({ ...chat, cost: 0.0125 }), { ...plain, total_cost: 0.0125 }],
  ['OpenAI, without a total', openai({ prompt_tokens: 10, completion_tokens: 5 }), counts(10, 5)],
  ['OpenAI, embeddings', openai({ prompt_tokens: 4, total_tokens: 4 }), counts(4, 0)],
  [
    'OpenAI, cache writes of a chat completion',
    openai({ prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: cached }),
    { ...counts(9, 1), input_token_details: { cache_read: 4, cache_creation: 3 } },
  ],
  [
    'OpenAI, cache writes of a response',
    openai({ input_tokens: 9, output_tokens: 1, input_tokens_details: cached }),
    { ...counts(9, 1), input_token_details: { cache_read: 4, cache_creation: 3 } },
  ],
  ['OpenAI, no counts', openai({}), undefined],
  // https://docs.claude.com/en/docs/build-with-claude/prompt-caching#1-hour-cache-duration
  [
    'Anthropic, cache writes of both durations',
    anthropic({ ...message, cache_creation_input_tokens: 5, cache_creation: written }),
    { ...counts(16, 1), input_token_details: { cache_read: 4, ...durations } },
  ],
  [
    'Anthropic, cache writes of unknown duration',
    anthropic({ ...message, cache_creation_input_tokens: 5 }),
    { ...counts(16, 1), input_token_details: { cache_read: 4, cache_creation: 5 } },
  ],
  [
    'Anthropic, cache writes of one known duration',
    anthropic({ ...message, cache_creation_input_tokens: 9, cache_creation: { ephemeral_1h_input_tokens: 3 } }),
    { ...counts(20, 1), input_token_details: { cache_read: 4, ephemeral_1hr_input_tokens: 3, cache_creation: 6 } },
  ],
  // The tokens of a compaction are not in the top-level fields, see `BetaUsage.iterations` of the SDK.
  [
    'Anthropic, a compaction, and an iteration of another model',
    anthropic({
      input_tokens: 5,
      output_tokens: 3,
      cache_read_input_tokens: 2,
      iterations: [
        { type: 'compaction', input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 7 },
        { type: 'message', input_tokens: 5, output_tokens: 3, cache_read_input_tokens: 2 },
        { type: 'advisor_message', model: 'another', input_tokens: 50, output_tokens: 50 },
      ],
    }),
    { ...counts(114, 23), input_token_details: { cache_read: 9 } },
  ],
  ['Anthropic, a stream without a start', anthropic({ output_tokens: 3 }), counts(0, 3)],
  [
    'AI SDK 4 with OpenAI',
    usageOf({ promptTokens: 20, completionTokens: 9 }, { openai: { cachedPromptTokens: 8, reasoningTokens: 3 } }),
    { ...counts(20, 9), input_token_details: { cache_read: 8 }, output_token_details: { reasoning: 3 } },
  ],
  [
    'AI SDK 4 with Anthropic, which excludes cached tokens',
    usageOf(
      { promptTokens: 5, completionTokens: 9 },
      { anthropic: { cacheCreationInputTokens: 10, cacheReadInputTokens: 100 } },
    ),
    apart,
  ],
  [
    'AI SDK 5',
    usageOf(
      { inputTokens: 20, outputTokens: 9, totalTokens: 30, reasoningTokens: 3, cachedInputTokens: 8 },
      { openai: { responseId: 'r' } },
    ),
    { ...counts(20, 9, 30), input_token_details: { cache_read: 8 }, output_token_details: { reasoning: 3 } },
  ],
  [
    'AI SDK 5 with Anthropic, which excludes cached tokens',
    usageOf(
      { inputTokens: 5, outputTokens: 9, totalTokens: 14, cachedInputTokens: 100 },
      { anthropic: { cacheCreationInputTokens: 10 } },
    ),
    apart,
  ],
  [
    'AI SDK 6 with Anthropic',
    usageOf(
      {
        inputTokens: { total: 115, noCache: 5, cacheRead: 100, cacheWrite: 10 },
        outputTokens: { total: 9, text: 6, reasoning: 3 },
      },
      { anthropic: { cacheCreationInputTokens: 10 } },
    ),
    { ...apart, output_token_details: { reasoning: 3 } },
  ],
  [
    'AI SDK 6, cache writes by duration',
    usageOf(major6, { anthropic: { usage: { cache_creation: written } } }),
    { ...counts(16, 3), input_token_details: { cache_read: 4, ...durations }, output_token_details: { reasoning: 1 } },
  ],
  [
    'AI SDK 6, tier `flex`',
    usageOf(major6, { openai: { serviceTier: 'flex' } }),
    {
      ...counts(16, 3),
      input_token_details: { flex: 12, flex_cache_read: 4, cache_creation: 5 },
      output_token_details: { flex: 2, flex_reasoning: 1 },
    },
  ],
  ['AI SDK, embeddings', usageOf({ tokens: 4 }, undefined), { input_tokens: 4, total_tokens: 4 }],
  [
    'AI SDK, an unknown count',
    usageOf({ promptTokens: Number.NaN, completionTokens: 2 }, {}),
    { output_tokens: 2, total_tokens: 2 },
  ],
  ['AI SDK, no counts', usageOf({ inputTokens: { total: undefined }, outputTokens: {} }, {}), undefined],
  ...[undefined, null, 7, 'x', [], { inputTokens: 'many' }].map((usage): [string, unknown, undefined] => [
    `AI SDK, ${JSON.stringify(usage)}`,
    usageOf(usage, usage),
    undefined,
  ]),
])('the token counts of %s', (_, usage, expected) => {
  expect(usage).toEqual(expected);
});

/** The usage of one call as each way of recording reports it: an application, three SDKs, and spans. */
function everyUsage(input: number, output: number, total: number | undefined, read: number, written: number) {
  const recorder = record();
  const run = startRun({ name: 'call', runType: 'llm' });
  run.set({
    usage: {
      input_tokens: input,
      output_tokens: output,
      ...(total !== undefined && { total_tokens: total }),
      input_token_details: { cache_read: read, cache_creation: written },
    },
  });
  run.end();
  const ofSpan = (attributes: Attributes) => mapped(attributes).metadata.usage_metadata;
  return {
    application: recorder.runs[0]?.extra?.metadata?.usage_metadata,
    openai: openai({
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: total,
      prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written },
    }),
    aiSdk: usageOf(
      {
        inputTokens: { total: input, cacheRead: read, cacheWrite: written },
        outputTokens: { total: output },
        totalTokens: total,
      },
      {},
    ),
    genAi: ofSpan({
      'gen_ai.operation.name': 'chat',
      'gen_ai.usage.input_tokens': input,
      'gen_ai.usage.output_tokens': output,
      'gen_ai.usage.total_tokens': total,
      'gen_ai.usage.cache_read.input_tokens': read,
      'gen_ai.usage.cache_write.input_tokens': written,
    }),
    openInference: ofSpan({
      'openinference.span.kind': 'LLM',
      'llm.token_count.prompt': input,
      'llm.token_count.completion': output,
      'llm.token_count.total': total,
      'llm.token_count.prompt_details.cache_read': read,
      'llm.token_count.prompt_details.cache_write': written,
    }),
    aiSdkSpan: ofSpan({
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.usage.inputTokens': input,
      'ai.usage.outputTokens': output,
      'ai.usage.totalTokens': total,
      'ai.usage.inputTokenDetails.cacheReadTokens': read,
      'ai.usage.inputTokenDetails.cacheWriteTokens': written,
    }),
  };
}

test.each<[string, Parameters<typeof everyUsage>, Parameters<typeof counts>]>([
  ['exclude cached tokens', [12, 5, undefined, 100, 0], [112, 5, 117]],
  ['exclude cached tokens, as does the total', [12, 5, 17, 100, 0], [112, 5, 117]],
  ['exclude cached tokens, but the total includes them', [12, 5, 120, 100, 0], [112, 5, 120]],
  ['exclude tokens that are read from and written to a cache', [12, 5, 17, 8, 7], [27, 5, 32]],
  ['include cached tokens', [12, 5, 17, 8, 4], [12, 5, 17]],
  ['include cached tokens, and the total is too small', [12, 5, 10, 8, 4], [12, 5, 17]],
])('usage whose input tokens %s is the same however it is recorded', (_, given, expected) => {
  const details = { cache_read: given[3], cache_creation: given[4] };
  for (const [way, usage] of Object.entries(everyUsage(...given)))
    expect([way, usage]).toEqual([way, { ...counts(...expected), input_token_details: details }]);
});

test('any usage is consistent, never less than reported, and the same however it is recorded', () => {
  const tokens = fc.oneof(fc.nat(20), fc.nat(1_000_000_000));
  fc.assert(
    fc.property(
      tokens,
      tokens,
      fc.option(tokens, { nil: undefined }),
      tokens,
      tokens,
      (input, output, total, read, written) => {
        const { application, ...others } = everyUsage(input, output, total, read, written);
        for (const usage of Object.values(others)) expect(usage).toEqual(application);
        const usage = application as UsageMetadata;
        expect(usage.input_token_details).toEqual({ cache_read: read, cache_creation: written });
        // Counts above 1,000,000,000 are not recorded.
        const { input_tokens = input + read + written, output_tokens, total_tokens } = usage;
        expect(output_tokens).toBe(output);
        expect([input, input + read + written]).toContain(input_tokens);
        expect(input_tokens).toBeGreaterThanOrEqual(read + written);
        const parts = (usage.input_tokens ?? 0) + output;
        expect(total_tokens).toBe(
          Math.max(parts, total ?? 0) > 1_000_000_000 ? undefined : Math.max(parts, total ?? 0),
        );
      },
    ),
  );
});

const alone = { input_tokens: 3, total_tokens: 3, total_cost: 0.5 };

test.each([1_000_000_001, 1e21, -1, 1.5])('the token count %s of a service is refused', (invalid) => {
  expect(openai({ prompt_tokens: 3, completion_tokens: invalid, cost: 0.5 })).toEqual(alone);
  expect(openai({ prompt_tokens: invalid, completion_tokens: invalid })).toBeUndefined();
  expect(anthropic({ ...message, cache_read_input_tokens: invalid })).toEqual(counts(7, 1));
});

test.each([1_000_000_001, 1e21, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
  'the token count %s of an application is refused',
  (invalid) => {
    const recorder = record();
    const run = startRun({ name: 'call', runType: 'llm' });
    const { total_tokens: _, ...given } = alone;
    run.set({ usage: { ...given, output_tokens: invalid, output_token_details: { audio: invalid } } });
    run.end();
    expect(recorder.runs[0]?.extra?.metadata?.usage_metadata).toEqual(alone);
  },
);

test.each([-0.5, Number.NaN, Number.POSITIVE_INFINITY])('the cost %s is refused', (cost) => {
  expect(openai({ prompt_tokens: 3, completion_tokens: 1, cost })).toEqual(counts(3, 1));
});

test('usage set by the application gets a total', () => {
  const recorder = record();
  const run = startRun({ name: 'call', runType: 'llm' });
  run.set({ usage: { input_tokens: 3, output_tokens: 5 } });
  run.end();
  expect(recorder.runs[0]?.extra?.metadata?.usage_metadata).toEqual(counts(3, 5));
});
