import type { ModelPrice } from '@pydantic/genai-prices';
import type { UnpricedUsage, UsageDetails } from './run-view.ts';

/** Tokens whose number is known, and which are in none of the other kinds. */
type Part = readonly [kind: TokenKind, tokens: number];

type DetailKind = Exclude<keyof UsageDetails, 'tier' | 'web_searches'>;
export type TokenKind = 'input' | 'output' | DetailKind;

const MILLION = 1_000_000;
const THOUSAND = 1_000;

/** Kinds of tokens that cost as much as other tokens, unless the model has a price for them. */
const PLAIN_KINDS: readonly TokenKind[] = ['input_image', 'input_video', 'output_reasoning'];

/**
 * Prices that a run's counts cover, and prices for the use of tools, which a run may not report. Other prices, for
 * example per hour of audio, need counts that no run has.
 */
const COVERED =
  /^(?:(?:input|output|cache_read|cache_write|cache_write_1h|(?:input|output)_(?:audio|image|video)|cache_(?:audio|image)_read|output_reasoning)_mtok|(?:requests|web_searches|storage_searches)_kcount)$/;

/** Returns the cost of a usage, or why the cost is unknown. `prices` has the fields of genai-prices. */
export function costOf(usage: UnpricedUsage, prices: ModelPrice, model: string): number | string {
  const { input_tokens: input = 0, details = {} } = usage;
  const problem = missingCount(usage) ?? uncovered(prices);
  if (problem !== undefined) return problem;
  const parts = partsOf(usage, details, prices, model);
  if (typeof parts === 'string') return parts;
  let sum = 0;
  for (const [kind, tokens] of parts) {
    if (tokens < 0) return 'the token counts contradict each other';
    if (tokens === 0) continue;
    const price = priceAt(prices[`${kind}_mtok`], input);
    if (price === undefined) return `no price of ${kind.replaceAll('_', ' ')} tokens`;
    sum += tokens * price;
  }
  const requests = priceAt(prices.requests_kcount, input) ?? 0;
  const searches = details.web_searches ?? 0;
  const search = priceAt(prices.web_searches_kcount, input);
  if (searches > 0 && search === undefined) return 'no price of web searches';
  return sum / MILLION + (requests + searches * (search ?? 0)) / THOUSAND;
}

/** A missing count is 0 if the total is the other count, as for embeddings. */
function missingCount({ input_tokens: input, output_tokens: output, total_tokens: total }: UnpricedUsage) {
  if (input === undefined && output === undefined) return 'no input and output token counts';
  if (input === undefined && output !== total) return 'no input token count';
  return output === undefined && input !== total ? 'no output token count' : undefined;
}

function uncovered(prices: ModelPrice): string | undefined {
  const keys = Object.keys(prices).filter((key) => prices[key] !== undefined);
  if (!keys.some((key) => key.endsWith('_mtok'))) return 'no price of tokens';
  const key = keys.find((one) => !COVERED.test(one));
  return key === undefined ? undefined : `the price ${key} needs counts that runs do not have`;
}

/** Splits the tokens into parts with one price each. Returns a text if the size of a part is unknown. */
function partsOf(
  usage: UnpricedUsage,
  details: UsageDetails,
  prices: ModelPrice,
  model: string,
): readonly Part[] | string {
  const { input_tokens: input = 0, output_tokens: output = 0, total_tokens: total } = usage;
  const { cache_read: read = 0, cache_write: written = 0, cache_write_1h: writtenFor1h = 0 } = details;
  const reasoning = details.output_reasoning ?? 0;
  // xAI does not count reasoning as output. The total then includes the reasoning.
  const allOutput = total === input + output + reasoning ? output + reasoning : output;
  const apart = (kind: DetailKind): number => {
    const count = details[kind] ?? 0;
    // A negative part makes the cost unknown.
    if (count > (kind.startsWith('output') ? allOutput : input)) return count;
    return isPlain(kind, prices, model) ? 0 : count;
  };
  const [audio, image, video] = [apart('input_audio'), apart('input_image'), apart('input_video')];
  const { cache_audio_read: cachedAudio, cache_image_read: cachedImage } = details;
  if (read > 0) {
    if (audio > 0 && cachedAudio === undefined) return 'unknown how many of the cached tokens are audio';
    if (image > 0 && cachedImage === undefined) return 'unknown how many of the cached tokens are images';
    if (video > 0) return 'unknown how many of the cached tokens are video';
  }
  const [readAudio, readImage] = [audio > 0 ? (cachedAudio ?? 0) : 0, image > 0 ? (cachedImage ?? 0) : 0];
  const [newAudio, newImage] = [audio - readAudio, image - readImage];
  const outputs = (['output_reasoning', 'output_audio', 'output_image', 'output_video'] as const).map(
    (kind): Part => [kind, apart(kind)],
  );
  return [
    ['cache_audio_read', readAudio],
    ['cache_image_read', readImage],
    ['cache_read', read - readAudio - readImage],
    ['cache_write_1h', writtenFor1h],
    ['cache_write', written - writtenFor1h],
    ['input_audio', newAudio],
    ['input_image', newImage],
    ['input_video', video],
    ['input', input - read - written - newAudio - newImage - video],
    ...outputs,
    ['output', outputs.reduce((rest, [, tokens]) => rest - tokens, allOutput)],
  ];
}

/** Whether tokens cost as much as other tokens. An image model has only a price for images as output. */
function isPlain(kind: DetailKind, prices: ModelPrice, model: string): boolean {
  const isOptional = PLAIN_KINDS.includes(kind) || (kind === 'output_image' && model.includes('image'));
  return isOptional && prices[`${kind}_mtok`] === undefined;
}

/** Returns the price for a number of input tokens. If the number is above the start of a tier, the tier applies. */
function priceAt(price: ModelPrice[string], inputTokens: number): number | undefined {
  if (typeof price !== 'object') return price;
  let found = { start: Number.NEGATIVE_INFINITY, price: price.base };
  for (const tier of price.tiers) if (inputTokens > tier.start && tier.start > found.start) found = tier;
  return found.price;
}
