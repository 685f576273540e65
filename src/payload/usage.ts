import { defined, definedOrNone, isFields, numberOf } from './fields.ts';

/**
 * Token counts and costs of a model call. `input_tokens` and `output_tokens` include the tokens listed in the details,
 * for example cached tokens.
 */
export interface UsageMetadata {
  input_tokens?: number;
  output_tokens?: number;
  total_tokens?: number;
  input_token_details?: Record<string, number>;
  output_token_details?: Record<string, number>;
  input_cost?: number;
  output_cost?: number;
  total_cost?: number;
}

const TOKENS_MAX = 1_000_000_000;

/** Returns a token count. Returns undefined if the value is not a whole number from 0 to 1,000,000,000. */
export function tokenCount(value: unknown): number | undefined {
  return Number.isInteger(value) && (value as number) <= TOKENS_MAX ? cost(value) : undefined;
}

/** Returns a cost. Returns undefined if the value is not a finite number or is negative. */
export function cost(value: unknown): number | undefined {
  return Number.isFinite(value) && (value as number) >= 0 ? (value as number) : undefined;
}

/** Returns the valid token counts and costs of a usage object or of its details. `read` converts each value first. */
export function validUsage(given: object, read: (value: unknown) => unknown, areCosts?: boolean): UsageMetadata {
  const usage: UsageMetadata = {};
  for (const [key, value] of Object.entries(given)) {
    const isCost = areCosts ?? key.includes('cost');
    const details =
      isFields(value) && areCosts === undefined ? definedOrNone(validUsage(value, read, isCost)) : undefined;
    const valid = isFields(value) ? details : (isCost ? cost : tokenCount)(read(value));
    if (valid !== undefined) Reflect.set(usage, key, valid);
  }
  return usage;
}

/** A part of the tokens that services count inside or outside of the input and output. */
export type Part = 'reasoning' | 'cached' | 'tool_use';

/** The parts that a total may show to be outside, although the service does not document it. */
const COMBINATIONS: readonly (readonly Part[])[] = [[], ['reasoning'], ['cached'], ['reasoning', 'cached']];

/** OpenAI service tiers with separate token prices. */
const PRICED_TIERS: ReadonlySet<unknown> = new Set(['flex', 'priority']);

/**
 * Removes invalid counts and costs. Adds the parts that the input and output tokens exclude. If both are known, the total
 * is their sum. Splits the token details into categories with one price each: `cache_creation` keeps only the tokens with
 * an unknown cache lifetime. If a service tier such as `flex` has its own prices, `cache_read` becomes `flex_cache_read`
 * and `reasoning` becomes `flex_reasoning`. The remaining tokens are counted as `flex`. `outside` lists the parts that
 * the counts exclude according to the service.
 */
export function completeUsage(
  given: UsageMetadata,
  serviceTier?: unknown,
  outside: readonly Part[] = [],
): UsageMetadata {
  const pricedTier = PRICED_TIERS.has(serviceTier) ? (serviceTier as string) : undefined;
  const sum = pricedTier === undefined ? plainSum(given) : undefined;
  if (sum !== undefined) return sum;
  const { input_tokens, output_tokens, total_tokens, ...others } = validUsage(given, numberOf);
  if (others.input_token_details !== undefined) others.input_token_details = splitWrites(others.input_token_details);
  const counts = withParts({ input_tokens, output_tokens, total_tokens }, others, outside);
  const usage: UsageMetadata = { ...defined(counts), ...others };
  if (pricedTier === undefined) return usage;
  if (usage.input_tokens !== undefined) {
    usage.input_token_details = ofTier(pricedTier, usage.input_tokens, usage.input_token_details, 'cache_read');
  }
  if (usage.output_tokens !== undefined) {
    usage.output_token_details = ofTier(pricedTier, usage.output_tokens, usage.output_token_details, 'reasoning');
  }
  return usage;
}

const PLAIN_COUNTS: readonly string[] = ['input_tokens', 'output_tokens', 'total_tokens'];

/**
 * Returns the usage if only the input and output tokens are given, and a total that is their sum. Most calls have such
 * counts, for which the general rules give the same result and take several times as long.
 */
