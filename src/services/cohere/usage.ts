import type { UsageMetadata } from '../../payload/usage.ts';
import { readUsage, type UsagePaths } from '../usage.ts';

/** `billed_units` exclude the tokens that Cohere adds to a prompt: https://docs.cohere.com/reference/chat */
const USAGE: UsagePaths = {
  input_tokens: ['tokens.input_tokens', 'billed_units.input_tokens'],
  output_tokens: ['tokens.output_tokens', 'billed_units.output_tokens'],
  input_token_details: { cache_read: ['cached_tokens'] },
};

/** Reads the `usage` of a chat, or the `meta` of embeddings. */
export function cohereUsage(usage: unknown): UsageMetadata | undefined {
  return readUsage(usage, USAGE);
}
