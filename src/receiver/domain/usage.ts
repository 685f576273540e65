import { isObject } from '../../config/checker.ts';
import { cost as amountOf, tokenCount as countOf } from '../../payload/usage.ts';
import { anyUsage } from '../../services/any.ts';
import { reportedCost } from '../../services/cost.ts';
import type { UnpricedUsage, Usage, UsageDetails } from './run-view.ts';

/** Returns the usage in a run's outputs, or in the response of a service that the outputs contain. */
export function outputsUsageOf(outputs: Readonly<Record<string, unknown>> | undefined): UnpricedUsage | undefined {
  if (outputs === undefined) return undefined;
  const { usage_metadata, usage: given, service_tier } = outputs;
  const usage = usageIn(usage_metadata) ?? usageIn(anyUsage(given));
  if (usage === undefined) return undefined;
  const { details = {} } = usage;
  if (service_tier !== undefined) set(details, 'tier', details.tier ?? tierOf(service_tier));
  if (!isObject(given)) return usage;
  set(usage, 'total_cost', usage.total_cost ?? reportedCost(given));
  const { service_tier: tier, speed, inference_geo, server_tool_use: tools } = given;
  set(details, 'tier', details.tier ?? tierOf(tier, speed, inference_geo));
  if (isObject(tools)) add(details, 'web_searches', countOf(tools.web_search_requests) ?? 0);
  return usage;
}

/** Returns how many of the input tokens were read from a cache. Returns undefined if none are reported. */
export function cachedTokensOf({ input_tokens: input = 0, details }: UnpricedUsage): number | undefined {
  const read = details?.cache_read;
  return read !== undefined && read <= input ? read : undefined;
}

/** Returns the share of the input tokens that were read from a cache. Returns undefined without input tokens. */
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

const COUNTS: readonly string[] = ['input_tokens', 'output_tokens', 'total_tokens'];

/** Reads token counts and costs. */
export function usageIn(given: unknown): UnpricedUsage | undefined {
  if (!isObject(given)) return undefined;
  const usage: UnpricedUsage = {};
  const details: UsageDetails = {};
  addDetails(details, INPUT_KINDS, given.input_token_details);
  addDetails(details, OUTPUT_KINDS, given.output_token_details);
  if (COUNTS.some((name) => isInvalid(given[name]))) details.is_invalid = true;
  const [input, output] = [countOf(given.input_tokens), countOf(given.output_tokens)];
  set(usage, 'input_tokens', input);
  set(usage, 'output_tokens', output);
  set(usage, 'total_tokens', countOf(given.total_tokens) ?? sumOf(input, output));
  set(
    usage,
    'total_cost',
    amountOf(given.total_cost) ?? bothOf(amountOf(given.input_cost), amountOf(given.output_cost)),
  );
  if (Object.keys(usage).length === 0) return undefined;
  usage.details = details;
  return usage;
}

type Kind = Exclude<keyof UsageDetails, 'tier' | 'is_invalid'>;
type Kinds = ReadonlyMap<string, readonly Kind[]>;

/** The counts to which a detail adds, by its name without `_tokens`. */
const INPUT_KINDS: Kinds = new Map<string, Kind[]>([
  ['cache_read', ['cache_read']],
  ['cache_creation', ['cache_write']],
  ['ephemeral_5m_input', ['cache_write']],
  ['ephemeral_1hr_input', ['cache_write', 'cache_write_1h']],
  // LangChain's name for the same count.
  ['ephemeral_1h_input', ['cache_write', 'cache_write_1h']],
  ['audio', ['input_audio']],
  ['audio_cache_read', ['cache_audio_read']],
  ['image', ['input_image']],
  ['image_cache_read', ['cache_image_read']],
  ['video', ['input_video']],
]);
const OUTPUT_KINDS: Kinds = new Map<string, Kind[]>([
  ['reasoning', ['output_reasoning']],
  ['audio', ['output_audio']],
  ['image', ['output_image']],
  ['video', ['output_video']],
]);

/** Matches the details of a service tier: `flex` for the tokens without other details, `flex_cache_read` and so on. */
const OF_TIER = /^(flex|priority|batch)(?:_(.+))?$/;

function addDetails(details: UsageDetails, kinds: Kinds, given: unknown): void {
  if (!isObject(given)) return;
  const isSplit = isSplitOfWrites(given);
  for (const [name, value] of Object.entries(given)) {
    if (isSplit && name === 'cache_creation') continue;
    const count = countOf(value);
    if (typeof value === 'number' && isInvalid(value)) details.is_invalid = true;
    if (count === undefined) continue;
    for (const kind of kinds.get(name) ?? kindsOfOther(details, kinds, name)) add(details, kind, count);
  }
}

/** Returns whether the writes for 5 minutes and for 1 hour add up to the other count of writes. */
function isSplitOfWrites(given: Readonly<Record<string, unknown>>): boolean {
  const parts = ['ephemeral_5m_input_tokens', 'ephemeral_1hr_input_tokens', 'ephemeral_1h_input_tokens'];
  const sum = parts.reduce((total, name) => total + (countOf(given[name]) ?? 0), 0);
  return sum > 0 && sum === countOf(given.cache_creation);
}

/** Returns the counts for a name with the prefix of a tier. Also sets the tier. */
function kindsOfOther(details: UsageDetails, kinds: Kinds, name: string): readonly Kind[] {
  const [, tier, rest = ''] = OF_TIER.exec(name) ?? [];
  if (tier !== undefined) details.tier = tier;
  return kinds.get((tier === undefined ? name : rest).replace(/_tokens$/, '')) ?? [];
}

/** Omits counts of 0, except if the count tells that no cached token is of this kind. */
function add(details: UsageDetails, kind: Kind, count: number): void {
  if (count > 0 || /^cache_(audio|image)/.test(kind)) details[kind] = (details[kind] ?? 0) + count;
}

/** Returns whether a value is given as a count, but is none. */
function isInvalid(value: unknown): boolean {
  return value !== undefined && value !== null && countOf(value) === undefined;
}

/** A cost of only the input, or only the output, is not the cost of the run. */
function bothOf(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a + b;
}

function sumOf(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
}

/** Sets a property, unless the value is undefined. */
export function set<Target, Key extends keyof Target>(target: Target, key: Key, value: Target[Key] | undefined): void {
  if (value !== undefined) target[key] = value;
}
