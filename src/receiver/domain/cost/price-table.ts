import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { MatchLogic, ModelInfo, ModelPrice, Provider } from '@pydantic/genai-prices';
import { diagnostics } from '../../../base/diagnostics.ts';
import { RunspanError } from '../../../base/errors.ts';
import { messageOf, shown } from '../../../base/text.ts';
import { isObject } from '../../../config/checker.ts';
import { nodeModule } from '../../../platform/node.ts';
import type { ModelPrices } from './cost.ts';

/** Version of the table that is part of runspan. */
export const BUILT_IN_TABLE = 'genai-prices 0.1.8';
export const BUILT_IN_PROVIDERS: string = `anthropic arcee avian aws azure baseten cerebras cloudflare cohere cursor deepseek
 doubleword fireworks github-copilot google groq huggingface_cerebras huggingface_fireworks-ai huggingface_groq
 huggingface_hyperbolic huggingface_nebius huggingface_novita huggingface_nscale huggingface_ovhcloud
 huggingface_publicai huggingface_sambanova huggingface_together minimax mistral modal moonshotai novita openai
 openrouter ovhcloud perplexity quicksilverpro together typesafe voyageai x-ai zai zhipuai`;

/** A table of prices in the format of genai-prices: an array of providers with their models. */
export interface PriceTable {
  /** Name of the table, which is stored with each cost that is calculated from it. */
  readonly name: string;
  /** https://github.com/pydantic/genai-prices/blob/main/prices/new_data/v2/data.schema.json */
  readonly providers: readonly object[];
}

export interface ListedModel {
  readonly id: string;
  pricesAt(startTime: string): ModelPrices;
}

export class TableReader {
  readonly name: string;
  /** Undefined for the table that is part of runspan. */
  readonly #providers: readonly Provider[] | undefined;

  constructor(table: PriceTable | undefined) {
    this.name = table?.name ?? BUILT_IN_TABLE;
    this.#providers = table?.providers as readonly Provider[] | undefined;
  }

