import { defined, definedOrNone, type Fields, fieldsOf, firstText, isFields } from '../../payload/fields.ts';
import type { UsageMetadata } from '../../payload/usage.ts';
import { wholeUsage } from '../any.ts';
import { costInMetadata, reportedCost } from '../cost.ts';
import { readUsage, type UsagePaths } from '../usage.ts';

/**
 * The paths of token counts in all AI SDK versions. Version 4 reports `promptTokens`. Version 5 reports `inputTokens` and
 * `cachedInputTokens`. Models of later versions report an `inputTokens` object with a total, and their functions
 * `inputTokenDetails`. Mastra's names are `inputDetails` and `outputDetails`. Embeddings report `tokens`. Versions 4 and 5
 * report some counts only in the provider metadata.
 */
const USAGE: UsagePaths = {
  input_tokens: ['inputTokens.total', 'inputTokens', 'promptTokens', 'tokens', 'input_tokens'],
  output_tokens: ['outputTokens.total', 'outputTokens', 'completionTokens', 'output_tokens'],
  total_tokens: ['totalTokens', 'tokens', 'total_tokens'],
  input_token_details: {
    cache_read: [
      'inputTokens.cacheRead',
      'inputTokenDetails.cacheReadTokens',
      'inputDetails.cacheRead',
      'cachedInputTokens',
      'metadata.openai.cachedPromptTokens',
      'metadata.anthropic.cacheReadInputTokens',
    ],
    cache_creation: [
      'inputTokens.cacheWrite',
      'inputTokenDetails.cacheWriteTokens',
      'inputDetails.cacheWrite',
      'metadata.anthropic.cacheCreationInputTokens',
    ],
    ephemeral_5m_input_tokens: ['inputDetails.cacheWrite5m'],
    ephemeral_1hr_input_tokens: ['inputDetails.cacheWrite1h'],
  },
  output_token_details: {
    reasoning: [
      'outputTokens.reasoning',
      'outputTokenDetails.reasoningTokens',
      'outputDetails.reasoning',
      'reasoningTokens',
      'metadata.openai.reasoningTokens',
    ],
  },
};

/**
 * Reads the usage of a model call. The service's own usage, if the SDK passes it on, wins over the counts that the SDK has
 * derived from it.
 */
export function aiSdkUsage(
  given: unknown,
  metadata: unknown,
  serviceTier: string | undefined = aiSdkTier(metadata),
): UsageMetadata | undefined {
  const usage = fieldsOf(given);
  const { usage: ofAnthropic, cacheCreationInputTokens } = fieldsOf(fieldsOf(metadata).anthropic);
  // The metadata may be of the first chunk or of the last step.
  const ofCall = fieldsOf(ofAnthropic).output_tokens === outputOf(usage) ? wholeUsage(ofAnthropic) : undefined;
  const own = wholeUsage(usage.raw, serviceTier) ?? ofCall;
  const total_cost = own?.total_cost ?? costInMetadata(metadata) ?? reportedCost(fieldsOf(usage.raw));
  const { inputTokenDetails = usage['inputTokenDetails.noCacheTokens'] } = usage;
  const isSince6 = (fieldsOf(usage.inputTokens).total ?? inputTokenDetails) !== undefined;
  // Before AI SDK 6, the counts of the Anthropic provider and its total exclude cached tokens.
  const excludesCached = !isSince6 && cacheCreationInputTokens !== undefined;
  const paths: UsagePaths = excludesCached ? { ...USAGE, total_tokens: [], outside: ['cached'] } : USAGE;
  const counts = own ?? readUsage({ ...usage, metadata }, paths, serviceTier);
  return definedOrNone({ ...counts, ...defined({ total_cost }) });
}

function outputOf({ outputTokens, completionTokens }: Fields): unknown {
  return isFields(outputTokens) ? outputTokens.total : (outputTokens ?? completionTokens);
}

/** Returns the service tier in the provider metadata, which has prices of its own. */
export function aiSdkTier(metadata: unknown): string | undefined {
  return firstText(fieldsOf(fieldsOf(metadata).openai).serviceTier);
}