function plainSum(given: UsageMetadata): UsageMetadata | undefined {
  const { input_tokens, output_tokens, total_tokens } = given;
  if (tokenCount(input_tokens) === undefined || tokenCount(output_tokens) === undefined) return undefined;
  const sum = (input_tokens as number) + (output_tokens as number);
  if (sum > TOKENS_MAX || (total_tokens !== undefined && total_tokens !== sum)) return undefined;
  const isPlain = Object.keys(given).every((key) => PLAIN_COUNTS.includes(key));
  if (!isPlain || !Object.hasOwn(given, 'input_tokens') || !Object.hasOwn(given, 'output_tokens')) return undefined;
  return { input_tokens: input_tokens as number, output_tokens: output_tokens as number, total_tokens: sum };
}

/** Returns the metadata of a run with this usage. Says so if the counts do not add up to the total of the service. */
export function metadataOfUsage(usage?: UsageMetadata): { usage_metadata?: UsageMetadata; usage_check?: string } {
  if (usage === undefined) return {};
  const { input_tokens: input, output_tokens: output, total_tokens: total } = usage;
  const isUnknown = input === undefined || output === undefined || total === undefined;
  if (isUnknown || input + output === total) return { usage_metadata: usage };
  return { usage_metadata: usage, usage_check: `${input} input + ${output} output tokens, but ${total} in total` };
}

type Counts = { readonly [Name in 'input_tokens' | 'output_tokens' | 'total_tokens']?: number | undefined };

/**
 * Adds the parts that the counts exclude. The total shows which parts these are. Without a total, or if the total repeats
 * counts that certainly exclude some part, these are the parts in `outside`. If no combination fits, the counts are
 * returned unchanged.
 */
function withParts(given: Counts, details: UsageMetadata, outside: readonly Part[]): Counts {
  const { input_tokens: input, output_tokens: output, total_tokens: total } = given;
  const { reasoning = 0 } = details.output_token_details ?? {};
  const { tool_use = 0, cache_read = 0, cache_creation = 0, ...ofInput } = details.input_token_details ?? {};
  const { ephemeral_5m_input_tokens: short = 0, ephemeral_1hr_input_tokens: long = 0 } = ofInput;
  const cached = cache_read + cache_creation + short + long;
  const sums = [outside, ...COMBINATIONS].flatMap((parts) => {
    const of = (part: Part, count: number): number => (parts.includes(part) ? count : 0);
    const allInput = input === undefined ? undefined : input + of('cached', cached) + of('tool_use', tool_use);
    const allOutput = output === undefined ? undefined : output + of('reasoning', reasoning);
    // A count that is smaller than its cached tokens excludes them.
    return allInput !== undefined && allInput < cached ? [] : [counts(allInput, allOutput)];
  });
  const fitting = sums.find(({ total_tokens }) => total_tokens === total);
  if (fitting !== undefined) return fitting;
  if (input === undefined || output === undefined) return { ...sums[0], total_tokens: total };
  return total === undefined || total === input + output ? (sums[0] ?? given) : given;
}

function counts(input: number | undefined, output: number | undefined): Counts {
  const total = input === undefined || output === undefined ? undefined : tokenCount(input + output);
  return { input_tokens: tokenCount(input), output_tokens: tokenCount(output), total_tokens: total };
}

function splitWrites(details: Record<string, number>): Record<string, number> {
  const { cache_creation: total, ...others } = details;
  const { ephemeral_5m_input_tokens: short, ephemeral_1hr_input_tokens: long } = others;
  if (total === undefined || (short ?? long) === undefined) return details;
  const rest = total - (short ?? 0) - (long ?? 0);
  return rest > 0 ? { ...others, cache_creation: rest } : others;
}

function ofTier(tier: string, total: number, details: Record<string, number> = {}, apart: 'cache_read' | 'reasoning') {
  const { [apart]: count, ...others } = details;
  const rest = { ...others, [tier]: Math.max(0, total - (count ?? 0)) };
  return count === undefined ? rest : { ...rest, [`${tier}_${apart}`]: count };
}