  /**
   * Finds a model by the rules of genai-prices, which know dated names and aliases. Without a provider, uses the one that the
   * table gives names of this form, or else any provider of the model if it has the same prices at all of them.
   */
  find(providerName: string | undefined, modelName: string): ListedModel | undefined {
    const provider = providerName?.toLowerCase().trim();
    const providerId = provider && (PROVIDER_IDS.find(([name]) => name.test(provider))?.[1] ?? provider);
    const modelId = modelName
      .toLowerCase()
      .trim()
      .replace(/^models\//, '');
    try {
      const model =
        this.#providers === undefined
          ? library().calcPrice({}, modelId, providerId === undefined ? {} : { providerId })?.model
          : foundIn(this.#providers, providerId, modelId);
      const found = model ?? (providerId === undefined ? agreedIn(this.#providers ?? builtIn(), modelId) : undefined);
      return found && listed(found);
    } catch (error) {
      // The file of the package may be missing if an application is bundled. Runs must still be stored.
      diagnostics.warnOnce('price table', `the receiver calculates no costs: ${messageOf(error)}`);
      return undefined;
    }
  }
}

/** Validates a table. Throws a RunspanError that names the model or provider that is invalid. */
export function checkedTable({ name, providers }: PriceTable): PriceTable {
  if (typeof name !== 'string') throw invalid(`Expected the name of a table of prices to be text, got ${shown(name)}`);
  if (!Array.isArray(providers)) throw invalid(`Expected an array of providers with prices, got ${shown(providers)}`);
  for (const [at, provider] of providers.entries()) {
    if (!isObject(provider) || typeof provider.id !== 'string' || !Array.isArray(provider.models)) {
      throw invalid(`Expected provider ${at} of the prices to be an object with \`id\` and \`models\``);
    }
    try {
      for (const key of ['provider_match', 'model_match']) if (provider[key] !== undefined) matches(provider[key], '');
    } catch (error) {
      throw invalid(`Provider ${shown(provider.id)} of the prices is invalid: ${messageOf(error)}`);
    }
    for (const model of provider.models) checkModel(provider.id, model);
  }
  return { name, providers };
}

function checkModel(providerId: string, model: unknown): void {
  const id: unknown = isObject(model) ? model.id : undefined;
  if (!isObject(model) || typeof id !== 'string') {
    throw invalid(`Expected each model of the provider ${shown(providerId)} to be an object with \`id\``);
  }
  try {
    matches(model.match, '');
    const { prices } = model;
    const all: unknown[] = Array.isArray(prices) ? prices.map((one) => isObject(one) && one.prices) : [prices];
    if (all.length === 0 || !all.every(isObject)) throw new Error('`prices` has no object with prices');
    // Calculating a price validates it.
    for (const price of all) anyModel({ id, match: ANY, prices: price as ModelPrice });
    anyModel({ ...(model as unknown as ModelInfo), match: ANY });
  } catch (error) {
    throw invalid(`The model ${shown(id)} of the provider ${shown(providerId)} is invalid: ${messageOf(error)}`);
  }
}

/** Returns the first digits of a hash, which tell the versions of a table apart. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

type Library = typeof import('@pydantic/genai-prices');

let loaded: Library | undefined;

/** Loads the package at its first use, because loading takes 30 ms. The build puts the package into a file of its own. */
function library(): Library {
  const { createRequire } = nodeModule('node:module');
  loaded ??= createRequire(import.meta.url)('@pydantic/genai-prices') as Library;
  return loaded;
}

/** Names of services that genai-prices does not know. */
const PROVIDER_IDS: readonly (readonly [name: RegExp, id: string])[] = [
  [/^az\.|azure/, 'azure'],
  [/^gcp\./, 'google'],
  [/^x_ai/, 'x-ai'],
  [/^together/, 'together'],
  [/^fireworks/, 'fireworks'],
];

function foundIn(providers: readonly Provider[], name: string | undefined, modelId: string): ModelInfo | undefined {
  const provider =
    name === undefined
      ? providers.find(({ model_match }) => model_match && matches(model_match, modelId))
      : (providers.find(({ id }) => id === name) ??
        providers.find(({ provider_match }) => provider_match && matches(provider_match, name)));
  const ids = provider?.fallback_model_providers ?? [];
  const candidates = [provider, ...ids.map((id) => providers.find((one) => one.id === id))];
  for (const one of candidates) {
    const found = one && modelOf(one, modelId);
    if (found) return found;
  }
  return undefined;
}

/** Finds a model of a provider, without those of the providers that it falls back to. */
function modelOf({ fallback_model_providers: _, ...provider }: Provider, modelId: string): ModelInfo | undefined {
  return library().calcPrice({}, modelId, { provider })?.model;
}

/**
 * Finds a model that some provider lists with exactly this id, if its prices are the same at each provider that knows the
 * name. Names that only resemble an id may be those of other models.
 */
function agreedIn(providers: readonly Provider[], modelId: string): ModelInfo | undefined {
  const isListed = ({ id }: ModelInfo): boolean => id.toLowerCase() === modelId;
  if (!providers.some(({ models }) => models.some(isListed))) return undefined;
  const models = providers.flatMap((provider) => modelOf(provider, modelId) ?? []);
  const found = models.find(isListed);
  return models.every(({ prices }) => isDeepStrictEqual(prices, found?.prices)) ? found : undefined;
}

/** Returns the providers of the table that is part of runspan. The package gives a single one at a time. */
function builtIn(): Provider[] {
  return BUILT_IN_PROVIDERS.split(/\s+/).flatMap((providerId) => library().findProvider({ providerId }) ?? []);
}

function matches(logic: unknown, text: string): boolean {
  const { or, and, equals, starts_with, ends_with, contains, regex } = logic as Partial<Record<string, unknown>>;
  if (Array.isArray(or)) return or.map((one) => matches(one, text)).includes(true);
  if (Array.isArray(and)) return !and.map((one) => matches(one, text)).includes(false);
  if (typeof equals === 'string') return text === equals.toLowerCase();
  if (typeof starts_with === 'string') return text.startsWith(starts_with.toLowerCase());
  if (typeof ends_with === 'string') return text.endsWith(ends_with.toLowerCase());
  if (typeof contains === 'string') return text.includes(contains.toLowerCase());
  if (typeof regex === 'string') return new RegExp(regex).test(text);
  throw new Error('`match` has none of the fields or, and, equals, starts_with, ends_with, contains and regex');
}

const SECOND_LENGTH = '2026-01-31T00:00:00'.length;

const ANY: MatchLogic = { starts_with: '' };

/** Returns the prices of a model. Throws if they are invalid. */
function anyModel(model: ModelInfo, timestamp: Date = new Date(0)): ModelPrices {
  const provider = { id: '', name: '', api_pattern: '', models: [model] };
  return library().calcPrice({}, 'any', { provider, timestamp })?.model_price ?? {};
}

function listed(model: ModelInfo): ListedModel {
  const { id, prices } = model;
  if (!Array.isArray(prices)) return { id, pricesAt: () => prices };
  const any: ModelInfo = { ...model, match: ANY };
  let latest: { readonly second: string; readonly prices: ModelPrices } | undefined;
  return {
    id,
    pricesAt: (startTime) => {
      // Finding the prices takes 15 µs, and runs that arrive together start at about the same time.
      const second = startTime.slice(0, SECOND_LENGTH);
      if (latest?.second === second) return latest.prices;
      const time = new Date(`${second}Z`);
      latest = { second, prices: Number.isNaN(time.getTime()) ? {} : anyModel(any, time) };
      return latest.prices;
    },
  };
}

export function invalid(message: string): RunspanError {
  return new RunspanError('RUNSPAN_INVALID_OPTION', message);
}
