import type { UsageMetadata } from '../run/record.ts';
import { completeUsage } from '../run/run-fields.ts';
import { defined, type Fields, fieldsOf, numberOf } from './fields.ts';

/**
 * The token counts of one model call. Three shapes are in use: `promptTokens` (4), `inputTokens` with
 * `cachedInputTokens` beside it (5), and `inputTokens.total` with its parts (6 and later). The first two tell what was
 * written to a cache, and the first what was read from one, in the provider's own metadata alone.
 */
export function usageOf(given: unknown, providerMetadata: unknown): UsageMetadata | undefined {
  const usage = fieldsOf(given);
  const input = fieldsOf(usage.inputTokens);
  const output = fieldsOf(usage.outputTokens);
  const { openai, anthropic } = providersOf(providerMetadata);
  const read = first(
    input.cacheRead,
    usage.cachedInputTokens,
    openai.cachedPromptTokens,
    anthropic.cacheReadInputTokens,
  );
  const written = first(input.cacheWrite, anthropic.cacheCreationInputTokens);
  const reasoning = first(output.reasoning, usage.reasoningTokens, openai.reasoningTokens);
  const told = first(input.total, usage.inputTokens, usage.promptTokens, usage.tokens);
  // Anthropic counts cached tokens apart; since 6 the SDK has added them up.
  const isApart = told !== undefined && input.total === undefined && anthropic.cacheCreationInputTokens !== undefined;
  const inputTokens = isApart ? told + (read ?? 0) + (written ?? 0) : told;
  const outputTokens = first(output.total, usage.outputTokens, usage.completionTokens);
  if (inputTokens === undefined && outputTokens === undefined) return undefined;
  const durations = fieldsOf(fieldsOf(anthropic.usage).cache_creation);
  const found = defined({
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    total_tokens: isApart ? undefined : numberOf(usage.totalTokens),
    input_token_details: defined({
      cache_read: read,
      cache_creation: written,
      ephemeral_5m_input_tokens: numberOf(durations.ephemeral_5m_input_tokens),
      ephemeral_1hr_input_tokens: numberOf(durations.ephemeral_1h_input_tokens),
    }),
    output_token_details: defined({ reasoning }),
  }) as UsageMetadata;
  return completeUsage(found, openai.serviceTier);
}

function providersOf(providerMetadata: unknown): { openai: Fields; anthropic: Fields } {
  const { openai, anthropic } = fieldsOf(providerMetadata);
  return { openai: fieldsOf(openai), anthropic: fieldsOf(anthropic) };
}

function first(...values: readonly unknown[]): number | undefined {
  for (const value of values) if (numberOf(value) !== undefined) return numberOf(value);
  return undefined;
}
