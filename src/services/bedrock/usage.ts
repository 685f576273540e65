import { fieldsOf, listOf } from '../../payload/fields.ts';
import type { UsageMetadata } from '../../payload/usage.ts';
import { readUsage, type UsagePaths } from '../usage.ts';

/**
 * `inputTokens` exclude cached tokens, but those of some models include them, and the total shows it:
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html
 */
const USAGE: UsagePaths = {
  input_tokens: ['inputTokens'],
  output_tokens: ['outputTokens'],
  total_tokens: ['totalTokens'],
  outside: ['cached'],
  input_token_details: {
    // The second name is that of Amazon Nova.
    cache_read: ['cacheReadInputTokens', 'cacheReadInputTokenCount'],
    cache_creation: ['cacheWriteInputTokens', 'cacheWriteInputTokenCount'],
    ephemeral_5m_input_tokens: ['writes.5m'],
    ephemeral_1hr_input_tokens: ['writes.1h'],
  },
};

/** Reads the usage of `Converse`. */
export function bedrockUsage(usage: unknown, serviceTier?: unknown): UsageMetadata | undefined {
  const details = listOf(fieldsOf(usage).cacheDetails).map(fieldsOf);
  const writes = Object.fromEntries(details.map(({ ttl, inputTokens }) => [ttl, inputTokens]));
  return readUsage({ ...fieldsOf(usage), writes }, USAGE, serviceTier);
}

/** Meta Llama, Amazon Titan, and the metrics that Bedrock adds to each response of `InvokeModel`. */
const INVOCATION: UsagePaths = {
  input_tokens: ['prompt_token_count', 'inputTextTokenCount', 'inputTokenCount'],
  output_tokens: ['generation_token_count', 'totalOutputTextTokenCount', 'tokenCount', 'outputTokenCount'],
};

export function invocationUsage(answer: unknown): UsageMetadata | undefined {
  return readUsage(answer, INVOCATION);
}
