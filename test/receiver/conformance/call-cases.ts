import type { RunFields, RunOperation } from '#src/receiver/domain/run-message.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import {
  countedTokens,
  equal,
  id,
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
  readonly model?: string;
  /** Number of the run that records the same call, and the tokens that the program has moved because of it. */
  readonly same?: number;
  readonly moved?: number;
}

/** Returns a model call in the trace of run 1. A call without a source is recorded by the application itself. */
function call(number: number, source: string | undefined, options: CallOptions): RunOperation {
  const { tokens, below, responseId, model, same, moved, ...fields } = options;
  const outputs = tokens === undefined ? {} : { outputs: { usage_metadata: { total_tokens: tokens } } };
  const above = below === undefined ? {} : { parent_run_id: id(below) };
  const metadata = {
    user_id: 'ada',
    ...(source && { recorded_by: [source] }),
    ...(responseId && { response_id: responseId }),
    ...(model && { ls_model_name: model }),
    ...(same && { same_call: id(same) }),
    ...(moved && { same_call_usage: { total_tokens: moved } }),
  };
  return post(number, { parent: 1, run_type: 'llm', ...above, ...outputs, extra: { metadata }, ...fields });
}

const asked = (content: string) => ({ inputs: { messages: [{ role: 'user', content }] } });
const root = post(1, { ms: 60_000 });
const error = 'Error: no';
const long = { ms: 30_000, tokens: 10, ...asked('Hi') };
const short = { ms: 9_000, tokens: 10, below: 2, inputs: { input: 'Hi' } };
const outer = call(2, 'langchain', long);
const inner = call(3, 'openai', { ...short, error });
const tool = { run_type: 'tool', name: 'search' };
const attempt = { ms: 8_000, below: 2, ...asked('Hi') };
const untold = { inputs: {}, outputs: {} };

interface Expected {
  readonly tokens: number;
  readonly calls: number;
  readonly errors?: number;
  /** The numbers of the further records of a call, each with the number of the head. */
  readonly same: Readonly<Record<number, number>>;
}

/** Title, requests, and what is counted. */
const CALLS: [string, RunOperation[][], Expected][] = [
  ['the outer one last', [[inner], [outer], [root]], { tokens: 10, calls: 1, same: { 3: 2 } }],
  [
    'the run that links them last',
    [
      [outer, call(4, 'openai', { ...short, ms: 5_000, below: 3 })],
      [call(3, 'http', { ms: 9_000, run_type: 'chain', below: 2 })],
    ],
    { tokens: 10, calls: 1, same: { 4: 2 } },
  ],
  [
    'the source arrives with a patch',
    [[outer, call(3, 'langchain', short)], [patch(3, { extra: { metadata: { recorded_by: ['x'] } } })]],
    { tokens: 10, calls: 1, same: { 3: 2 } },
  ],
  [
    'a response id arrives with a patch',
    [
      [outer, call(4, 'openai', { ms: 5_000, tokens: 10, responseId: 'resp_1' })],
      [patch(2, { extra: { metadata: { response_id: 'resp_1' } } })],
    ],
    { tokens: 10, calls: 1, same: { 4: 2 } },
  ],
  [
    'a large request that arrives with a patch',
    [
      [call(2, 'langchain', { ...long, inputs: {} }), call(3, 'fetch', { ...short, ...asked('Hi'.repeat(9_000)) })],
      [patch(2, asked('Hi'.repeat(9_000)))],
    ],
    { tokens: 10, calls: 1, same: { 3: 2 } },
  ],
  [
    'attempts of which one succeeds, and the outer run gets usage with a patch',
    [
      [3, 13].map((at) => call(at, 'fetch', { ...attempt, error })),
      [call(23, 'fetch', { ...attempt, tokens: 10 }), call(2, 'openai', { ...attempt, ms: 40_000, below: 1 })],
      [patch(2, { outputs: { usage_metadata: { total_tokens: 12 } } })],
    ],
    { tokens: 10, calls: 3, errors: 2, same: { 23: 2 } },
  ],
  [
    'a tool whose arguments arrive without its type',
    [
      [call(2, 'langchain', { ...long, ...tool, inputs: {} })],
      [call(3, undefined, { ...short, ...tool, inputs: { city: 'Cork' } })],
      [patch(2, { inputs: { input: '{"city":"Cork"}' } })],
    ],
    { tokens: 10, calls: 0, same: { 3: 2 } },
  ],
  [
    'an error of the outer run',
    [[call(2, 'langchain', { ...long, error }), inner]],
    { tokens: 10, calls: 1, errors: 1, same: { 3: 2 } },
  ],
  [
    'the program has marked it, although the sources are equal and the contents unknown',
    [[call(2, 'fetch', { ...long, ...untold, same: 3, moved: 12 })], [call(3, 'fetch', { ...short, inputs: {} })]],
    { tokens: 10, calls: 1, same: { 3: 2 } },
  ],
  [
    'the program has marked it, and the outputs still have a usage',
    [[call(2, 'langchain', { ...long, outputs: { usage: { total_tokens: 12 } }, same: 3, moved: 12 }), inner]],
    { tokens: 10, calls: 1, same: { 3: 2 } },
  ],
  [
    'the marked one names a run that never came',
    [[call(2, 'langchain', { ...long, outputs: {}, same: 99, moved: 12 })]],
    { tokens: 12, calls: 1, same: {} },
  ],
  [
    'the marked one names a run without usage',
    [[call(2, 'langchain', { ...long, outputs: {}, same: 3, moved: 12 }), call(3, 'fetch', { ...short, ...untold })]],
    { tokens: 12, calls: 1, same: { 3: 2 } },
  ],
  [
    'the last of three that are marked has usage',
    [
      [call(2, 'langchain', { ...long, ...untold, same: 3, moved: 12 })],
      [call(3, 'openai', { ...short, ...untold, same: 4 })],
      [call(4, 'fetch', { ...short, ms: 5_000, below: 3, inputs: {} })],
    ],
    { tokens: 10, calls: 1, same: { 3: 2, 4: 2 } },
  ],
  [
    'the marked one names a run that never came, but its request is that of a third one',
    [[call(2, 'langchain', { ...long, outputs: {}, same: 99, moved: 12 })], [call(3, 'fetch', short)]],
    { tokens: 10, calls: 1, same: { 3: 2 } },
  ],
];

