import type { StatisticsQuery } from '#src/receiver/domain/query.ts';
import type { RunOperation } from '#src/receiver/domain/run-message.ts';
import { MemoryStore } from '#src/receiver/store/memory-store.ts';
import { equal, feedback, id, post, SCOPE, type StoreCase, second, statisticsOf } from './support.ts';

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

const QUERIES: readonly StatisticsQuery[] = [
  {},
  { groupBy: 'model', series: 2 },
  { groupBy: 'run_type', series: 2, buckets: 500 },
  { groupBy: 'project', filter: `since:${second(20)}` },
  { groupBy: 'status', filter: `before:${second(200)}`, buckets: 1 },
  { groupBy: 'thread', filter: `since:${second(10)} before:${second(90.5)}` },
  { groupBy: 'user', groups: 1, series: 1 },
  { groupBy: 'user', groups: 1, rankBy: 'cost' },
  { groupBy: 'model', groups: 1, rankBy: 'errors', timeZone: 'Asia/Kolkata' },
  { groupBy: 'tag', filter: 'feedback."key 1"' },
  { groupBy: 'tag', groups: 1, series: 3, buckets: 7 },
  { groupBy: 'meta.plan', series: 20 },
  { groupBy: 'meta.plan', filter: `since:${second(1_000)}` },
  { groupBy: 'meta.none', project: 'other' },
  { groupBy: 'user', filter: 'name:a' },
  { groupBy: 'name', filter: 'user:ada tag:x any(type:llm)' },
];

export const figureCases: readonly StoreCase[] = [
  {
    title: 'Statistics of many runs equal those of a store in memory',
    run: async (store) => {
      const memory = new MemoryStore();
      for (const each of [store, memory]) {
        await each.apply(SCOPE, mixedRuns());
        for (let number = 1; number <= RUNS; number += 23) {
          const { score: _, ...given } = feedback(number, { id: id(1_000 + number), key: `key ${number % 2}` });
          await each.addFeedback(SCOPE, number % 3 === 0 ? given : { ...given, score: number % 5 });
        }
      }
      for (const query of QUERIES) {
        equal(await statisticsOf(store, query), await statisticsOf(memory, query), JSON.stringify(query));
      }
    },
  },
];
