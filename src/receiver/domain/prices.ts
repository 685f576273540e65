import { RunspanError } from '../../base/errors.ts';
import { shown } from '../../base/text.ts';
import { isObject } from '../../config/checker.ts';
import type { RunSummary, UnpricedUsage } from './run-view.ts';

/** Prices per million tokens. All prices use the same currency. */
export interface Price {
  input: number;
  output: number;
}

/**
 * Prices by model name. A price also applies to versions of the model. For example, the price of `gpt-x` applies to
 * `gpt-x-2026-01-31`.
 */
export type Prices = Readonly<Record<string, Price>>;

const TOKENS = 1_000_000;
/** Matches the character between a model's name and its version. */
const VERSION = /^[-@:]/;

/** Adds the cost to a run if the run reports no cost and the price of its model is known. */
export function withCost(summary: RunSummary & { usage?: UnpricedUsage }, prices: Prices): RunSummary {
  const { model, usage: unpriced } = summary;
  if (unpriced === undefined) return summary;
  const { cache_surcharge_tokens: _, ...usage } = unpriced;
  const price = model === undefined || usage.total_cost !== undefined ? undefined : priceOf(model, prices);
  return { ...summary, usage: price === undefined ? usage : { ...usage, total_cost: costOf(unpriced, price) } };
}

/** Validates prices. If a price is invalid, throws a RunspanError that names the model. */
export function checkedPrices(given: unknown): Prices {
  if (!isObject(given)) throw invalid(`Expected \`prices\` to be an object, got ${shown(given)}`);
  for (const [model, price] of Object.entries(given)) {
    if (isObject(price) && isAmount(price.input) && isAmount(price.output)) continue;
    throw invalid(
      `Expected the price of ${shown(model)} to be an object with numbers from 0 as \`input\` and \`output\``,
    );
  }
  return given as unknown as Prices;
}

/**
 * Returns the price of a model. If the full model name has no price, uses the longest listed name that is followed by a
 * version.
 */
function priceOf(model: string, prices: Prices): Price | undefined {
  if (Object.hasOwn(prices, model)) return prices[model];
  const names = Object.keys(prices).filter((name) => model.startsWith(name) && VERSION.test(model.slice(name.length)));
  const [longest] = names.sort((a, b) => b.length - a.length);
  return longest === undefined ? undefined : prices[longest];
}

function costOf(usage: UnpricedUsage, { input, output }: Price): number {
  const { input_tokens = 0, output_tokens = 0, cache_surcharge_tokens = 0 } = usage;
  return ((input_tokens + cache_surcharge_tokens) * input + output_tokens * output) / TOKENS;
}

function isAmount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value);
}

function invalid(message: string): RunspanError {
  return new RunspanError('RUNSPAN_INVALID_OPTION', message);
}
