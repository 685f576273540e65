import { describe, expect, test } from 'vitest';
import { loadEngine, SqliteConnection } from '#src/receiver/store/sqlite/file/database.ts';
import type { Repriced } from '#src/receiver/store/sqlite/repricing.ts';
import { openHandler } from '#src/receiver/store/sqlite/threads/worker.ts';
import { DEFAULT_SCOPE, type PriceOptions, parsedQuery, type RunOperation, type SqliteStore } from '#src/receiver.ts';
import { id, simple } from './conformance/support.ts';
import { LIMITS, openLocalStore, storePath } from './local-store.ts';

const START = '2026-11-20T07:00:00.000000Z';
const NO_TABLE: PriceOptions = { priceTable: { name: 'none', providers: [] } };
const PRICES: PriceOptions = { prices: { 'gpt-x': { input: 2, output: 10, cache_read: 1 } }, ...NO_TABLE };

/** A trace with two calls of 1,000,000 input tokens, half of them cached. The second call is nested. */
function call(index: number, changes: object = {}): RunOperation {
  const isNested = index % 2 === 0;
  const usage_metadata = {
    input_tokens: 1_000_000,
    output_tokens: 0,
    input_token_details: { cache_read: 500_000 },
    ...changes,
  };
  return simple(index, {
    name: `call ${index}`,
    run_type: 'llm',
    start_time: START,
    ...(isNested && { trace_id: id(index - 1), parent: index - 1 }),
    extra: { metadata: { ls_model_name: 'gpt-x', user_id: 'ada' } },
    outputs: { usage_metadata },
  });
}

async function reprice(path: string, options: PriceOptions): Promise<Omit<Repriced, 'last' | 'isDone'>> {
  const handler = await openHandler({ path, reprice: options }, () => {});
  const total = { runs: 0, changed: 0, unknown: {} as Record<string, number> };
  for (let last = 0, isDone = false; !isDone; ) {
    const step = (await handler.call('step', [last])) as Repriced;
    ({ last, isDone } = step);
    total.runs += step.runs;
    total.changed += step.changed;
    for (const [reason, runs] of Object.entries(step.unknown))
      total.unknown[reason] = (total.unknown[reason] ?? 0) + runs;
  }
  handler.close();
  return total;
}

/** The cost in every place in which a store shows it. */
async function costs(store: SqliteStore, index: number) {
  const { items } = await store.list(DEFAULT_SCOPE, parsedQuery({ filter: `name:"call ${index}"` }));
  const traces = await store.traces(DEFAULT_SCOPE, parsedQuery({ traceId: id(index) }));
  const { total } = await store.statistics(DEFAULT_SCOPE, parsedQuery({}));
  const users = await store.statistics(DEFAULT_SCOPE, parsedQuery({ groupBy: 'user' }));
  const usages = [items[0], traces.items[0]?.trace, total, users.groups[0]].map((one) => one?.usage);
  const found = usages.map((usage) => usage?.total_cost);
  const saved = usages.map((usage) => usage?.cache_savings);
  const unpriced = [total, users.groups[0]].map((one) => one?.unpriced_calls);
  return { found, saved, unpriced, details: await store.details(DEFAULT_SCOPE, id(index)) };
}

async function sqlIn(path: string, ...statements: string[]): Promise<unknown[]> {
  const connection = new SqliteConnection(await loadEngine(), path);
  const rows = statements.map((sql) => connection.all(sql));
  connection.close();
  return rows;
}

describe('the costs of stored runs', () => {
  test('follow other prices in lists, traces and statistics, without the outputs', async () => {
    const path = storePath();
    const store = await openLocalStore(path, { ...LIMITS, ...NO_TABLE });
    await store.apply(DEFAULT_SCOPE, [call(1), call(2), call(3, { total_cost: 5 })]);
    const before = await costs(store, 1);
    expect(before).toMatchObject({
      found: [undefined, undefined, 5, 5],
      saved: Array(4).fill(undefined),
      unpriced: [2, 2],
    });
    expect(before.details).toMatchObject({ no_cost: 'no price for model "gpt-x"' });
    await sqlIn(path, 'DELETE FROM payloads');
    expect(await reprice(path, PRICES)).toEqual({ runs: 2, changed: 2, unknown: {} });
    const after = await costs(store, 1);
    // Half a million tokens cost 1 instead of 2 dollars per million.
    expect(after).toMatchObject({ found: [1.5, 3, 8, 8], saved: [0.5, 1, 1, 1], unpriced: [undefined, undefined] });
    expect(after.details?.price_table).toMatch(/^prices [0-9a-f]{8}$/);
    expect(after.details).not.toHaveProperty('no_cost');
    expect((await costs(store, 3)).details).not.toHaveProperty('price_table');
    expect(await reprice(path, PRICES)).toEqual({ runs: 2, changed: 0, unknown: {} });
  });

  test('disappear if the prices are gone', async () => {
    const path = storePath();
    const store = await openLocalStore(path, { ...LIMITS, ...PRICES });
    await store.apply(DEFAULT_SCOPE, [call(1), call(2)]);
    expect((await costs(store, 1)).found).toEqual([1.5, 3, 3, 3]);
    const unknown = { 'no price for model "gpt-x"': 2 };
    expect(await reprice(path, NO_TABLE)).toEqual({ runs: 2, changed: 2, unknown });
    expect((await costs(store, 1)).found).toEqual([undefined, undefined, undefined, undefined]);
  });

  test('change in several short transactions, and the receiver keeps writing', async () => {
    const path = storePath();
    const store = await openLocalStore(path, { ...LIMITS, ...NO_TABLE });
    const calls = Array.from({ length: 1_000 }, (_, at) => call(2 * at + 1));
    await store.apply(DEFAULT_SCOPE, calls);
    const writing = store.apply(DEFAULT_SCOPE, [call(5_001)]);
    expect((await reprice(path, PRICES)).changed).toBeGreaterThanOrEqual(1_000);
    await writing;
    await reprice(path, PRICES);
    await store.apply(DEFAULT_SCOPE, [{ ...call(5_003), fields: { ...call(5_003).fields, outputs: {} } }]);
    const { total } = await store.statistics(DEFAULT_SCOPE, parsedQuery({}));
    expect([total.runs, total.usage?.total_cost]).toEqual([1_002, 1_001 * 1.5]);
  });

  test('do not count as changes of their traces, which would then be stored for longer', async () => {
    const path = storePath();
    const store = await openLocalStore(path, { ...LIMITS, ...NO_TABLE });
    await store.apply(DEFAULT_SCOPE, [call(1), call(2)]);
    const before = await sqlIn(path, 'SELECT seq, changed_ms FROM traces');
    await reprice(path, PRICES);
    expect(await sqlIn(path, 'SELECT seq, changed_ms FROM traces')).toEqual(before);
  });
});
