// What the list of traces says about a trace.
import type { RunFields, RunOperation } from '#src/receiver/domain/run-message.ts';
import type { TraceSummary } from '#src/receiver/domain/run-view.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import {
  equal,
  id,
  listed,
  matches,
  numberOf,
  patch,
  post,
  SCOPE,
  type StoreCase,
  second,
  statisticsOf,
  table,
} from './support.ts';

type Options = Parameters<typeof post>[1];

const OTEL = { trace_id: '0af7651916cd43dd8448eb211c80319c', span_id: 'b7ad6b7169203331', kind: 'SERVER' };

/** A request, as an OpenTelemetry instrumentation records it. */
function request(status: number, fields: RunFields = {}): Options {
  const metadata = { otel: { ...OTEL, protocol: 'http' } };
  const path = { method: 'POST', path: '/ask' };
  return { ms: 9_000, inputs: path, outputs: { status_code: status }, ...fields, extra: { metadata } };
}

const ADA = { extra: { metadata: { user_id: 'ada', thread_id: 't-1' } } };
const ASKED = { inputs: { question: 'Why?' }, outputs: { answer: 'Because.' }, ms: 5_000, ...ADA };
const CALL = { run_type: 'llm', ms: 500, inputs: { input: 'Hi' } };
const SAID = { ...CALL, outputs: { content: 'Hello.' } };
const FAILED = { ...CALL, error: 'Error: 429\n  at x' };
const REFUSED = {
  ...CALL,
  ...{ outputs: { status: 429, body: {} }, error: 'HTTP 429', extra: { metadata: { recorded_by: ['fetch'] } } },
};
/** Spans of one millisecond, with lengths in seconds. */
const atOnce = (length: number) => ({ start_time: second(5), end_time: second(5 + length) });

async function summaries(store: Store, filter = ''): Promise<TraceSummary[]> {
  return (await store.traces(SCOPE, parsedQuery({ filter }, 'traces'))).items;
}

