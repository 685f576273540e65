import type { UnpricedUsage, UsageDetails } from '../run-view.ts';

type DetailKind = Exclude<keyof UsageDetails, 'tier' | 'web_searches' | 'is_invalid'>;
export type TokenKind = 'input' | 'output' | DetailKind;

export const OUTPUT_KINDS = ['output_reasoning', 'output_audio', 'output_image', 'output_video'] as const;

/** Kinds of tokens that a run's counts tell apart. */
export const TOKEN_KINDS: readonly TokenKind[] = [
  ...(['input', 'output', 'cache_read', 'cache_write', 'cache_write_1h', 'input_audio', 'cache_audio_read'] as const),
  ...(['input_image', 'cache_image_read', 'input_video'] as const),
  ...OUTPUT_KINDS,
];

/** Prices of a model with the fields of genai-prices, for example `input_mtok` for a million input tokens. */
export type ModelPrices = Readonly<Record<string, number | TieredPrice | undefined>>;

/** A price that depends on the number of input tokens. */
interface TieredPrice {
  readonly base: number;
  readonly tiers: readonly { readonly start: number; readonly price: number }[];
}

const MILLION = 1_000_000;
const THOUSAND = 1_000;

/** Kinds of tokens that cost as much as other tokens, unless the model has a price for them. */
const PLAIN_KINDS: readonly TokenKind[] = ['input_image', 'input_video', 'output_reasoning'];

/**
 * Prices that a run's counts cover, and prices for the use of tools, which a run may not report. Other prices, for
 * example per hour of audio, need counts that no run has.
 */
const COVERED: ReadonlySet<string> = new Set([
  ...TOKEN_KINDS.map((kind) => `${kind}_mtok`),
  ...['requests_kcount', 'web_searches_kcount', 'storage_searches_kcount'],
]);

/**
 * Returns the cost of a usage, or why the cost is unknown. If `isCached` is false, the cost is that of a call that neither
 * reads from a cache nor writes to one.
 */
export function costOf(usage: UnpricedUsage, prices: ModelPrices, model: string, isCached = true): number | string {
  const problem = missingCount(usage, prices) ?? uncovered(prices);
  if (problem !== undefined) return problem;
  const bill = new Bill(prices, usage.input_tokens ?? 0);
  addTokens(bill, usage, prices, model, isCached);
  bill.addCount('requests_kcount', prices.requests_kcount === undefined ? 0 : 1, '');
  bill.addCount('web_searches_kcount', usage.details?.web_searches ?? 0, 'web searches');
  return bill.problem ?? bill.cost;
}

/**
 * Returns what caching saved: the cost without caching, minus `cost`, which `costOf` has returned for the same prices.
 * Returns undefined if nothing was cached, or if a price is unknown.
 */
export function cacheSavingsOf(
  cost: number | string,
  usage: UnpricedUsage,
  prices: ModelPrices,
  model: string,
): number | undefined {
  if (usage.details?.cache_read === undefined && usage.details?.cache_write === undefined) return undefined;
  const uncached = costOf(usage, prices, model, false);
  return typeof cost === 'number' && typeof uncached === 'number' ? uncached - cost : undefined;
}

/** A missing count is 0 if the total is the other count. A missing output count is 0 if output costs nothing, as for embeddings. */
function missingCount(usage: UnpricedUsage, { output_mtok: outputPrice = 0 }: ModelPrices): string | undefined {
  const { input_tokens: input, output_tokens: output, total_tokens: total, details } = usage;
  if (details?.is_invalid === true) return 'a token count is not a whole number from 0 to 1,000,000,000';
  if (input === undefined && output === undefined) return 'no input and output token counts';
  if (input === undefined && output !== total) return 'no input token count';
  if (output === undefined && (input !== total || outputPrice !== 0)) return 'no output token count';
  const counted = (input ?? 0) + (output ?? 0);
  const isComplete = total === undefined || total === counted || total === counted + (details?.output_reasoning ?? 0);
  return isComplete ? undefined : 'the total token count differs from the sum of the counts';
}

/** Results of `uncovered`, because comparing all fields takes longer than calculating a cost. */
const checked = new WeakMap<ModelPrices, string | undefined>();

function uncovered(prices: ModelPrices): string | undefined {
  if (checked.has(prices)) return checked.get(prices);
  const keys = Object.keys(prices).filter((key) => prices[key] !== undefined);
  const key = keys.find((one) => !COVERED.has(one));
  const isOfTokens = keys.some((one) => one.endsWith('_mtok'));
  const problem = isOfTokens ? key && `the price ${key} needs counts that runs do not have` : 'no price of tokens';
  checked.set(prices, problem);
  return problem;
}

