// Statistics, keys and changes of stores in ClickHouse, which runs inside another process (see clickhouse/shim.mjs).
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { RunOperation } from '#src/receiver/domain/run-message.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import { ClickHouseStore } from '#src/receiver/store/clickhouse/clickhouse-store.ts';
import { ClickHouseKeys } from '#src/receiver/store/clickhouse/keys.ts';
import type { Store, StoreChange } from '#src/receiver/store/store.ts';
import { MemoryStore, type StatisticsQuery } from '#src/receiver.ts';
import { feedback, id, post, second } from '../receiver/conformance/support.ts';
import { startDatabase } from './clickhouse/database.ts';

const { url, db, stop } = await startDatabase();
afterAll(stop);

async function openStore(): Promise<ClickHouseStore> {
  const store = await ClickHouseStore.open(url, { batchDelayMs: 0 });
  onTestFinished(() => store.close());
  return store;
}

const RUNS = 300;

/** Returns runs in traces of 10 runs. Small prime numbers give each field its own period. */
function mixedRuns(): RunOperation[] {
  return Array.from({ length: RUNS }, (_, at) => {
    const number = at + 1;
    const root = at - (at % 10) + 1;
    const pick = <Value>(prime: number, ...values: [Value, ...Value[]]): Value =>
      values[((number * 31) % prime) % values.length] ?? values[0];
    return post(number, {
      ...(number !== root && { parent: root }),
      ...(number % 7 > 0 && { ms: (number * 37) % 2_000 }),
      ...(number % 13 === 0 && { error: 'Error: x' }),
      ...(number % 3 > 0 && { tags: pick<string[]>(17, ['x'], ['x', 'y'], ['y', 'y'], []) }),
      name: pick(11, 'a', 'b', 'c', '', 'ü'),
      run_type: pick(19, 'llm', 'chain', 'embedding', 'tool'),
      session_name: pick(23, 'shop', 'other'),
      outputs: { usage_metadata: { input_tokens: number % 29, output_tokens: 1, total_cost: (number % 5) / 4 } },
      extra: {
        metadata: {
          user_id: pick(29, 'ada', 'bob', ''),
          plan: pick<unknown>(31, 1, null, 'pro', { a: 1 }),
          ...(number % 2 === 0 && { thread_id: `thread ${number % 41}`, ls_model_name: pick(37, 'small', 'large') }),
        },
      },
    });
  });
}

describe('statistics in ClickHouse', () => {
  const scope = { tenant: 'statistics' };
  const memory = new MemoryStore();
  let store: ClickHouseStore;

  beforeAll(async () => {
    store = await ClickHouseStore.open(url, { batchDelayMs: 0 });
    for (const each of [store, memory] satisfies Pick<Store, 'apply' | 'addFeedback'>[]) {
      await each.apply(scope, mixedRuns());
      for (let number = 1; number <= RUNS; number += 23) {
        const { score: _, ...given } = feedback(number, { id: id(1_000 + number), key: `key ${number % 2}` });
        await each.addFeedback(scope, number % 3 === 0 ? given : { ...given, score: number % 5 });
      }
    }
    await store.settled();
  });
  afterAll(() => store.close());

  const queries: StatisticsQuery[] = [
    {},
    { groupBy: 'model', series: 2 },
    { groupBy: 'run_type', series: 2, buckets: 500 },
    { groupBy: 'project', filter: `since:${second(20)}` },
    { groupBy: 'status', filter: `before:${second(200)}`, buckets: 1 },
    { groupBy: 'thread', filter: `since:${second(10)} before:${second(90.5)}` },
    { groupBy: 'user', groups: 1, series: 1 },
    { groupBy: 'tag', filter: 'feedback."key 1"' },
    { groupBy: 'tag', groups: 1, series: 3, buckets: 7 },
    { groupBy: 'meta.plan', series: 20 },
    { groupBy: 'meta.plan', filter: `since:${second(1_000)}` },
    { groupBy: 'meta.none', project: 'other' },
    { groupBy: 'user', filter: 'name:a' },
    { groupBy: 'name', filter: 'user:ada tag:x any(type:llm)' },
  ];

  test.each(queries.map((query) => [JSON.stringify(query), query] as const))(
    'equal those of a MemoryStore: %s',
    async (_text, query) => {
      expect(await store.statistics(scope, parsedQuery(query))).toEqual(
        await memory.statistics(scope, parsedQuery(query)),
      );
    },
  );
});

test('Keys in ClickHouse are used, and revoked once', async () => {
  const keys = new ClickHouseKeys(db);
  const store = await openStore();
  const key = { id: 'later', hash: 'ff', tenant: 'a', permission: 'read' as const, createdMs: 5 };
  const named = { ...key, id: 'first', name: 'page', project: 'shop', createdMs: 4 };
  expect([await store.key('later'), await keys.revokeKey('later', 3)]).toEqual([undefined, undefined]);
  await keys.addKey(key);
  await keys.addKey(named);
  await store.useKey('later', 9);
  // The clock has been set back.
  expect(await keys.revokeKey('later', 3)).toEqual({ ...key, usedMs: 9, revokedMs: 3 });
  await store.useKey('later', 12);
  const revoked = { ...key, usedMs: 12, revokedMs: 3 };
  expect(await keys.revokeKey('later', 20)).toEqual(revoked);
  expect(await store.key('later')).toEqual(revoked);
  expect(await keys.keys()).toEqual([named, revoked]);
});

test('Changes in ClickHouse are reported once by each receiver, and only while there are listeners', async () => {
  const [first, second] = [await openStore(), await openStore()];
  const scope = { tenant: 'changes' };
  const apply = async (store: ClickHouseStore, number: number): Promise<void> => {
    await store.apply(scope, [post(number)]);
    await store.settled();
  };
  const received: string[][] = [[], []];
  const listener = (at: number) => (change: StoreChange) => void received[at]?.push(...change.traceIds);
  const stop = first.subscribe(scope, listener(0));
  second.subscribe(scope, listener(1));
  second.subscribe({ tenant: 'other' }, listener(1));
  await apply(second, 2);
  expect(received[1]).toEqual([id(2)]);
  await expect.poll(() => received[0]).toEqual([id(2)]);
  await apply(first, 3);
  await expect.poll(() => received[1]).toEqual([id(2), id(3)]);
  stop();
  await apply(second, 4);
  const later: string[] = [];
  first.subscribe({ tenant: 'later' }, ({ traceIds }) => void later.push(...traceIds));
  await second.apply({ tenant: 'later' }, [post(5)]);
  await second.settled();
  // The first store has read the changes of the second again.
  await expect.poll(() => later).toEqual([id(5)]);
  expect(received).toEqual([
    [id(2), id(3)],
    [id(2), id(3), id(4)],
  ]);
});
