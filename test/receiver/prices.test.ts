import { waitForUpdate } from '@pydantic/genai-prices';
import { describe, expect, test } from 'vitest';
import { BUILT_IN_PROVIDERS, checkedTable } from '#src/receiver/domain/cost/price-table.ts';
import { addCost, checkedPrices } from '#src/receiver/domain/cost/prices.ts';
import { DEFAULT_SCOPE, MemoryStore, PriceList, parsedQuery, type UnpricedRun, type Usage } from '#src/receiver.ts';
import { simple } from './conformance/support.ts';
import { LIMITS, openLocalStore } from './local-store.ts';

const prices = { 'gpt-x': { input: 2.5, output: 10 }, 'gpt-x-mini': { input: 1, output: 2 } };

const costOf = (model: string | undefined, usage: Usage) => {
  const run = { ...(model && { model }), usage: { details: {}, ...usage } } as UnpricedRun;
  addCost(run, new PriceList({ prices }));
  return run.usage?.total_cost;
};

test.each<[model: string | undefined, cost: number | undefined, usage?: Usage]>([
  ['gpt-x-2026-01-31', 2],
  ['gpt-x-mini-2026', 0.6],
  ['gpt-x@1', 2],
  ['gpt-xl', undefined],
  ['gpt', undefined],
  [undefined, undefined],
  ['gpt-x', 0.00001, { output_tokens: 1, total_tokens: 1 }],
])('tokens of the model %s cost %s', (model, cost, usage = { input_tokens: 400_000, output_tokens: 100_000 }) => {
  expect(costOf(model, usage)).toBe(cost);
});

test('prices are numbers by model', () => {
  expect(checkedPrices(prices)).toBe(prices);
  for (const m of [1, { input: 1 }, { input: -1, output: 1 }, { input: 1, output: '2' }]) {
    expect(() => checkedPrices({ m })).toThrow('Expected the price of "m" to be an object with numbers from 0');
  }
  expect(() => checkedPrices([])).toThrow('Expected `prices` to be an object, got an array');
  expect(() => new MemoryStore({ prices: { m: 1 } as never })).toThrow('Expected the price of "m"');
});

test('numbers that cannot be token counts or costs are not added up', async () => {
  for (const store of [new MemoryStore({ prices }), await openLocalStore(undefined, { ...LIMITS, prices })]) {
    for (const [at, invalid] of [1_000_000_001, 1e21, -1, 1.5].entries()) {
      const usage_metadata = { input_tokens: 2, output_tokens: invalid, total_tokens: invalid, total_cost: 1.5 };
      await store.apply(DEFAULT_SCOPE, [simple(at + 1, { run_type: 'llm', outputs: { usage_metadata } })]);
    }
    const { usage } = (await store.statistics(DEFAULT_SCOPE, parsedQuery({}))).total;
    expect(usage).toEqual({ input_tokens: 8, total_tokens: 8, total_cost: 6 });
  }
});

const model = (id: string, match: object, prices: object) => ({ id, match, prices });
const flat = (input_mtok: number) => ({ input_mtok, output_mtok: 10 });

const PROVIDERS = [
  {
    id: 'acme',
    provider_match: { or: [{ equals: 'ACME inc' }, { and: [{ starts_with: 'acme' }, { ends_with: 'cloud' }] }] },
    model_match: { regex: '^big-' },
    fallback_model_providers: ['origin'],
    models: [
      model('big-1', { starts_with: 'big-1' }, flat(1)),
      model('dated', { equals: 'dated-2026-01-31' }, [
        { prices: flat(2) },
        { constraint: { start_date: '2026-06-01' }, prices: flat(3) },
      ]),
    ],
  },
  { id: 'origin', models: [model('small', { contains: 'small' }, flat(4))] },
  {
    id: 'north',
    models: [model('Shared', { equals: 'shared' }, flat(5)), model('rival', { equals: 'rival' }, flat(6))],
  },
  {
    id: 'south',
    models: [model('other', { contains: 'shared' }, flat(5)), model('rivals', { contains: 'rival' }, flat(7))],
  },
];

