import { type Fields, fieldsOf } from '../payload/fields.ts';
import type { UsageMetadata } from '../payload/usage.ts';
import { anthropicUsage } from './anthropic/usage.ts';
import { bedrockUsage } from './bedrock/usage.ts';
import { cohereUsage } from './cohere/usage.ts';
import { geminiUsage, interactionUsage } from './gemini/usage.ts';
import { ollamaUsage } from './ollama/usage.ts';
import { openaiCounts } from './openai/usage.ts';

type Reader = (usage: Fields, serviceTier?: unknown) => UsageMetadata | undefined;

/** The readers of services, by fields of their usage. The first row that matches decides. */
const READERS: readonly (readonly [fields: readonly string[], read: Reader])[] = [
  [['promptTokenCount', 'totalTokenCount', 'prompt_token_count', 'total_token_count'], geminiUsage],
  [['total_input_tokens', 'total_output_tokens'], interactionUsage],
  [['prompt_eval_count', 'eval_count'], ollamaUsage],
  [['tokens', 'billed_units'], cohereUsage],
  // The AI SDK's own counts, which are those of runs below.
  [['cachedInputTokens', 'inputTokenDetails', 'reasoningTokens'], () => undefined],
  [['inputTokens', 'outputTokens'], bedrockUsage],
];

/** The fields that OpenAI's format has, and gateways add to Anthropic's counts if these include cached tokens. */
const OF_OPENAI: readonly string[] = ['prompt_tokens', 'input_tokens_details', 'prompt_tokens_details', 'total_tokens'];

/** Reads the usage of a service that is not known, as frameworks pass it on. */
export function anyUsage(given: unknown, serviceTier?: unknown): UsageMetadata | undefined {
  const usage = fieldsOf(given);
  const has = (field: string): boolean => usage[field] !== undefined;
  const [, read] = READERS.find(([fields]) => fields.some(has)) ?? [];
  if (read !== undefined) return read(usage, serviceTier);
  return OF_OPENAI.some(has) ? openaiCounts(usage, serviceTier) : anthropicUsage(usage);
}

/** Returns the usage if it has both counts. */
export function wholeUsage(given: unknown, serviceTier?: unknown): UsageMetadata | undefined {
  const usage = anyUsage(given, serviceTier);
  return usage?.input_tokens === undefined || usage.output_tokens === undefined ? undefined : usage;
}
