import type { UsageMetadata } from './record.ts';

/** OpenAI service tiers with separate token prices. */
const PRICED_TIERS: ReadonlySet<unknown> = new Set(['flex', 'priority']);

/**
 * Adds the total, and splits the token details so that each token is counted under exactly one price. `cache_creation`
 * keeps only the tokens whose cache duration is unknown. In a priced service tier, `cache_read` and `reasoning` get the
 * name of the tier as a prefix, and a detail named after the tier counts the remaining input or output tokens.
 */
export function completeUsage(given: UsageMetadata, serviceTier?: unknown): UsageMetadata {
  const { input_tokens: input, output_tokens: output, total_tokens: total, ...rest } = given;
  const usage: UsageMetadata = {};
  if (input !== undefined) usage.input_tokens = input;
  if (output !== undefined) usage.output_tokens = output;
  if (total !== undefined) usage.total_tokens = total;
  else if (isNumber(input) || isNumber(output)) usage.total_tokens = numberOr0(input) + numberOr0(output);
  Object.assign(usage, rest);
  if (usage.input_token_details !== undefined) usage.input_token_details = splitWrites(usage.input_token_details);
  if (typeof serviceTier !== 'string' || !PRICED_TIERS.has(serviceTier)) return usage;
  if (isNumber(input)) {
    usage.input_token_details = ofTier(serviceTier, input, usage.input_token_details, 'cache_read');
  }
  if (isNumber(output)) {
    usage.output_token_details = ofTier(serviceTier, output, usage.output_token_details, 'reasoning');
  }
  return usage;
}

function splitWrites(details: Record<string, number>): Record<string, number> {
  const { cache_creation: total, ...others } = details;
  const { ephemeral_5m_input_tokens: short, ephemeral_1hr_input_tokens: long } = others;
  if (!isNumber(total) || (!isNumber(short) && !isNumber(long))) return details;
  const rest = total - numberOr0(short) - numberOr0(long);
  return rest > 0 ? { ...others, cache_creation: rest } : others;
}

function ofTier(
  tier: string,
  total: number,
  details: Record<string, number> | undefined,
  apart: 'cache_read' | 'reasoning',
): Record<string, number> {
  const { [apart]: count, ...others } = details ?? {};
  const rest = { ...others, [tier]: total - numberOr0(count) };
  return isNumber(count) ? { ...rest, [`${tier}_${apart}`]: count } : rest;
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

function numberOr0(value: unknown): number {
  return isNumber(value) ? value : 0;
}
