import { describe, expect, it } from 'vitest';
import { usageOf } from '../../src/integrations/ai-sdk/answer.ts';

describe('the tokens of a call', () => {
  it.each([
    [
      '4, of OpenAI',
      { promptTokens: 20, completionTokens: 9 },
      { openai: { cachedPromptTokens: 8, reasoningTokens: 3, acceptedPredictionTokens: 1 } },
      [20, 9, 29, { cache_read: 8 }, { reasoning: 3 }],
    ],
    [
      '4, of Anthropic, which counts cached tokens apart',
      { promptTokens: 5, completionTokens: 9 },
      { anthropic: { cacheCreationInputTokens: 10, cacheReadInputTokens: 100 } },
      [115, 9, 124, { cache_read: 100, cache_creation: 10 }, undefined],
    ],
    [
      '5',
      { inputTokens: 20, outputTokens: 9, totalTokens: 30, reasoningTokens: 3, cachedInputTokens: 8 },
      { openai: { responseId: 'r' } },
      [20, 9, 30, { cache_read: 8 }, { reasoning: 3 }],
    ],
    [
      '5, of Anthropic, which counts cached tokens apart',
      { inputTokens: 5, outputTokens: 9, totalTokens: 14, cachedInputTokens: 100 },
      { anthropic: { cacheCreationInputTokens: 10 } },
      [115, 9, 124, { cache_read: 100, cache_creation: 10 }, undefined],
    ],
    [
      '6 and later',
      {
        inputTokens: { total: 115, noCache: 5, cacheRead: 100, cacheWrite: 10 },
        outputTokens: { total: 9, text: 6, reasoning: 3 },
      },
      { anthropic: { cacheCreationInputTokens: 10 } },
      [115, 9, 124, { cache_read: 100, cache_creation: 10 }, { reasoning: 3 }],
    ],
  ])('are read from the shape of %s', (_, usage, metadata, expected) => {
    const [input_tokens, output_tokens, total_tokens, input_token_details, output_token_details] = expected;
    const all = { input_tokens, output_tokens, total_tokens, input_token_details, output_token_details };

    expect(usageOf(usage, metadata)).toEqual(JSON.parse(JSON.stringify(all)));
  });

  it('are those of the input alone for vectors', () => {
    expect(usageOf({ tokens: 4 }, undefined)).toEqual({ input_tokens: 4, total_tokens: 4 });
  });

  it('leave out what a provider has not told', () => {
    expect(usageOf({ promptTokens: Number.NaN, completionTokens: 2 }, {})).toEqual({
      output_tokens: 2,
      total_tokens: 2,
    });
    expect(usageOf({ inputTokens: { total: undefined }, outputTokens: {} }, {})).toBeUndefined();
  });

  it.each([[undefined], [null], [7], ['x'], [[]], [{ inputTokens: 'many' }]])('are none in %j', (usage) => {
    expect(usageOf(usage, usage)).toBeUndefined();
  });
});
