import { type Fields, fieldsOf, isFields, numberOf } from '../payload/fields.ts';
import { cost as validCost } from '../payload/usage.ts';

/** https://docs.x.ai/developers/cost-tracking */
const TICKS_PER_USD = 10_000_000_000;

/**
 * Returns the cost in USD in a service's usage. xAI reports ticks, Perplexity an object, Vercel's gateway text, and the
 * Claude Agent SDK `total_cost_usd`. The AI SDK converts names to camel case.
 *
 * OpenRouter's `cost` is what it charges. With a provider key of your own, the provider charges the inference in
 * addition: https://openrouter.ai/docs/use-cases/usage-accounting
 */
export function reportedCost(usage: Fields): number | undefined {
  const { cost = usage.total_cost_usd } = usage;
  const ticks = numberOf(usage.cost_in_usd_ticks ?? usage.costInUsdTicks);
  const charged = amountOf(cost) ?? validCost(ticks === undefined ? undefined : ticks / TICKS_PER_USD);
  const { upstream_inference_cost, upstreamInferenceCost } = fieldsOf(usage.cost_details ?? usage.costDetails);
  // OpenRouter's provider for the AI SDK omits `is_byok`. A cost of 0 is then taken to mean the user's own key.
  const isOwnKey = usage.is_byok ?? usage.isByok ?? charged === 0;
  const upstream = isOwnKey === true ? amountOf(upstream_inference_cost ?? upstreamInferenceCost) : undefined;
  return charged === undefined ? upstream : charged + (upstream ?? 0);
}

/** Returns the first cost in the provider metadata of the AI SDK, which has an object for each provider. */
export function costInMetadata(metadata: unknown): number | undefined {
  for (const provider of Object.values(fieldsOf(metadata)).map(fieldsOf)) {
    const cost = reportedCost(provider) ?? reportedCost(fieldsOf(provider.usage));
    if (cost !== undefined) return cost;
  }
  return undefined;
}

function amountOf(given: unknown): number | undefined {
  const value = isFields(given) ? (given.total_cost ?? given.totalCost ?? given.total) : given;
  const isText =
    typeof value === 'string' && /^(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:e-?\d{1,3})?$/i.test(value.trim());
  return validCost(isText ? Number(value) : value);
}