const TABLE = { name: 'my-prices.json 1a2b3c4d', providers: PROVIDERS };

function inputPrice(provider: string | undefined, name: string, start_time = '2026-01-01T00:00:00.000000Z') {
  const usage = { input_tokens: 1_000_000, output_tokens: 0, total_tokens: 1_000_000, details: {} };
  const run = { model: name, start_time, usage: { ...usage, ...(provider && { provider }) } } as unknown as UnpricedRun;
  const { price_table } = addCost(run, new PriceList({ priceTable: TABLE }));
  return [run.usage?.total_cost, price_table];
}

describe('a table of prices instead of the built-in one', () => {
  test.each<[provider: string | undefined, model: string, price: number, at?: string]>([
    ['acme', 'big-1', 1],
    ['acme', 'BIG-1-preview', 1],
    ['Acme Inc', 'big-1', 1],
    ['acme-europe-cloud', 'big-1', 1],
    [undefined, 'big-1', 1],
    ['acme', 'dated-20260131', 2],
    ['acme', 'dated-2026-01-31', 3, '2026-06-01T00:00:00.000000Z'],
    ['acme', 'a-small-one', 4],
    ['origin', 'small', 4],
    [undefined, 'small', 4],
    [undefined, 'shared', 5],
    ['south', 'rival', 7],
  ])('contains the model of %s with the name %s', (provider, name, price, at) => {
    expect(inputPrice(provider, name, at)).toEqual([price, TABLE.name]);
  });

  test.each([
    ['acme', 'big-2'],
    ['origin', 'big-1'],
    ['other', 'big-1'],
    [undefined, 'a-small-one'],
    [undefined, 'rival'],
    ['openai', 'gpt-5'],
  ])('does not contain the model of %s with the name %s', (provider, name) => {
    expect(inputPrice(provider, name)).toEqual([undefined, undefined]);
  });
});

test('every provider of the built-in table is asked for a model whose provider is unknown', async () => {
  const providers = await waitForUpdate();
  expect(BUILT_IN_PROVIDERS.split(/\s+/)).toEqual(providers?.map(({ id }) => id));
});

test.each<[wrong: unknown, message: string]>([
  [{}, 'Expected an array of providers with prices, got an object'],
  [[1], 'Expected provider 0 of the prices to be an object with `id` and `models`'],
  [[{ id: 'a' }], 'Expected provider 0 of the prices to be an object with `id` and `models`'],
  [[{ id: 'a', models: [{}] }], 'Expected each model of the provider "a" to be an object with `id`'],
  [[{ id: 'a', provider_match: { regex: '(' }, models: [] }], 'Provider "a" of the prices is invalid: Invalid regular'],
  [[{ id: 'a', models: [model('m', {}, flat(1))] }], 'The model "m" of the provider "a" is invalid: `match` has none'],
  [[{ id: 'a', models: [model('m', { equals: 'm' }, [])] }], 'is invalid: `prices` has no object with prices'],
  [[{ id: 'a', models: [model('m', { equals: 'm' }, flat(-1))] }], 'is invalid: Invalid price value for input_mtok'],
  [
    [{ id: 'a', models: [model('m', { equals: 'm' }, { cache_read_mtok: 1 })] }],
    'is invalid: Missing ancestor price key input_mtok',
  ],
  [
    [{ id: 'a', models: [model('m', { equals: 'm' }, [{ constraint: { from: 1 }, prices: flat(1) }])] }],
    'is invalid: Expected a start-date or time-of-day price constraint',
  ],
])('the table %j is invalid', (providers, message) => {
  expect(() => checkedTable({ name: 'x', providers: providers as object[] })).toThrow(message);
  expect(() => new MemoryStore({ priceTable: { name: 'x', providers: providers as object[] } })).toThrow(message);
});