/** Title, runs below each other, and the summary. The run 1 is the root. */
const SUMMARIES: [string, RunOperation[], Partial<TraceSummary>, Partial<TraceSummary['trace']>?][] = [
  [
    'of a request says what the runs below were asked and have answered, and who asked',
    [post(1, request(200)), post(2, { parent: 1, ...ASKED }), post(3, { parent: 1, ...SAID })],
    { ...{ outcome: 'success', inputs_preview: 'Why?', outputs_preview: 'Because.', user: 'ada', thread: 't-1' } },
    { asked_run_id: id(2), answered_run_id: id(2), model_calls: 1 },
  ],
  [
    'of a function without inputs and outputs does so too',
    [post(1, { ms: 9_000 }), post(2, { parent: 1, ...ASKED })],
    { outcome: 'success', inputs_preview: 'Why?', outputs_preview: 'Because.', user: 'ada', thread: 't-1' },
  ],
  [
    'says what its root was asked and has answered',
    [post(1, ASKED), post(2, { parent: 1, ...SAID, extra: { metadata: { user_id: 'bob' } } })],
    { inputs_preview: 'Why?', outputs_preview: 'Because.', user: 'ada' },
    { asked_run_id: id(1), answered_run_id: id(1) },
  ],
  [
    'has the last answer if it was asked after the first had ended',
    [post(1, request(200)), post(2, { parent: 1, ...SAID }), post(4, { parent: 1, ...ASKED })],
    { inputs_preview: 'Hi', outputs_preview: 'Because.' },
    { asked_run_id: id(2), answered_run_id: id(4) },
  ],
  [
    'says nothing of a database',
    [
      post(1, request(200)),
      post(2, {
        parent: 1,
        ms: 1,
        inputs: { query: 'SELECT' },
        extra: { metadata: { otel: { protocol: 'database' } } },
      }),
      post(3, { parent: 1, ...SAID }),
    ],
    { inputs_preview: 'Hi', outputs_preview: 'Hello.' },
  ],
  [
    'has no answer before the root ends',
    [post(1, { inputs: { question: 'Why?' } }), post(2, { parent: 1, ...SAID })],
    { outcome: 'pending', inputs_preview: 'Why?', outputs_preview: undefined as never },
  ],
  [
    'is failed below if the last call failed',
    [post(1, request(200)), post(2, { parent: 1, ...SAID }), post(4, { parent: 1, ...FAILED })],
    { outcome: 'failed_below', status: 'success', error: 'Error: 429' },
    { errors: 1, failed_run_id: id(4) },
  ],
  [
    'is a success if a later attempt succeeded',
    [post(1, request(200)), post(2, { parent: 1, ...FAILED }), post(4, { parent: 1, ...SAID })],
    { outcome: 'success', error: undefined as never },
    { errors: 1, failed_run_id: id(2) },
  ],
  [
    'is failed below if the run whose outputs are shown failed',
    [post(1, { ms: 9_000 }), post(2, { parent: 1, ...ASKED, error: 'Error: no' }), post(3, { parent: 1, ...SAID })],
    { outcome: 'failed_below', error: 'Error: no' },
  ],
  [
    'is failed below if it was cancelled after a failure',
    [post(1, { ms: 9_000, extra: { runspan_end_reason: 'cancelled' } }), post(2, { parent: 1, ...FAILED })],
    { outcome: 'failed_below', status: 'cancelled' },
  ],
  [
    'is failed below if the request was refused, and any run failed',
    [post(1, request(429)), post(2, { parent: 1, ...FAILED }), post(3, { parent: 1, ...SAID })],
    { outcome: 'failed_below' },
  ],
  ['is a success if the request was refused and nothing failed', [post(1, request(404))], { outcome: 'success' }],
  [
    'has the error of the root',
    [post(1, { ...ASKED, error: 'Error: own' }), post(2, { parent: 1, ...FAILED })],
    { outcome: 'error', error: 'Error: own' },
  ],
  [
    'of a failed request has the error of the last run that failed',
    [post(1, request(500, { error: 'HTTP 500' })), post(2, { parent: 1, ...FAILED })],
    { outcome: 'error', error: 'Error: 429' },
  ],
  [
    'of a failed request has no answer of the runs below',
    [post(1, request(500, { error: 'HTTP 500' })), post(2, { parent: 1, ...SAID })],
    { outcome: 'error', error: 'HTTP 500', inputs_preview: 'Hi', outputs_preview: undefined as never },
  ],
  [
    'has no answer if the service has refused the call',
    [post(1, request(429)), post(2, { parent: 1, ...REFUSED })],
    { outcome: 'failed_below', error: 'HTTP 429', outputs_preview: undefined as never },
  ],
  [
    'of spans that start at the same time was asked by the function, and the model has answered after the tool',
    [
      ...[post(1, request(200)), post(9, { parent: 1, ...ASKED, ...atOnce(4), outputs: {} })],
      ...[
        post(2, { parent: 1, ...SAID, ...atOnce(2) }),
        post(3, { parent: 1, ...SAID, ...atOnce(1), run_type: 'tool' }),
      ],
    ],
    { inputs_preview: 'Why?', outputs_preview: 'Hello.' },
    { asked_run_id: id(9), answered_run_id: id(2) },
  ],
  [
    'is incomplete if its root has not arrived',
    [post(2, { parent: 1, ...ASKED }), post(3, { parent: 1, ...SAID })],
    { outcome: 'incomplete', status: 'success', name: 'run 2' },
  ],
  [
    'has the last answer if its root has not arrived',
    [post(2, { parent: 1, ...ASKED, ms: 500 }), post(3, { parent: 1, ...SAID })],
    { outcome: 'incomplete', inputs_preview: 'Why?', outputs_preview: 'Hello.' },
    { answered_run_id: id(3) },
  ],
  [
    'shows nothing of runs in other projects',
    [post(1, { ms: 9_000 }), post(2, { parent: 1, ...ASKED, session_name: 'bank', error: 'Error: secret' })],
    {
      outcome: 'failed_below',
      inputs_preview: undefined as never,
      user: undefined as never,
      error: undefined as never,
    },
    { asked_run_id: undefined as never, failed_run_id: undefined as never },
  ],
  [
    'is complete if its first run came from a program that is not traced',
    [post(2, { parent: 1, ms: 9, extra: { metadata: { otel: { ...OTEL, parent_is_remote: true } } } })],
    { outcome: 'success' },
  ],
];

