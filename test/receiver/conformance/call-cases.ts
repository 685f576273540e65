import type { RunFields, RunOperation } from '#src/receiver/domain/run-message.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import {
  countedTokens,
  equal,
  id,
  listed,
  matches,
  numberOf,
  outlined,
  patch,
  post,
  runsOf,
  SCOPE,
  type StoreCase,
  statisticsOf,
  table,
} from './support.ts';

interface CallOptions extends RunFields {
  readonly ms: number;
  readonly tokens?: number;
  /** Number of the run above the call. */
  readonly below?: number;
  readonly responseId?: string;
}

/** Returns a model call in the trace of run 1. A call without a source is recorded by the application itself. */
function call(number: number, source: string | undefined, options: CallOptions): RunOperation {
  const { tokens, below, responseId, ...fields } = options;
  const outputs = tokens === undefined ? {} : { outputs: { usage_metadata: { total_tokens: tokens } } };
  const above = below === undefined ? {} : { parent_run_id: id(below) };
  const sources = source === undefined ? {} : { recorded_by: [source] };
  const metadata = { user_id: 'ada', ...sources, ...(responseId && { response_id: responseId }) };
  return post(number, { parent: 1, run_type: 'llm', ...above, ...outputs, extra: { metadata }, ...fields });
}

const root = post(1, { ms: 60_000 });
const error = 'Error: no';
const outer = call(2, 'langchain', { ms: 30_000, tokens: 10 });
const inner = call(3, 'openai', { ms: 9_000, below: 2, tokens: 10, error });
const scoped = { tokens: 10, extra: { metadata: { otel: { scope: { name: 'openai' } } } } };
const asked = (content: string) => ({ inputs: { messages: [{ role: 'user', content }] } });
const attempts = [3, 13, 23].map((at) => call(at, 'fetch', { ms: 8_000, below: 2, tokens: 10 }));

interface Expected {
  readonly tokens: number;
  readonly calls: number;
  readonly errors?: number;
  /** The numbers of the further records of a call, each with the number of the outermost record. */
  readonly same: Readonly<Record<number, number>>;
}

/** Title, requests, and what is counted. */
const CALLS: [string, RunOperation[][], Expected][] = [
  ['the outer one last', [[inner], [outer], [root]], { tokens: 10, calls: 1, same: { 3: 2 } }],
  [
    'the OpenTelemetry scope is the source',
    [[root, call(2, undefined, { ms: 30_000, tokens: 10 })], [call(3, undefined, { ms: 9_000, below: 2, ...scoped })]],
    { tokens: 10, calls: 1, same: { 3: 2 } },
  ],
  [
    'the run that links them last',
    [
      [outer, call(4, 'openai', { ms: 5_000, below: 3, tokens: 10 })],
      [call(3, 'http', { ms: 9_000, run_type: 'chain', below: 2 })],
    ],
    { tokens: 10, calls: 1, same: { 4: 2 } },
  ],
  [
    'the source arrives with a patch',
    [
      [outer, call(3, 'langchain', { ms: 9_000, below: 2, tokens: 10 })],
      [patch(3, { extra: { metadata: { recorded_by: ['x'] } } })],
    ],
    { tokens: 10, calls: 1, same: { 3: 2 } },
  ],
  [
    'a response id arrives with a patch',
    [
      [outer, call(40, 'openai', { ms: 5_000, tokens: 10, responseId: 'resp_1' })],
      [patch(2, { extra: { metadata: { response_id: 'resp_1' } } })],
    ],
    { tokens: 10, calls: 1, same: { 40: 2 } },
  ],
  [
    'a large request that arrives with a patch',
    [
      [outer, call(3, 'fetch', { ms: 5_000, tokens: 10, ...asked('Hi'.repeat(9_000)) })],
      [patch(2, asked('Hi'.repeat(9_000)))],
    ],
    { tokens: 10, calls: 1, same: { 3: 2 } },
  ],
  [
    'attempts, and the outer run gets usage with a patch',
    [attempts, [call(2, 'openai', { ms: 40_000 })], [patch(2, { outputs: { usage_metadata: { total_tokens: 12 } } })]],
    { tokens: 12, calls: 1, same: { 3: 2, 13: 2, 23: 2 } },
  ],
  [
    'three records, each below the other',
    [[call(4, 'fetch', { ms: 2_000, below: 3, tokens: 10 }), inner], [call(2, 'langchain', { ms: 30_000 })]],
    { tokens: 10, calls: 1, same: { 3: 2, 4: 2 } },
  ],
  [
    'a tool with usage below another record of it',
    [
      [
        call(2, 'langchain', { ms: 30_000, run_type: 'tool', name: 'search', tokens: 10 }),
        call(3, undefined, { ms: 9_000, run_type: 'tool', name: 'search', below: 2, tokens: 10 }),
      ],
    ],
    { tokens: 10, calls: 0, same: { 3: 2 } },
  ],
  [
    'an error of the outer run',
    [[call(2, 'langchain', { ms: 30_000, tokens: 10, error }), inner]],
    { tokens: 10, calls: 1, errors: 1, same: { 3: 2 } },
  ],
];

