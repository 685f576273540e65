import { cut, shown } from '../../../base/text.ts';
import { type Checks, isObject } from '../../../config/checker.ts';
import { defined } from '../../../payload/fields.ts';
import { cost as amountOf } from '../../../payload/usage.ts';
import type { CostSource, RunSummary, UnpricedUsage, Usage } from '../run-view.ts';
import { USAGE_KEYS } from '../summary.ts';
import { cacheSavingsOf, costOf, type ModelPrices, TOKEN_KINDS, type TokenKind } from './cost.ts';
import { checkedTable, hashOf, invalid, type ListedModel, type PriceTable, TableReader } from './price-table.ts';
import { cachedTokensOf } from './usage.ts';

/**
 * Prices per million tokens. All prices use the same currency. If a price other than `input` and `output` is absent and
 * the table of prices contains the model, the price has the same ratio to `input` or `output` as in the table. For other
 * models, `cache_read` is `input`, `cache_write` is 1.25 × `input`, and `cache_write_1h` is 2 × `input`.
 */
export interface Price {
  input: number;
  output: number;
  /** Price of input tokens that are read from a cache. */
  cache_read?: number;
  /** Price of input tokens that are written to a cache for 5 minutes, or for an unknown time. */
  cache_write?: number;
  /** Price of input tokens that are written to a cache for 1 hour. */
  cache_write_1h?: number;
  /** Without a price of audio, the cost of a call with audio is unknown. The same applies to `output_audio`. */
  input_audio?: number;
  /** @default cache_read */
  cache_audio_read?: number;
  /** @default input */
  input_image?: number;
  /** @default cache_read */
  cache_image_read?: number;
  /** @default input */
  input_video?: number;
  /** @default output */
  output_reasoning?: number;
  output_audio?: number;
  output_image?: number;
  output_video?: number;
  /** Prices of service tiers, by name: `flex`, `priority`, `batch`. */
  tiers?: Readonly<Record<string, Price>>;
}

/**
 * Prices by model name, which apply instead of those in the table of prices. A price also applies to versions of the
 * model. For example, the price of `gpt-x` applies to `gpt-x-2026-01-31`.
 */
export type Prices = Readonly<Record<string, Price>>;

/** The result of `summaryOf`: a run without a calculated cost. */
export type UnpricedRun = RunSummary & { usage?: UnpricedUsage };

const MODELS_MAX = 1_000;
/** Length of model names, in characters, above which no price is looked up. */
const NAME_LENGTH_MAX = 300;

/** Prices from which the costs of runs are calculated. */
export class PriceList {
  readonly #own: Prices;
  /** Contains a hash of the prices, so that a cost shows whether it was calculated with the same prices. */
  readonly #ownName: string;
  readonly #table: TableReader;
  /** Finding a model compares its name with hundreds of names. */
  readonly #models = new Map<string, PricedModel | undefined>();

  /** Throws a RunspanError if a price is invalid. */
  constructor(options: PriceOptions = {}) {
    checkPriceOptions(options);
    const { prices = {}, priceTable } = options;
    this.#own = prices;
    this.#ownName = `prices ${hashOf(JSON.stringify(prices))}`;
    this.#table = new TableReader(priceTable);
  }