/** Adds up the parts of a usage that have one price each. */
class Bill {
  readonly #prices: ModelPrices;
  readonly #inputTokens: number;
  #tokens = 0;
  #counts = 0;
  /** Why the cost is unknown. */
  problem: string | undefined;

  constructor(prices: ModelPrices, inputTokens: number) {
    this.#prices = prices;
    this.#inputTokens = inputTokens;
  }

  get cost(): number {
    return this.#tokens / MILLION + this.#counts / THOUSAND;
  }

  add(kind: TokenKind, tokens: number): void {
    if (tokens === 0) return;
    const price = priceAt(this.#prices[`${kind}_mtok`], this.#inputTokens);
    if (tokens < 0) this.problem = 'the token counts contradict each other';
    else if (price === undefined) this.problem ??= `no price of ${kind.replaceAll('_', ' ')} tokens`;
    else this.#tokens += tokens * price;
  }

  addCount(key: string, count: number, name: string): void {
    if (count === 0) return;
    const price = priceAt(this.#prices[key], this.#inputTokens);
    if (price === undefined) this.problem ??= `no price of ${name}`;
    else this.#counts += count * price;
  }
}

/** Splits the tokens into parts with one price each. */
function addTokens(bill: Bill, usage: UnpricedUsage, prices: ModelPrices, model: string, isCached: boolean): void {
  const { input_tokens: input = 0, output_tokens: output = 0, total_tokens: total, details = {} } = usage;
  const caching = isCached ? details : NO_CACHING;
  const { cache_read: read = 0, cache_write: written = 0, cache_write_1h: writtenFor1h = 0 } = caching;
  const reasoning = details.output_reasoning ?? 0;
  // xAI does not count reasoning as output. The total then includes the reasoning.
  const allOutput = total === input + output + reasoning ? output + reasoning : output;
  const apart = (kind: DetailKind, most: number): number => {
    const count = details[kind];
    if (count === undefined) return 0;
    // A count above the total stays, so that the rest is negative and the bill reports a contradiction.
    return count <= most && isPlain(kind, prices, model) ? 0 : count;
  };
  const [audio, image] = [apart('input_audio', input), apart('input_image', input)];
  const video = apart('input_video', input);
  const { cache_audio_read: cachedAudio, cache_image_read: cachedImage } = caching;
  if (read > 0) bill.problem = overlap(audio, cachedAudio, 'audio') ?? overlap(image, cachedImage, 'images');
  if (read > 0 && video > 0) bill.problem = overlap(video, undefined, 'video');
  const readAudio = audio > 0 ? (cachedAudio ?? 0) : 0;
  const readImage = image > 0 ? (cachedImage ?? 0) : 0;
  bill.add('cache_audio_read', readAudio);
  bill.add('cache_image_read', readImage);
  bill.add('cache_read', read - readAudio - readImage);
  bill.add('cache_write_1h', writtenFor1h);
  bill.add('cache_write', written - writtenFor1h);
  bill.add('input_audio', audio - readAudio);
  bill.add('input_image', image - readImage);
  bill.add('input_video', video);
  bill.add('input', input - read - written - (audio - readAudio) - (image - readImage) - video);
  let rest = allOutput;
  for (const kind of OUTPUT_KINDS) {
    const tokens = apart(kind, allOutput);
    bill.add(kind, tokens);
    rest -= tokens;
  }
  bill.add('output', rest);
}

const NO_CACHING: UsageDetails = {};

/** Whether tokens cost as much as other tokens. An image model has only a price for images as output. */
function isPlain(kind: DetailKind, prices: ModelPrices, model: string): boolean {
  const isOptional = PLAIN_KINDS.includes(kind) || (kind === 'output_image' && model.includes('image'));
  return isOptional && prices[`${kind}_mtok`] === undefined;
}

function overlap(tokens: number, cached: number | undefined, name: string): string | undefined {
  return tokens > 0 && cached === undefined ? `unknown how many of the cached tokens are ${name}` : undefined;
}

/** Returns the price for a number of input tokens. If the number is above the start of a tier, the tier applies. */
function priceAt(price: ModelPrices[string], inputTokens: number): number | undefined {
  if (typeof price !== 'object') return price;
  let found = { start: Number.NEGATIVE_INFINITY, price: price.base };
  for (const tier of price.tiers) if (inputTokens > tier.start && tier.start > found.start) found = tier;
  return found.price;
}