async function check(store: Store, { tokens, calls, errors = 0, same }: Expected, trace = 1): Promise<void> {
  const { items: runs } = await store.list(SCOPE, parsedQuery({ limit: 100, traceId: id(trace) }));
  for (const shown of [runs, await outlined(store, trace)]) {
    const inner = shown.flatMap(({ id, same_call_as: outer }) => (outer ? [[numberOf(id), numberOf(outer)]] : []));
    equal(Object.fromEntries(inner), same);
  }
  equal(await countedTokens(store, trace), tokens);
  const { items } = await store.traces(SCOPE, parsedQuery({ limit: 100 }));
  const totals = items.find(({ trace_id }) => trace_id === id(trace))?.trace;
  matches(totals, { runs: runs.length, errors });
  equal(totals?.usage?.total_tokens, tokens);
  // A scan of runs, and the totals of whole periods.
  const hour = { filter: 'since:2026-11-20T07:00:00Z before:2026-11-20T08:00:00Z', buckets: 1 };
  for (const groupBy of ['user', 'meta.user_id'] as const) {
    const { total, groups } = await statisticsOf(store, { ...hour, groupBy, project: 'shop' });
    matches(total, {
      runs: runs.length,
      errors,
      usage: { total_tokens: tokens },
      model_calls: { runs: calls, errors },
    });
    matches(groups[0], { errors, usage: { total_tokens: tokens }, model_calls: { runs: calls, errors } });
  }
}

export const callCases: readonly StoreCase[] = [
  ...table('A call that is recorded twice counts once', CALLS, async (store, [, requests, expected]) => {
    for (const request of requests) await store.apply(SCOPE, request);
    await check(store, expected);
    equal((await runsOf(store)).length, requests.flat().filter(({ kind }) => kind === 'post').length);
  }),
  {
    title: 'The inner record of a call counts again after the outer record is removed',
    run: async (store) => {
      const sibling = call(4, 'fetch', { ms: 5_000, tokens: 10, responseId: 'resp_1', error });
      await store.apply(SCOPE, [root, call(2, 'langchain', { ms: 30_000, tokens: 10, responseId: 'resp_1' }), sibling]);
      await check(store, { tokens: 10, calls: 1, same: { 4: 2 } });
      await store.remove(SCOPE, { kind: 'run', id: id(2) });
      await check(store, { tokens: 10, calls: 1, errors: 1, same: {} });
    },
  },
  {
    title: 'A record of a call that moves to another trace counts there',
    run: async (store) => {
      const { trace_id: _, dotted_order: __, ...fields } = call(3, 'fetch', { ms: 5_000, below: 2, tokens: 10 }).fields;
      await store.apply(SCOPE, [root, outer, { kind: 'post', id: id(3), fields, attachments: [] }]);
      await check(store, { tokens: 10, calls: 1, same: { 3: 2 } });
      await store.apply(SCOPE, [post(50, { ms: 10 }), patch(3, { parent_run_id: id(50), trace_id: id(50) })]);
      equal(await listed(store, { filter: 'tokens:10 type:llm' }), [3, 2]);
      matches((await statisticsOf(store)).total, { usage: { total_tokens: 20 }, model_calls: { runs: 2 } });
      equal(
        (await outlined(store, 50)).map(({ same_call_as }) => same_call_as ?? ''),
        ['', ''],
      );
    },
  },
];