/** Title, and the second call beside the outer one. */
const OTHERS: [string, RunOperation][] = [
  ['another request', call(3, 'openai', { ...short, ...asked('Bye') })],
  ['the same source', call(3, 'langchain', short)],
  ['a mark of a run of another type', call(3, 'openai', { ...short, inputs: {}, same: 1 })],
  ['a later start', call(33, 'openai', { ...short, ms: 1_000 })],
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
  const { total, groups } = await statisticsOf(store, { groupBy: 'user', project: 'shop' });
  const figures = { errors, usage: { total_tokens: tokens }, model_calls: { runs: calls, errors } };
  matches([total, groups[0]], [{ ...figures, runs: runs.length }, figures]);
}

export const callCases: readonly StoreCase[] = [
  {
    title: 'Only the outline of a trace has the tools in the messages of model calls, also if the type arrives later',
    run: async (store) => {
      const result = { role: 'tool', tool_call_id: 'c', content: 'no '.repeat(9_000), status: 'error' };
      const tool_calls = [{ id: 'c', name: 'find', args: {} }];
      const payloads = { inputs: { messages: [result] }, outputs: { tool_calls } };
      const extra = { metadata: { tool_call_id: 'c' } };
      await store.apply(SCOPE, [root, call(2, undefined, { ms: 9, ...payloads })]);
      for (const number of [3, 4]) await store.apply(SCOPE, [patch(number, { trace_id: id(1), ...payloads })]);
      await store.apply(SCOPE, [call(3, undefined, { ms: 9 }), post(4, { parent: 1, ...tool, extra })]);
      const results = [{ id: 'c', text: `${result.content.slice(0, 200)}…`, is_error: true }];
      const tools = { calls: [{ id: 'c', name: 'find', arguments: '{}' }], results };
      const [, ...shown] = await outlined(store, 1);
      matches(shown, [{ tools }, { tools }, { tool_call_id: 'c' }]);
      equal('tools' in (shown[2] ?? {}), false);
      const pages = [await store.list(SCOPE, parsedQuery({})), await store.traces(SCOPE, parsedQuery({}))];
      equal(JSON.stringify([pages, await store.details(SCOPE, id(2))]).includes('"tools"'), false);
    },
  },
  ...table('A call that is recorded twice counts once', CALLS, async (store, [, requests, expected]) => {
    for (const request of requests) await store.apply(SCOPE, request);
    await check(store, expected);
    equal((await runsOf(store)).length, requests.flat().filter(({ kind }) => kind === 'post').length);
  }),
  ...table('A call inside of another one counts', OTHERS, async (store, [, other]) => {
    const { extra = {}, ...fields } = outer.fields;
    const metadata = { ...extra.metadata, response_id: 'resp_1', ls_model_name: 'gpt-4o' };
    await store.apply(SCOPE, [root, { ...outer, fields: { ...fields, extra: { metadata } } }, other]);
    await check(store, { tokens: 20, calls: 2, same: {} });
  }),
  {
    title: 'Calls without a parent are not beside each other',
    run: async (store) => {
      const calls = [outer, inner].map(({ fields: { parent_run_id: _, dotted_order: __, ...fields }, ...call }) => ({
        ...call,
        fields: { ...fields, error: '' },
      }));
      await store.apply(SCOPE, calls);
      await check(store, { tokens: 20, calls: 2, same: {} });
    },
  },
];
