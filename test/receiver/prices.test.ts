import { expect, test } from 'vitest';
import { addCost, checkedPrices } from '#src/receiver/domain/prices.ts';
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
