import type { Scope, ThreadQuery } from '#src/receiver/domain/query/query.ts';
import type { RunOperation } from '#src/receiver/domain/run-message.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import { equal, feedback, id, patch, post, SCOPE, type StoreCase, second, simple, table, traced } from './support.ts';

function turn(number: number, thread: unknown, options: Parameters<typeof post>[1] = {}): RunOperation {
  return post(number, { ...options, extra: { metadata: { thread_id: thread, ...options.extra?.metadata } } });
}

async function threads(store: Store, query: ThreadQuery = {}, scope: Scope = SCOPE): Promise<string[]> {
  return (await store.threads(scope, parsedQuery(query))).items.map(({ thread }) => thread);
}

/** Runs in the order of their start times: a b a c a, and a run without a thread. */
const SOME = [
  turn(1, 'a', { name: 'ask', tags: ['x'] }),
  turn(2, 'b', { session_name: 'lab' }),
  turn(3, 'a', { ms: 500, inputs: { question: 'why me?' } }),
  turn(4, 'c', { error: 'Error: no', ms: 10 }),
  turn(5, 'a'),
  post(6),
];

/** Title, query and threads. */
const LISTS: [string, ThreadQuery, string[]][] = [
  ['the thread with the latest turn first', {}, ['a', 'c', 'b']],
  ['by name', { filter: 'name:ask' }, ['a']],
  ['by status', { filter: 'status:error,success' }, ['c', 'a']],
  ['by tag', { filter: 'tag:x' }, ['a']],
  ['by thread', { filter: 'thread:b' }, ['b']],
  ['by project', { project: 'shop' }, ['a', 'c']],
  ['by latency', { filter: 'latency<=20ms' }, ['c']],
  ['by words', { filter: 'why' }, ['a']],
  ['by time', { filter: `since:${second(2)} before:${second(5)}` }, ['c', 'a', 'b']],
  ['by a filter on the root run', { filter: 'thread:a OR -project:shop' }, ['a', 'b']],
  ['by a filter on any run', { filter: 'any(status:error)' }, ['c']],
  ['no match', { filter: 'name:none' }, []],
];

export const threadCases: readonly StoreCase[] = [
  ...table('Threads are listed', LISTS, async (store, [, query, expected]) => {
    await store.apply(SCOPE, SOME);
    equal(await threads(store, query), expected);
  }),
  {
    title: 'A thread adds up all turns, also those that do not match',
    run: async (store) => {
      const usage = { usage_metadata: { input_tokens: 1, output_tokens: 2, total_cost: 0.5 } };
      await store.apply(SCOPE, [
        turn(1, 'a', { ms: 100, inputs: { question: 'first?' }, outputs: { answer: 'one', ...usage } }),
        turn(2, 'a', { ms: 300, error: 'Error: no', extra: { metadata: { user_id: 'ada' } } }),
        post(3, { parent: 2, run_type: 'llm', ms: 10, error: 'Error: no', outputs: usage }),
        turn(4, 'a', { ms: 200, session_name: 'lab', outputs: { answer: 'last' } }),
        turn(5, 'b'),
      ]);
      await store.addFeedback(SCOPE, feedback(1, { id: id(901), score: 1 }));
      await store.addFeedback(SCOPE, feedback(3, { id: id(902), score: 0 }));
      const { items } = await store.threads(SCOPE, parsedQuery({ filter: 'status:error' }));
      equal(items, [
        {
          thread: 'a',
          user: 'ada',
          project: 'lab',
          turns: 3,
          errors: 1,
          failed_below: 0,
          start_time: second(1),
          last_start_time: second(4),
          latency_ms: { p50: 200, max: 300 },
          usage: { input_tokens: 2, output_tokens: 4, total_tokens: 6, total_cost: 1 },
          feedback: [{ key: 'liked', count: 2, average_score: 0.5 }],
          inputs_preview: 'first?',
          outputs_preview: 'last',
        },
      ]);
      const { items: pending } = await store.threads(SCOPE, parsedQuery({ filter: 'thread:b' }));
      equal(pending, [
        {
          ...{ thread: 'b', project: 'shop', turns: 1, errors: 0, failed_below: 0 },
          ...{ start_time: second(5), last_start_time: second(5) },
        },
      ]);
    },
  },
  {
    title: 'The figures of a thread are limited to the project of the query or the scope',
    run: async (store) => {
      await store.apply(SCOPE, [turn(1, 'a'), turn(2, 'a', { session_name: 'lab' }), turn(3, 'b')]);
      const figures = async (scope: Scope, project?: string) =>
        (await store.threads(scope, parsedQuery(project === undefined ? {} : { project }))).items.map(
          ({ thread, project: own, turns }) => [thread, own, turns],
        );
      equal(await figures(SCOPE), [
        ['b', 'shop', 1],
        ['a', 'lab', 2],
      ]);
      equal(await figures(SCOPE, 'lab'), [['a', 'lab', 1]]);
      equal(await figures({ ...SCOPE, project: 'lab' }), [['a', 'lab', 1]]);
      equal(await figures({ ...SCOPE, project: 'lab' }, 'shop'), []);
      equal(await figures({ tenant: 'other' }), []);
    },
  },
  {
    title: 'A thread belongs to the root run, and moves with its metadata',
    run: async (store) => {
      await store.apply(SCOPE, [
        post(1, { extra: { metadata: { session_id: 's' } } }),
        {
          ...simple(2, { parent: 1 }),
          fields: { ...simple(2, { parent: 1 }).fields, extra: { metadata: { thread_id: 't' } } },
        },
        post(3, { extra: { metadata: { conversation_id: 'c' } } }),
      ]);
      equal(await threads(store), ['c', 's']);
      await store.apply(SCOPE, [patch(1, { extra: { metadata: { thread_id: 'new' } } })]);
      equal(await threads(store), ['c', 'new']);
      await store.remove(SCOPE, { kind: 'thread', id: 'c' });
      equal(await threads(store), ['new']);
    },
  },
  {
    title: 'Pages of threads contain each thread once, and the turns of a thread are traces',
    run: async (store) => {
      const runs = Array.from({ length: 40 }, (_, at) => turn(at + 1, `t${(at * 7) % 9}`));
      await store.apply(SCOPE, runs);
      const found: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await store.threads(SCOPE, parsedQuery({ limit: 4, ...(cursor !== undefined && { cursor }) }));
        found.push(...page.items.map(({ thread }) => thread));
        cursor = page.next;
        if (cursor === undefined) break;
      }
      // The last run of each of the nine threads is among the last nine runs.
      const latest = [39, 38, 37, 36, 35, 34, 33, 32, 31].map((at) => `t${(at * 7) % 9}`);
      equal(found, latest);
      equal(await traced(store, { order: 'ascending', filter: 'thread:t0' }), [1, 10, 19, 28, 37]);
    },
  },
];