export const summaryCases: readonly StoreCase[] = [
  ...table('A trace', SUMMARIES, async (store, [, operations, expected, trace = {}]) => {
    for (const [at, order] of [operations, operations.toReversed()].entries()) {
      const scope = { tenant: `order ${at}` };
      await store.apply(scope, order);
      for (const operation of order) await store.apply(scope, [operation]);
      const [summary] = (await store.traces(scope, parsedQuery({}))).items;
      matches(summary, { ...expected, trace });
      for (const field of Object.keys(expected)) equal(summary?.[field as 'name'], expected[field as 'name']);
    }
  }),
  {
    title: 'The summary of a trace changes with the runs that decide it',
    run: async (store) => {
      await store.apply(SCOPE, [
        post(1, request(200)),
        post(3, { parent: 1, ...ASKED }),
        post(4, { parent: 1, ...SAID }),
      ]);
      await store.apply(SCOPE, [patch(4, { error: 'Error: late' })]);
      matches(await summaries(store), [{ outcome: 'failed_below', error: 'Error: late' }]);
      await store.apply(SCOPE, [post(2, { parent: 1, ...SAID, extra: { metadata: { user_id: 'eve' } } })]);
      matches(await summaries(store), [{ inputs_preview: 'Hi', user: 'eve', thread: 't-1' }]);
      await store.apply(SCOPE, [patch(4, { error: '' }), patch(2, { start_time: '2026-11-20T08:00:00Z' })]);
      matches(await summaries(store), [{ outcome: 'success', inputs_preview: 'Why?', user: 'ada' }]);
      await store.apply(SCOPE, [patch(1, { extra: { metadata: { user_id: 'zoe' } }, outputs: { answer: 'Own.' } })]);
      matches(await summaries(store), [{ user: 'zoe', thread: 't-1' }]);
    },
  },
  {
    title: 'Internal steps of frameworks are runs that a filter can leave out',
    run: async (store) => {
      const step = post(2, { name: '__start__', parent: 1, ms: 1 });
      await store.apply(SCOPE, [post(1, { ms: 9 }), step, post(3, { parent: 1, ms: 1 })]);
      equal(await listed(store, { filter: '-is:internal' }), [3, 1]);
      equal(await listed(store, { filter: 'is:internal' }), [2]);
      matches((await statisticsOf(store, { filter: '-is:internal', buckets: 1 })).total, {
        runs: 2,
        roots: { runs: 1 },
      });
      const { groups } = await statisticsOf(store);
      equal(groups.map(({ group }) => group).sort(), ['run 1', 'run 3']);
    },
  },
  {
    title: 'Traces are found by their outcome, and by the user and the thread of any run',
    run: async (store) => {
      await store.apply(SCOPE, [
        ...[post(1, request(200)), post(2, { parent: 1, ...FAILED, ...ADA })],
        ...[post(11, { ms: 1, error: 'Error: no' }), post(12, { parent: 11, ...SAID })],
        ...[post(21, ASKED), post(22, { parent: 21, ...SAID, extra: { metadata: { user_id: 'bob' } } })],
        post(32, { parent: 31, ...ASKED }),
      ]);
      const found = async (filter: string) => (await summaries(store, filter)).map((one) => numberOf(one.id));
      equal(await found('status:failed_below'), [1]);
      equal(await found('status:error'), [11]);
      equal(await found('status:success'), [21]);
      equal(await found('-status:error,failed_below'), [32, 21]);
      equal(await found('status:incomplete user:ada'), [32]);
      equal(await found('user:ada'), [32, 21, 1]);
      equal(await found('user:bob'), [21]);
      equal(await found('-thread:t-1'), [11]);
      const { roots } = (await statisticsOf(store)).total;
      matches(roots, { runs: 4, errors: 1, failed_below: 1, incomplete: 1 });
      const { groups } = await statisticsOf(store, { groupBy: 'user', series: 1 });
      const traces = groups.map(({ group, roots: own }) => [group, own.runs, own.failed_below]);
      equal(traces.sort(), [
        ['ada', 3, 1],
        ['bob', 0, 0],
      ]);
      const { items } = await store.threads(SCOPE, parsedQuery({}, 'traces'));
      matches(items, [{ thread: 't-1', turns: 3, errors: 0, failed_below: 1, user: 'ada', inputs_preview: 'Hi' }]);
    },
  },
];
