import { type Fields, fieldsOf, listOf, sumOfCounts } from '../../payload/fields.ts';
import type { UsageMetadata } from '../../payload/usage.ts';
import { readUsage, type UsagePaths } from '../usage.ts';

/**
 * https://docs.claude.com/en/docs/build-with-claude/prompt-caching
 *
 * The names in camel case are those of the Claude Agent SDK.
 */
const USAGE: UsagePaths = {
  input_tokens: ['input_tokens', 'inputTokens'],
  output_tokens: ['output_tokens', 'outputTokens'],
  outside: ['cached'],
  input_token_details: {
    cache_read: ['cache_read_input_tokens', 'cacheReadInputTokens'],
    cache_creation: ['cache_creation_input_tokens', 'cacheCreationInputTokens'],
    ephemeral_5m_input_tokens: ['cache_creation.ephemeral_5m_input_tokens', 'cacheCreationEphemeral5mInputTokens'],
    ephemeral_1hr_input_tokens: ['cache_creation.ephemeral_1h_input_tokens', 'cacheCreationEphemeral1hInputTokens'],
  },
  output_token_details: { reasoning: ['output_tokens_details.thinking_tokens'] },
};

/**
 * Reads the usage of a message. Its counts exclude the tokens of compactions. Tokens of other `iterations` are included, or
 * belong to another model with other prices.
 */
export function anthropicUsage(usage: unknown): UsageMetadata | undefined {
  const compactions = listOf(fieldsOf(usage).iterations).map(fieldsOf);
  const all = compactions.filter(({ type }) => type === 'compaction').reduce(sumOfCounts, fieldsOf(usage));
  return readUsage(all, USAGE);
}

/** Reads the usage of all models in a message of the type `result` of the Claude Agent SDK. */
export function agentUsage({ modelUsage, total_cost_usd }: Fields): UsageMetadata | undefined {
  const counts = Object.values(fieldsOf(modelUsage)).map(fieldsOf).reduce(sumOfCounts, {});
  return readUsage({ ...counts, total_cost_usd }, USAGE);
}
