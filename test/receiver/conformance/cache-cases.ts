import type { RunFields, RunOperation } from '#src/receiver/domain/run-message.ts';
import type { Usage } from '#src/receiver/domain/run-view.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import { equal, listed, patch, post, SCOPE, type StoreCase, statisticsOf, traced } from './support.ts';

const USER = { user_id: 'ada', thread_id: 't' };

/**
 * Outputs of a call of Claude Opus 5, which costs 5 dollars per million input tokens, 0.5 from a cache, 6.25 to a cache,
 * and 25 for output.
 */
function usage(input_tokens: number, details: Readonly<Record<string, number>> = {}, more: object = {}): RunFields {
  return { outputs: { usage_metadata: { input_tokens, output_tokens: 0, input_token_details: details, ...more } } };
}

function call(number: number, fields: RunFields, { model = 'claude-opus-5', source = 'openai' } = {}): RunOperation {
  const metadata = { ls_model_name: model, ls_provider: 'anthropic', recorded_by: [source], ...USER };
  return post(number, { parent: 1, run_type: 'llm', ms: 30_000 - number * 1_000, extra: { metadata }, ...fields });
}

/** 9,000 × 0.5 + 1,000 × 5 = 9,500 millionths of a dollar, instead of 10,000 × 5 = 50,000. */
const READ = usage(10_000, { cache_read: 9_000 });
/** 8,000 × 6.25 + 1,000 × 5 = 55,000 millionths of a dollar, instead of 9,000 × 5 = 45,000. */
const WRITTEN = usage(9_000, { cache_creation: 8_000 });
const root = post(1, { ms: 60_000, extra: { metadata: USER }, tags: ['x'], ...READ });

/** Tokens, cached tokens, and cost and savings in millionths of a dollar. */
function shown(found: Usage | undefined): (number | undefined)[] {
  const { input_tokens, cached_tokens, total_cost, cache_savings } = found ?? {};
  const millionths = [total_cost, cache_savings].map((dollars) => dollars && Math.round(dollars * 1e8) / 100);
  return [input_tokens, cached_tokens, ...millionths];
}

/** Asserts the usage of the whole trace, wherever a store shows it. */
async function checkTotals(store: Store, expected: readonly (number | undefined)[]): Promise<void> {
  const [traces, threads, byUser] = await Promise.all([
    store.traces(SCOPE, parsedQuery({})),
    store.threads(SCOPE, parsedQuery({})),
    statisticsOf(store, { groupBy: 'user', buckets: 1, series: 1 }),
  ]);
  equal(shown(traces.items[0]?.trace.usage), expected, 'trace');
  equal(shown(threads.items[0]?.usage), expected, 'thread');
  for (const figures of [byUser.total, byUser.groups[0], byUser.buckets[0], byUser.groups[0]?.buckets?.[0]]) {
    equal(shown(figures?.usage), expected, 'statistics by user');
  }
}

export const cacheCases: readonly StoreCase[] = [
  {
    title: 'Cached tokens, and what they saved, are counted like other usage',
    run: async (store) => {
      const unpriced = call(4, usage(200, { cache_read: 100 }), { model: 'a-model' });
      const reported = call(5, usage(1_000, { cache_read: 500 }, { total_cost: 0.25 }));
      await store.apply(SCOPE, [root, call(2, READ), call(3, WRITTEN), unpriced, reported]);
      const { items } = await store.list(SCOPE, parsedQuery({ order: 'ascending' }));
      equal(
        items.map((run) => shown(run.usage)),
        [
          [10_000, 9_000, undefined, undefined],
          [10_000, 9_000, 9_500, 40_500],
          [9_000, undefined, 55_000, -10_000],
          [200, 100, undefined, undefined],
          [1_000, 500, 250_000, undefined],
        ],
      );
      await checkTotals(store, [20_200, 9_600, 314_500, 30_500]);
    },
  },
  {
    title: 'Filters compare the share of cached input tokens, in a list of traces that of the trace',
    run: async (store) => {
      await store.apply(SCOPE, [
        post(1),
        call(2, usage(100, { cache_read: 90 })),
        call(3, usage(100, { cache_read: 50 })),
        call(4, usage(100)),
        call(5, usage(0)),
        post(6, usage(100, { cache_read: 20 })),
      ]);
      const expected: [filter: string, runs: number[], traces: number[]][] = [
        ['cached<50%', [4, 6], [1, 6]],
        ['cached>=50%', [2, 3], []],
        ['cached:0.2..0.5', [3, 6], [1, 6]],
        ['cached:0', [4], []],
        ['-cached>=50%', [1, 4, 5, 6], [1, 6]],
        ['any(cached>=0.9)', [1, 2, 3, 4, 5], [1]],
      ];
      for (const [filter, runs, traces] of expected) {
        equal(await listed(store, { filter, order: 'ascending' }), runs, filter);
        equal(await traced(store, { filter, order: 'ascending' }), traces, filter);
        equal((await statisticsOf(store, { filter })).total.runs, runs.length, filter);
      }
    },
  },
  {
    title: 'Cached tokens follow late usage and further records of a call',
    run: async (store) => {
      await store.apply(SCOPE, [root, call(2, READ)]);
      await store.apply(SCOPE, [patch(2, WRITTEN)]);
      await checkTotals(store, [9_000, undefined, 55_000, -10_000]);
      await store.apply(SCOPE, [patch(2, READ)]);
      const inner = call(3, { ...READ, parent_run_id: call(2, {}).id }, { source: 'fetch' });
      const mark = patch(3, { extra: { metadata: { same_call: call(2, {}).id } } });
      await store.apply(SCOPE, [inner, call(4, READ), mark]);
      await checkTotals(store, [20_000, 18_000, 19_000, 81_000]);
    },
  },
];
