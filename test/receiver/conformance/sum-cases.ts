import { ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { GroupKey, Scope } from '#src/receiver/domain/query/query.ts';
import type { RunOperation } from '#src/receiver/domain/run-message.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import { isoTimestamp } from '#src/run/time.ts';
import { cases } from '../../support/campaign.ts';
import {
  countedTokens,
  equal,
  feedback,
  id,
  matches,
  numberOf,
  outlined,
  patch,
  post,
  SCOPE,
  type StoreCase,
  second,
  simple,
  span,
  statisticsOf,
  table,
} from './support.ts';

const agent = (tokens: number) => ({ ms: 10, outputs: { usage_metadata: { total_tokens: tokens } } });
const model = (tokens: number) => ({ run_type: 'llm', ...agent(tokens) });
const asPatch = (operation: RunOperation): RunOperation => ({ ...operation, kind: 'patch' });

/**
 * Title, requests and expected number of tokens. Tokens are summed over model calls. Runs that are not model calls
 * count only if none of their nested runs has usage.
 */
const USAGE: [string, RunOperation[][], number][] = [
  ['a chain that repeats its model', [[post(1, agent(5)), simple(2, { parent: 1, ...model(5) })]], 5],
  ['a chain before its model', [[post(1, agent(5))], [simple(2, { parent: 1, ...model(6) })]], 6],
  ['a chain after its model in its trace', [[post(2, { parent: 1, ...model(6) })], [post(1, agent(5))]], 6],
  ['an agent without a model', [[post(1), simple(2, { parent: 1, ...agent(7) })], [simple(3, { parent: 2 })]], 7],
  ['an agent within an agent', [[post(1, agent(9)), simple(2, { parent: 1, ...agent(7) })]], 7],
  [
    'agents beside each other',
    [
      [post(1, agent(9)), simple(2, { parent: 1, ...agent(7) })],
      [simple(3, { parent: 1 }), simple(4, { parent: 3, ...model(2) })],
    ],
    9,
  ],
  ['a model within a model', [[post(1, model(3)), simple(2, { parent: 1, ...model(4) })]], 7],
  [
    'a model that ends later',
    [[post(1, agent(5)), simple(2, { parent: 1 })], [asPatch(simple(2, { parent: 1, ...model(6) }))]],
    6,
  ],
  [
    'a model whose parent arrives later',
    [[post(1, agent(5)), simple(3, { parent: 2, trace_id: id(1), ...model(6) })], [simple(2, { parent: 1 })]],
    6,
  ],
  [
    'a model below a run that is not visible',
    [[post(1, agent(5)), simple(3, { parent: 2, trace_id: id(1), ...model(6) })], [patch(2, { parent_run_id: id(1) })]],
    6,
  ],
  [
    'a run that becomes a model',
    [[post(1, agent(5)), simple(2, { parent: 1, ...agent(6) })], [asPatch(simple(2, { parent: 1, ...model(6) }))]],
    6,
  ],
  [
    'a model that moves to another agent',
    [
      [post(1, agent(5)), simple(2, { parent: 1, ...agent(3) }), simple(3, { parent: 2, ...model(6) })],
      [asPatch(simple(3, { parent: 1, ...model(6) }))],
    ],
    9,
  ],
  [
    'a model that loses its usage',
    [[post(1, agent(5)), simple(2, { parent: 1, ...model(6) })], [patch(2, { outputs: {} })]],
    5,
  ],
];

const within = (actual: number | undefined, expected: number): void =>
  ok(Math.abs((actual ?? 0) - expected) <= 0.011 * expected, `${actual} is not about ${expected}`);

const statistics: StoreCase[] = [
  ...table('Totals and statistics count the usage once', USAGE, async (store, [, requests, tokens]) => {
    for (const request of requests) await store.apply(SCOPE, request);
    const { items } = await store.traces(SCOPE, parsedQuery({ filter: 'tokens>=1' }));
    matches(items, [{ trace: { usage: { total_tokens: tokens } } }]);
    equal((await statisticsOf(store)).total.usage?.total_tokens, tokens);
    equal(await countedTokens(store, 1), tokens);
  }),
  {
    title: 'Statistics of no runs are empty',
    run: async (store) => {
      const none = { runs: 0, errors: 0 };
      const total = { ...none, pending: 0, roots: { ...none, failed_below: 0, incomplete: 0 }, model_calls: none };
      equal(await statisticsOf(store), { total, groups: [], buckets: [] });
    },
  },
  {
    title: 'Statistics count runs, errors, tokens and cost, and have percentiles of latencies',
    run: async (store) => {
      const usage_metadata = { input_tokens: 1, output_tokens: 2, total_cost: 0.25 };
      const runs = Array.from({ length: 10 }, (_, at) =>
        post(at + 1, { name: 'a', ms: (at + 1) * 10, outputs: { usage_metadata } }),
      );
      await store.apply(SCOPE, [...runs, post(11, { name: 'b', error: 'Error: x', ms: 5 }), post(12, { name: 'b' })]);
      const { total, groups } = await statisticsOf(store);
      const usage = { input_tokens: 10, output_tokens: 20, total_tokens: 30, total_cost: 2.5 };
      matches(total, { runs: 12, pending: 1, errors: 1, usage });
      // The 11 latencies are 5, 10, 20, … 100. By nearest rank, p50 is the 6th value, p90 is the 10th, and the other
      // percentiles are the 11th.
      for (const [name, expected] of [
        ['p50', 50],
        ['p90', 90],
        ['p95', 100],
        ['p99', 100],
        ['max', 100],
      ] as const) {
        within(total.latency_ms?.[name], expected);
      }
      matches(groups, [
        { group: 'a', runs: 10, pending: 0, errors: 0, usage },
        { group: 'b', runs: 2, pending: 1, errors: 1 },
      ]);
      within(groups[1]?.latency_ms?.p99, 5);
    },
  },
  {
    title: 'Each percentile is within 1 % of the nearest rank, and exact below 50 µs',
    run: async (store) => {
      const latency = fc.oneof(fc.nat(2), fc.nat(99), fc.nat(9_999), fc.nat(2_000_000_000));
      const test = fc.asyncProperty(fc.array(latency, { minLength: 1, maxLength: 20 }), async (all) => {
        const scope = { tenant: randomUUID() };
        const [start_time, ends] = [isoTimestamp(0), all.map(isoTimestamp)];
        await store.apply(
          scope,
          ends.map((end_time, at) => simple(at + 1, { start_time, end_time })),
        );
        const { p50, p99, max } = (await statisticsOf(store, {}, scope)).total.latency_ms ?? { p50: 0, p99: 0, max: 0 };
        const sorted = all.toSorted((a, b) => a - b);
        for (const [ms, rank] of [
          [p50, 0.5],
          [p99, 0.99],
          [max, 1],
        ] as const) {
          const us = sorted[Math.ceil(rank * all.length) - 1] ?? 0;
          ok(Math.abs(1_000 * ms - us) <= (us < 50 ? 1e-9 : us / 100), `${ms} ms, not ${us} µs`);
        }
      });
      await fc.assert(test, { numRuns: cases(60), examples: [[[0]], [[1]], [[1, 2]], [[58]]] });
    },
  },
  {
    title: 'Statistics are grouped, the group with most runs first',
    run: async (store) => {
      const named = (name: string) => ({ extra: { metadata: { ls_model_name: name } } });
      await store.apply(SCOPE, [
        post(1, named('x')),
        post(2, named('y')),
        post(3, named('y')),
        post(4, { session_name: 'b' }),
      ]);
      equal(await groupsOf(store, { groupBy: 'model' }), 'y 2, x 1');
      equal(await groupsOf(store, { groupBy: 'model', groups: 1 }), 'y 2');
      equal(await groupsOf(store, { groupBy: 'project' }), 'shop 3, b 1');
      equal(await groupsOf(store, { groupBy: 'status' }), 'pending 4');
      equal(await groupsOf(store, { groupBy: 'run_type', project: 'b' }), 'chain 1');
    },
  },
  {
    title: 'Statistics are grouped by thread, user, tag and metadata, without the runs that have none',
    run: async (store) => {
      const of = (metadata: Record<string, unknown>, tags?: string[]) => ({
        extra: { metadata },
        ...(tags && { tags }),
        ms: 10,
      });
      await store.apply(SCOPE, [
        post(1, of({ user_id: 'ada', thread_id: 't1', plan: 'pro', 'a "b"': 1 }, ['x', 'y'])),
        post(2, of({ user_id: 'ada', session_id: 't2', plan: { name: 'pro' } }, ['y'])),
        post(3, of({ user_id: 'bob', conversation_id: 't1', plan: null })),
        post(4),
      ]);
      const groups: [GroupKey, string][] = [
        ['user', 'ada 2, bob 1'],
        ['thread', 't1 2, t2 1'],
        ['tag', 'y 2, x 1'],
        ['meta.plan', 'null 1, pro 1, {"name":"pro"} 1'],
        ['meta.a "b"', '1 1'],
        ['meta.toString', ''],
      ];
      for (const [groupBy, expected] of groups) equal(await groupsOf(store, { groupBy }), expected, groupBy);
      equal((await statisticsOf(store, { groupBy: 'user' })).total.runs, 4);
      const ofTag = await statisticsOf(store, { groupBy: 'user', filter: 'tag:x' });
      matches(ofTag.groups, [{ group: 'ada', runs: 1, pending: 0 }]);
      within(ofTag.groups[0]?.latency_ms?.p50, 10);
    },
  },
  {
    title: 'Statistics count root runs and model calls separately',
    run: async (store) => {
      await store.apply(SCOPE, [
        post(1, { ms: 100 }),
        post(2, { parent: 1, run_type: 'llm', ms: 20, error: 'Error: x' }),
        post(3, { parent: 1, run_type: 'tool', ms: 1 }),
        // The first run of a trace is its root until the root arrives.
        post(5, { parent: 4, run_type: 'embedding' }),
      ]);
      const { total, groups, buckets } = await statisticsOf(store, { groupBy: 'run_type', buckets: 1 });
      for (const figures of [total, buckets[0]]) {
        matches(figures, { runs: 4, errors: 1, pending: 1 });
        matches(figures?.roots, { runs: 2, errors: 0 });
        matches(figures?.model_calls, { runs: 2, errors: 1 });
        within(figures?.roots.latency_ms?.p50, 100);
        within(figures?.model_calls.latency_ms?.max, 20);
      }
      const counts = groups.map(({ group, roots, model_calls }) => `${group} ${roots.runs} ${model_calls.runs}`);
      equal(counts, ['chain 1 0', 'embedding 1 1', 'llm 0 1', 'tool 0 0']);
      await store.apply(SCOPE, [post(4, { ms: 50 })]);
      const { roots, model_calls } = (await statisticsOf(store)).total;
      matches([roots, model_calls], [{ runs: 2 }, { runs: 2 }]);
      within(roots.latency_ms?.p50, 50);
      await store.remove(SCOPE, { kind: 'trace', id: id(1) });
      equal((await statisticsOf(store)).total.roots.runs, 1);
    },
  },
  {
    title: 'Statistics contain the feedback on the runs, in total and by group',
    run: async (store) => {
      await store.apply(SCOPE, [
        post(1, { name: 'a', tags: ['x', 'y'] }),
        post(2, { name: 'a' }),
        post(3, { name: 'b' }),
      ]);
      await store.addFeedback(SCOPE, feedback(1, { id: id(901) }));
      await store.addFeedback(SCOPE, feedback(2, { id: id(902), score: false }));
      const { score: _, ...comment } = feedback(2, { id: id(903), key: 'comment', comment: 'Good.' });
      await store.addFeedback(SCOPE, comment);
      const { total, groups } = await statisticsOf(store);
      equal(total.feedback, [
        { key: 'comment', count: 1 },
        { key: 'liked', count: 2, average_score: 0.5 },
      ]);
      matches(groups, [{ group: 'a', feedback: total.feedback }, { group: 'b' }]);
      equal(groups[1]?.feedback, undefined);
      const feedbackOnX = [{ key: 'liked', count: 1, average_score: 1 }];
      const byTag = await statisticsOf(store, { groupBy: 'tag', filter: 'tag:x' });
      for (const figures of [byTag.total, ...byTag.groups]) equal(figures.feedback, feedbackOnX);
    },
  },
  {
    title: 'Statistics count the calls whose tokens count without a price, also after patches',
    run: async (store) => {
      // Without a provider, this model has no price, because two providers have different ones.
      const call = (number: number, parent: number, usage_metadata: object, name = 'ada') => {
        const extra = { metadata: { ls_model_name: name } };
        return post(number, { parent, name: 'call', run_type: 'llm', ms: 10, extra, outputs: { usage_metadata } });
      };
      const tokens = { input_tokens: 3, output_tokens: 2 };
      await store.apply(SCOPE, [
        post(1, agent(5)),
        call(2, 1, tokens),
        call(3, 1, tokens, 'gpt-4o'),
        call(4, 1, { ...tokens, total_cost: 0 }),
        call(5, 1, {}),
        call(6, 1, { input_tokens: 0, output_tokens: 0 }),
        post(7, { run_type: 'llm' }),
        // An agent without calls is the call itself.
        post(8, agent(5)),
      ]);
      const counts = async () => {
        const { total, buckets, groups } = await statisticsOf(store, { buckets: 1 });
        const calls = groups.find(({ group }) => group === 'call');
        return [total, buckets[0], calls].map((figures) => figures?.unpriced_calls ?? 0);
      };
      equal(await counts(), [2, 2, 1]);
      await store.apply(SCOPE, [patch(5, { outputs: { usage_metadata: tokens } }), asPatch(call(7, 7, tokens))]);
      equal(await counts(), [4, 4, 3]);
    },
  },
  {
    title: 'The largest groups of statistics have time buckets',
    run: async (store) => {
      const usage = { outputs: { usage_metadata: { total_tokens: 3 } } };
      await store.apply(SCOPE, [
        post(10, { name: 'a', ...usage }),
        post(11, { name: 'b' }),
        post(14, { name: 'b', error: 'Error: x' }),
        post(20, { name: 'c' }),
      ]);
      const { groups } = await statisticsOf(store, { buckets: 5, series: 2 });
      const none = { runs: 0, errors: 0 };
      equal(
        groups.map(({ group, buckets }) => [group, buckets]),
        [
          ['b', [{ runs: 1, errors: 0 }, none, { runs: 1, errors: 1 }, none, none]],
          ['a', [{ runs: 1, errors: 0, usage: { total_tokens: 3 }, unpriced_calls: 1 }, none, none, none, none]],
          ['c', undefined],
        ],
      );
    },
  },
  {
    title: 'Statistics of a short time have buckets of equal length',
    run: async (store) => {
      await store.apply(SCOPE, [post(10), post(11), post(14), post(20)]);
      const all = await statisticsOf(store, { buckets: 5 });
      equal([all.from, all.to], [second(10), second(20)]);
      equal(
        bucketsOf(all),
        [
          [10, 2],
          [12, 0],
          [14, 1],
          [16, 0],
          [18, 1],
        ].map(([at = 0, runs]) => [second(at), runs]),
      );
      const some = await statisticsOf(store, { buckets: 2, filter: `since:${second(8)} before:${second(12)}` });
      equal([some.from, some.to], [second(8), second(12)]);
      equal(bucketsOf(some), [
        [second(8), 0],
        [second(10), 2],
      ]);
    },
  },
  {
    title: 'Groups of statistics are ranked by their runs, errors, tokens or costs',
    run: async (store) => {
      const named = (name: string, fields = {}) => ({ ...fields, name, extra: { metadata: { user_id: name } } });
      const outputs = { usage_metadata: { total_tokens: 3, total_cost: 10 } };
      const steps = ['a', 'b', 'c', 'd', 'e'].map((name) => named(name));
      await store.apply(SCOPE, [
        ...[...steps, ...steps, ...steps].map((fields, at) => post(at * 3_600, { ...fields, ms: 10 })),
        post(15 * 3_600, named('expensive', { run_type: 'llm', outputs })),
        post(16 * 3_600, named('failing', { error: 'Error: x' })),
        post(17 * 3_600, { name: 'last' }),
      ]);
      for (const groupBy of ['name', 'user'] as const) {
        const groups = (query: object) => groupsOf(store, { groupBy, groups: 2, series: 1, ...query });
        equal(await groups({}), 'a 3, b 3');
        equal(await groups({ rankBy: 'cost' }), 'expensive 1, a 3');
        equal(await groups({ rankBy: 'tokens' }), 'expensive 1, a 3');
        equal(await groups({ rankBy: 'errors' }), 'failing 1, a 3');
      }
    },
  },
  {
    title: 'Buckets of statistics of a long time begin at whole hours of the time zone',
    run: async (store) => {
      const ada = { ms: 10, extra: { metadata: { user_id: 'ada' } } };
      const posts = [90, 1_530, 4_050, 18_090, 35_730].map((number) => post(number, ada));
      await store.apply(SCOPE, posts);
      const hours = Array.from({ length: 10 }, (_, at) => at * 3_600);
      for (const [timeZone, minutes, runs] of [
        ['UTC', 60, [2, 1, 0, 0, 0, 1, 0, 0, 0, 1]],
        ['Asia/Kolkata', 30, [2, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1]],
        ['330', 30, [2, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1]],
      ] as const) {
        const { buckets, groups } = await statisticsOf(store, { buckets: 12, timeZone, groupBy: 'user', series: 1 });
        const starts = [90, ...hours.map((at) => at + minutes * 60)].slice(0, runs.length).map(second);
        matches(
          buckets,
          runs.map((count, at) => ({ start_time: starts[at], runs: count })),
        );
        matches(
          groups[0]?.buckets,
          runs.map((count) => ({ runs: count })),
        );
      }
    },
  },
  {
    title: 'Buckets of statistics begin at local midnight before and after daylight saving begins',
    run: async (store) => {
      const [midnight, nextMidnight] = [Date.parse('2027-03-27T23:00:00Z'), Date.parse('2027-03-28T22:00:00Z')];
      const seconds = (ms: number) => (ms - Date.parse(second(0))) / 1_000;
      const minute = (ms: number, minutes: number) => seconds(ms) + minutes * 60;
      await store.apply(SCOPE, [post(minute(nextMidnight, -1)), post(minute(nextMidnight, 0))]);
      const filter = 'since:2027-03-27T23:00:00Z before:2027-03-29T22:00:00Z';
      const of = async (buckets: number) =>
        bucketsOf(await statisticsOf(store, { filter, buckets, timeZone: 'Europe/Berlin' }));
      equal(await of(3), [
        [second(seconds(midnight)), 1],
        [second(seconds(nextMidnight)), 1],
      ]);
      equal(await of(4), [
        [second(seconds(midnight)), 0],
        [second(minute(midnight, 11 * 60)), 1],
        [second(seconds(nextMidnight)), 1],
        [second(minute(nextMidnight, 12 * 60)), 0],
      ]);
    },
  },
];

/** Returns the names of the groups, each followed by its number of runs. */
async function groupsOf(store: Store, query: Parameters<typeof statisticsOf>[1]): Promise<string> {
  const { groups } = await statisticsOf(store, query);
  return groups.map(({ group, runs }) => `${group} ${runs}`).join(', ');
}

function bucketsOf({ buckets }: Awaited<ReturnType<typeof statisticsOf>>): (readonly [string, number])[] {
  return buckets.map(({ start_time, runs }) => [start_time, runs] as const);
}

const changes: StoreCase[] = [
  {
    title: 'A listener receives the traces of each change, also under the id that a trace had before',
    run: async (store) => {
      let received: number[] = [];
      const stop = store.subscribe(SCOPE, ({ traceIds }) => void received.push(...traceIds.map(numberOf)));
      const reported = async (operations: readonly RunOperation[], scope: Scope = SCOPE): Promise<number[]> => {
        received = [];
        await store.apply(scope, operations);
        // Some stores report a change only once queries return it.
        await outlined(store, 1);
        return [...new Set(received)].sort();
      };
      equal(await reported([post(1), post(2, { parent: 1 }), post(3)]), [1, 3]);
      equal(await reported([]), []);
      equal(await reported([patch(3, { tags: ['a'] })]), [3]);
      equal(await reported([post(5)], { tenant: 'other' }), []);
      equal(await reported([span(7, 6, 9)]), [9]);
      equal(await reported([simple(6, { ...span(6, undefined, 9).fields, trace_id: id(6) })]), [6, 9]);
      stop();
      stop();
      equal(await reported([post(8)]), []);
    },
  },
  {
    title: 'Each project has its own changes: a listener receives only traces with changed runs of its project',
    run: async (store) => {
      let received: string[] = [];
      const scopes = ['bank', id(900), 'default'].map((project) => ({ ...SCOPE, project }));
      const stops = scopes.map((scope) =>
        store.subscribe(
          scope,
          ({ traceIds, forgotten }) => void received.push(...traceIds, ...(forgotten ? ['forgotten'] : [])),
        ),
      );
      const after = async (change: Promise<unknown>): Promise<number[]> => {
        await change;
        await outlined(store, 1);
        const numbers = [...new Set(received.map(numberOf))].sort((a, b) => a - b);
        received = [];
        return numbers;
      };
      const apply = (...operations: RunOperation[]): Promise<number[]> => after(store.apply(SCOPE, operations));
      const bank = { session_name: 'bank' };
      equal(await apply(post(1), post(2, { parent: 1 })), []);
      equal(await apply(post(3, bank), post(4)), [3]);
      equal(await apply(patch(3, { tags: ['a'] })), [3]);
      equal(await apply(post(5, { session_name: 'x', session_id: id(900) })), [5]);
      equal(await apply(post(6, { parent: 1, ...bank })), [1]);
      equal(await apply(patch(7, bank), patch(8, { tags: ['a'] })), [], 'runs that are not visible are in no project');
      equal(await apply(post(9, { parent: 3 })), [3], 'the totals of the root have changed');
      equal(await after(store.addFeedback(SCOPE, feedback(4))), []);
      equal(await after(store.addFeedback(SCOPE, feedback(3, { id: id(901) }))), [3]);
      equal(await after(store.removeFeedback(SCOPE, feedback(3, { id: id(901) }))), [3]);
      equal(await apply(patch(6, { session_name: 'shop' })), [1], 'the run has left the project');
      equal(await apply(patch(6, { tags: ['a'] })), []);
      equal(await apply(simple(11, { trace_id: id(10), ...bank })), [10]);
      equal(await after(store.remove(SCOPE, { kind: 'trace', id: id(4) })), []);
      equal(await after(store.remove(SCOPE, { kind: 'trace', id: id(10) })), [10]);
      equal(await after(store.remove(SCOPE, { kind: 'trace', id: id(3) })), [3]);
      for (const stop of stops) stop();
    },
  },
];

export const sumCases: readonly StoreCase[] = [...statistics, ...changes];
