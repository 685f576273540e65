import { isObject } from '../../../config/checker.ts';
import { defined, definedOrNone, fieldsOf } from '../../../payload/fields.ts';
import { cost as amountOf, tokenCount as countOf } from '../../../payload/usage.ts';
import { anyUsage } from '../../../services/any.ts';
import { reportedCost } from '../../../services/cost.ts';
import type { UnpricedUsage, Usage, UsageDetails } from '../run-view.ts';
import { OUTPUT_KINDS } from './cost.ts';

/** Returns the usage in a run's outputs, or in the response of a service that the outputs contain. */
export function outputsUsageOf(outputs: Readonly<Record<string, unknown>> | undefined): UnpricedUsage | undefined {
  const { usage_metadata, usage: given, service_tier } = fieldsOf(outputs);
  const usage = usageIn(usage_metadata) ?? usageIn(anyUsage(given) && { ...fieldsOf(given), ...anyUsage(given) });
  if (usage === undefined) return undefined;
  const { details = {}, total_cost = reportedCost(fieldsOf(given)) } = usage;
  const { service_tier: ownTier, speed, inference_geo, server_tool_use } = fieldsOf(given);
  const { tier = tierOf(service_tier, ownTier, speed, inference_geo) } = details;
  const web_searches = countOf(fieldsOf(server_tool_use).web_search_requests) || undefined;
  return { ...usage, ...defined({ total_cost }), details: { ...details, ...defined({ tier, web_searches }) } };
}

export function cachedTokensOf({ input_tokens: input = 0, details }: UnpricedUsage): number | undefined {
  const read = details?.cache_read;
  return read !== undefined && read <= input ? read : undefined;
}

export function cachedShareOf(usage: Usage | undefined): number | undefined {
  const { input_tokens: input = 0, cached_tokens: cached = 0 } = usage ?? {};
  return input === 0 ? undefined : cached / input;
}

/** Service tiers, speeds and regions at the standard price. `auto` is the standard tier for most customers. */
const STANDARD: ReadonlySet<string> = new Set([
  ...['', 'auto', 'default', 'standard', 'on_demand'],
  ...['global', 'not_available'],
]);

/** Returns the first service tier, speed or region with its own prices. */
export function tierOf(...given: readonly unknown[]): string | undefined {
  return given.find((tier): tier is string => typeof tier === 'string' && !STANDARD.has(tier));
}

const COUNTS = ['input_tokens', 'output_tokens', 'total_tokens'] as const;

export function usageIn(given: unknown): UnpricedUsage | undefined {
  if (!isObject(given)) return undefined;
  const details: UsageDetails = {};
  addDetails(details, 'input', given.input_token_details);
  addDetails(details, 'output', given.output_token_details);
  if (COUNTS.some((name) => isInvalid(given[name]))) details.is_invalid = true;
  const [input, output, total] = COUNTS.map((name) => countOf(given[name]));
  // A cost of only the input, or only the output, is not the cost of the run.
  const [inputCost = Number.NaN, outputCost = Number.NaN] = [amountOf(given.input_cost), amountOf(given.output_cost)];
  const usage = definedOrNone({
    input_tokens: input,
    output_tokens: output,
    total_tokens: total ?? ((input ?? output) === undefined ? undefined : (input ?? 0) + (output ?? 0)),
    total_cost: amountOf(given.total_cost) ?? amountOf(inputCost + outputCost),
  });
  return usage && { ...usage, details };
}

type Kind = Exclude<keyof UsageDetails, 'tier' | 'is_invalid'>;

/** The counts to which a detail adds, by its name without `_tokens`. */
const KINDS: ReadonlyMap<string, readonly Kind[]> = new Map<string, Kind[]>([
  ['input_cache_read', ['cache_read']],
  ['input_cache_creation', ['cache_write']],
  ['input_ephemeral_5m_input', ['cache_write']],
  ['input_ephemeral_1hr_input', ['cache_write', 'cache_write_1h']],
  // LangChain's name for the same count.
  ['input_ephemeral_1h_input', ['cache_write', 'cache_write_1h']],
  ['input_audio_cache_read', ['cache_audio_read']],
  ['input_image_cache_read', ['cache_image_read']],
  ...(['input_audio', 'input_image', 'input_video'] as const).map((kind): [string, Kind[]] => [kind, [kind]]),
  ...OUTPUT_KINDS.map((kind): [string, Kind[]] => [kind, [kind]]),
]);

/** Matches the details of a service tier: `flex` for the tokens without other details, `flex_cache_read` and so on. */
const OF_TIER = /^(flex|priority|batch)(?:_(.+))?$/;

function addDetails(details: UsageDetails, side: 'input' | 'output', given: unknown): void {
  if (!isObject(given)) return;
  const isSplit = isSplitOfWrites(given);
  for (const [name, value] of Object.entries(given)) {
    if (isSplit && name === 'cache_creation') continue;
    const count = countOf(value);
    if (typeof value === 'number' && isInvalid(value)) details.is_invalid = true;
    if (count === undefined) continue;
    const [, tier, rest = name] = OF_TIER.exec(name) ?? [];
    if (tier !== undefined) details.tier = tier;
    for (const kind of KINDS.get(`${side}_${rest.replace(/_tokens$/, '')}`) ?? []) add(details, kind, count);
  }
}

/** Returns whether the writes for 5 minutes and for 1 hour add up to the other count of writes. */
function isSplitOfWrites(given: Readonly<Record<string, unknown>>): boolean {
  const parts = ['ephemeral_5m_input_tokens', 'ephemeral_1hr_input_tokens', 'ephemeral_1h_input_tokens'];
  const sum = parts.reduce((total, name) => total + (countOf(given[name]) ?? 0), 0);
  return sum > 0 && sum === countOf(given.cache_creation);
}

/** Omits counts of 0, except if the count tells that no cached token is of this kind. */
function add(details: UsageDetails, kind: Kind, count: number): void {
  if (count > 0 || /^cache_(audio|image)/.test(kind)) details[kind] = (details[kind] ?? 0) + count;
}

/** Returns whether a value is given as a count, but is none. */
function isInvalid(value: unknown): boolean {
  return value !== undefined && value !== null && countOf(value) === undefined;
}

/** Sets a property, unless the value is undefined. */
export function set<Target, Key extends keyof Target>(target: Target, key: Key, value: Target[Key] | undefined): void {
  if (value !== undefined) target[key] = value;
}