  /** @internal Returns the prices of a model. Returns undefined if there are none. */
  find(provider: string | undefined, model: string): PricedModel | undefined {
    const key = `${provider}\0${model}`;
    if (this.#models.has(key)) return this.#models.get(key);
    const listed = this.#table.find(provider, model);
    const own = this.#ownPriceOf(provider, model, listed);
    const found =
      own === undefined
        ? listed && new PricedModel(this.#table.name, listed)
        : new PricedModel(this.#ownName, listed, own);
    if (this.#models.size >= MODELS_MAX) this.#models.clear();
    this.#models.set(key, found);
    return found;
  }

  /**
   * Returns the configured price of a model. If the full model name has no price, uses the longest name that is
   * followed by a version, unless the table contains another model with the full name.
   */
  #ownPriceOf(provider: string | undefined, model: string, listed: ListedModel | undefined): Price | undefined {
    if (Object.hasOwn(this.#own, model)) return this.#own[model];
    const names = Object.keys(this.#own).filter(
      (name) => model.startsWith(name) && VERSION.test(model.slice(name.length)),
    );
    const [longest] = names.sort((a, b) => b.length - a.length);
    if (longest === undefined) return undefined;
    const other = this.#table.find(provider, longest);
    const isOther = listed !== undefined && other !== undefined && listed.id !== other.id;
    return isOther && !DATE.test(model.slice(longest.length)) ? undefined : this.#own[longest];
  }
}

/** Matches the character between a model's name and its version. */
const VERSION = /^[-@:]/;
const DATE = /^.20\d\d-?\d\d-?\d\d$/;

/** Prices for reads that need no costs. */
export const NO_PRICES: PriceList = new PriceList({ priceTable: { name: '', providers: [] } });

/** Prices with which the cost of a run is calculated. */
interface RunPrices {
  readonly all: ModelPrices;
  /** The prices without those that `RATIOS` assumes. */
  readonly known: ModelPrices;
}

/** The prices of a model: its own, or those of the table. */
class PricedModel {
  readonly table: string;
  readonly #listed: ListedModel | undefined;
  readonly #own: Price | undefined;
  #latest: { readonly own: Price; readonly listed: ModelPrices | undefined; readonly prices: RunPrices } | undefined;

  constructor(table: string, listed: ListedModel | undefined, own?: Price) {
    this.table = table;
    this.#listed = listed;
    this.#own = own;
  }

  /** Returns the prices for a service tier. Returns undefined if there are none. */
  pricesAt(startTime: string, tier: string | undefined): RunPrices | undefined {
    const listed = this.#listed?.pricesAt(startTime);
    // The table has no prices of service tiers.
    if (this.#own === undefined) return tier === undefined && listed ? { all: listed, known: listed } : undefined;
    const own = tier === undefined ? this.#own : ofTier(this.#own, tier);
    if (own === undefined) return undefined;
    if (this.#latest?.own !== own || this.#latest.listed !== listed) {
      const prices = { all: completed(own, RATIOS, listed), known: completed(own, {}, listed) };
      this.#latest = { own, listed, prices };
    }
    return this.#latest.prices;
  }
}

function ofTier({ tiers }: Price, tier: string): Price | undefined {
  return tiers !== undefined && Object.hasOwn(tiers, tier) ? tiers[tier] : undefined;
}

/**
 * Adds the cost to a run that reports none, if the cost can be calculated. Returns where the cost comes from, or why
 * the run has none. Replaces `run.usage`, so that it contains no details.
 */
export function addCost(run: UnpricedRun, list: PriceList): CostSource {
  const { usage: unpriced } = run;
  if (unpriced === undefined) return {};
  const usage: Usage = {};
  for (const key of USAGE_KEYS) if (unpriced[key] !== undefined) usage[key] = unpriced[key];
  run.usage = usage;
  const cached = cachedTokensOf(unpriced);
  if (cached !== undefined) usage.cached_tokens = cached;
  if (usage.total_cost !== undefined) return {};
  const result = calculated(run, unpriced, list);
  if (typeof result === 'string') return { no_cost: result };
  usage.total_cost = result.cost;
  if (result.savings !== undefined) usage.cache_savings = result.savings;
  return { price_table: result.table };
}

/** Returns the cost of a run, what caching saved, and the name of the prices, or why the cost is unknown. */
function calculated({ model, start_time }: RunSummary, usage: UnpricedUsage, list: PriceList) {
  const { details, provider } = usage;
  if (model === undefined) return 'no model';
  const isTooLong = Math.max(model.length, provider?.length ?? 0) > NAME_LENGTH_MAX;
  const found = isTooLong ? undefined : list.find(provider, model);
  if (found === undefined) return `no price for ${named(model, provider)}`;
  const prices = found.pricesAt(start_time, details?.tier);
  if (prices === undefined) return `no price of tier ${shown(details?.tier)} for ${named(model, provider)}`;
  const cost = costOf(usage, prices.all, model);
  if (typeof cost === 'string') return `${cost} for ${named(model, provider)}`;
  const known = prices.known === prices.all ? cost : costOf(usage, prices.known, model);
  return { cost, savings: cacheSavingsOf(known, usage, prices.known, model), table: found.table };
}

function named(model: string, provider: string | undefined): string {
  return `model ${shown(model)}${provider === undefined ? '' : ` of ${cut(provider, 80)}`}`;
}

/**
 * Prices with which a store calculates the cost of runs that report none. `MemoryStore` calculates a cost whenever it
 * reads a run, `SqliteStore` when it writes a run, and `ClickHouseStore` when a run changes. `ClickHouseStore` also does so
 * whenever it reads a single run or trace.
 */
export interface PriceOptions {
  /** Prices of models, which apply instead of those in the table. @default none */
  prices?: Prices;
  /**
   * Table of prices, instead of the table that is part of runspan. With `{ name: 'none', providers: [] }`, only
   * `prices` are used.
   * @default genai-prices 0.1.8
   */
  priceTable?: PriceTable;
}

export const PRICE_CHECKS: Checks<PriceOptions> = {
  prices: ['an object', isObject],
  priceTable: ['an object with `name` and `providers`', isObject],
};

/** Validates options. Throws a RunspanError if a price is invalid. */
export function checkPriceOptions({ prices, priceTable }: PriceOptions): void {
  if (prices !== undefined) checkedPrices(prices);
  if (priceTable !== undefined) checkedTable(priceTable);
}

/** Validates prices. If a price is invalid, throws a RunspanError that names the model. */
export function checkedPrices(given: unknown): Prices {
  if (!isObject(given)) throw invalid(`Expected \`prices\` to be an object, got ${shown(given)}`);
  for (const [model, price] of Object.entries(given)) checkPrice(shown(model), price);
  return given as unknown as Prices;
}

function checkPrice(model: string, price: unknown): void {
  if (!isObject(price) || amountOf(price.input) === undefined || amountOf(price.output) === undefined) {
    const expected = 'an object with numbers from 0 as `input` and `output`';
    throw invalid(`Expected the price of ${model} to be ${expected}`);
  }
  for (const [field, value] of Object.entries(price)) {
    if (field === 'tiers' && isObject(value)) {
      for (const [tier, own] of Object.entries(value)) checkPrice(`${model} in the tier ${shown(tier)}`, own);
    } else if (!TOKEN_KINDS.includes(field as TokenKind)) {
      throw invalid(
        `Expected the price of ${model} to have only the fields ${TOKEN_KINDS.join(', ')}, tiers: ${shown(field)}`,
      );
    } else if (amountOf(value) === undefined) {
      throw invalid(`Expected \`${field}\` in the price of ${model} to be a number from 0, got ${shown(value)}`);
    }
  }
}

type Ratios = Readonly<Partial<Record<TokenKind, number>>>;

/** Ratios of prices to the price of input, for models that the table of prices does not contain. */
const RATIOS: Ratios = { cache_read: 1, cache_write: 1.25, cache_write_1h: 2 };

/** Returns a price with the fields of genai-prices. See `Price` for the prices that are absent. */
function completed(own: Price, ratios: Ratios, listed: ModelPrices = {}): ModelPrices {
  const prices: Partial<Record<TokenKind, number | undefined>> = {};
  for (const kind of TOKEN_KINDS) {
    const side = kind.startsWith('output') ? 'output' : 'input';
    const ratio = ratioOf(listed, kind, side) ?? ratios[kind];
    prices[kind] = own[kind] ?? (ratio === undefined ? undefined : ratio * own[side]);
  }
  prices.cache_audio_read ??= prices.cache_read;
  prices.cache_image_read ??= prices.cache_read;
  return Object.fromEntries(Object.entries(defined(prices)).map(([kind, price]) => [`${kind}_mtok`, price]));
}

function ratioOf(listed: ModelPrices, kind: TokenKind, side: 'input' | 'output'): number | undefined {
  const [price, base] = [baseOf(listed[`${kind}_mtok`]), baseOf(listed[`${side}_mtok`])];
  return price === undefined || base === undefined || base === 0 ? undefined : price / base;
}

function baseOf(price: ModelPrices[string]): number | undefined {
  return typeof price === 'object' ? price.base : price;
}
