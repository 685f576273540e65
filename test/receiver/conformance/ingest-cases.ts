import { rejects } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { RunFields, RunOperation } from '#src/receiver/domain/run-message.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import { PROGRAM_ENDED } from '#src/run/record.ts';
import { forAllAsync } from '../../support/campaign.ts';
import { someRecords } from './generated.ts';
import {
  applyEach,
  equal,
  feedback,
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
  second,
  simple,
  span,
  stamp,
  table,
} from './support.ts';

const ENDED = { outputs: { b: 2 }, end_time: second(3) };
const [STARTED, END] = [post(1, { inputs: { a: 1 } }), patch(1, ENDED)];

const ENDED_AT = { status: 'success', end_time: second(1.005) };
/** The end that `runspan dev` records for a run that was open when its program ended. */
const PROGRAM_END = patch(1, {
  ...{ error: PROGRAM_ENDED, end_time: second(2), extra: { runspan_end_reason: 'interrupted' } },
});

const merging: StoreCase[] = [
  ...table<[string, RunOperation[]]>(
    'The messages of a run give the same run',
    [
      ['in order', [STARTED, END]],
      ['patch first', [END, STARTED]],
      ['the post twice', [STARTED, STARTED, END]],
      ['the post again after the patch', [STARTED, END, STARTED]],
      ['all twice', [END, STARTED, END, STARTED]],
      ['in one post', [post(1, { inputs: { a: 1 }, ...ENDED })]],
    ],
    async (store, [, operations]) => {
      await applyEach(store, operations);
      equal(await runsOf(store), [{ id: id(1), ...STARTED.fields, ...ENDED }]);
    },
  ),
  {
    title: 'A merged run is found by its id and by its OpenTelemetry span, even without a name',
    run: async (store) => {
      const spanOf = (number: number) => ({ traceId: `${number}`.repeat(32), spanId: `${number}`.repeat(16) });
      const unnamed = (number: number): RunOperation => {
        const { traceId: trace_id, spanId: span_id } = spanOf(number);
        const fields = { inputs: { number }, extra: { metadata: { otel: { trace_id, span_id } } } };
        return { kind: 'post', id: id(number), fields, attachments: [] };
      };
      await store.apply(SCOPE, [unnamed(1), unnamed(2), unnamed(3)]);
      await store.apply(SCOPE, [{ ...unnamed(2), fields: { outputs: { b: 2 } } }]);
      const found = await store.mergedRuns(SCOPE, [id(1), spanOf(2), spanOf(4), id(4)]);
      const sorted = found.sort((a, b) => numberOf(a.id) - numberOf(b.id));
      equal(sorted, [
        { id: id(1), fields: unnamed(1).fields },
        { id: id(2), fields: { ...unnamed(2).fields, outputs: { b: 2 } } },
      ]);
      await store.apply(SCOPE, [{ ...unnamed(5), fields: { ...unnamed(5).fields, trace_id: id(9) } }]);
      matches(await store.mergedRuns(SCOPE, [spanOf(5)]), [{ id: id(5), fields: unnamed(5).fields }]);
      equal(await store.mergedRuns(SCOPE, []), []);
      equal(await runsOf(store), []);
    },
  },
  {
    title: 'A patch takes precedence over a post, and a later patch over an earlier one',
    run: async (store) => {
      await applyEach(store, [patch(1, { name: 'b', tags: ['b'] }), post(1, { name: 'a', tags: ['a'] })]);
      matches(await runsOf(store), [{ name: 'b', tags: ['b'] }]);
      await applyEach(store, [patch(1, { outputs: { a: 1 } }), patch(1, { outputs: { b: 2 } })]);
      matches(await runsOf(store), [{ outputs: { b: 2 } }]);
      equal(await store.payload(SCOPE, id(1), 'outputs'), '{"b":2}');
    },
  },
  {
    title: 'Of the records of a run, the age decides which counts, whatever the order of their arrival',
    run: async (store) => {
      const runAfter = async (records: readonly Pick<RunOperation, 'kind' | 'fields'>[]) => {
        const scope = { tenant: randomUUID() };
        for (const record of records) await store.apply(scope, [{ ...record, id: id(1), attachments: [] }]);
        return [await store.details(scope, id(1)), await runsOf(store, {}, scope)];
      };
      await forAllAsync(60, [someRecords], async ([records, others]) =>
        equal(await runAfter(records), await runAfter(others)),
      );
    },
  },
  ...table<[string, RunOperation[], object]>(
    'Of two records of a run, one takes precedence',
    [
      ['the ended one over an open one', [simple(1, { ms: 5, name: 'end' }), simple(1)], { name: 'end', ...ENDED_AT }],
      [
        'a real end over that of an incomplete one',
        [simple(1, { ms: 5, name: 'end' }), simple(1, { ms: 2, extra: { runspan_end_reason: 'incomplete' } })],
        { name: 'end', ...ENDED_AT },
      ],
      ['no real end over that of its program', [PROGRAM_END, simple(1)], { status: 'interrupted', name: 'run 1' }],
      ['the later of the same age', [simple(1, { name: 'a', ms: 5 }), simple(1, { name: 'b', ms: 2 })], { name: 'b' }],
    ],
    async (store, [, records, expected]) => {
      await applyEach(store, records);
      matches(await store.details(SCOPE, id(1)), expected);
    },
  ),
  {
    title: 'An update that is sent again after a different one holds',
    run: async (store) => {
      await applyEach(store, [post(1)]);
      const updates = ['review', 'done', 'review'].map((state) => patch(1, { tags: [state], outputs: { state } }));
      await applyEach(store, updates);
      matches(await runsOf(store), [{ tags: ['review'], outputs: { state: 'review' } }]);
      matches((await store.list(SCOPE, parsedQuery({}))).items, [{ tags: ['review'] }]);
    },
  },
  ...table<['post first' | 'patch first']>(
    'Metadata and extra are merged key by key',
    [['post first'], ['patch first']],
    async (store, [order]) => {
      const first = post(1, { extra: { metadata: { a: 1, b: 1 }, runtime: { sdk: 'x' }, x: 1 } });
      const later = patch(1, { extra: { metadata: { b: 2, c: 2 }, y: 2 } });
      await applyEach(store, order === 'post first' ? [first, later] : [later, first]);
      const [run] = await runsOf(store);
      matches(run?.extra, { metadata: { a: 1, b: 2, c: 2 }, runtime: { sdk: 'x' }, x: 1, y: 2 });
    },
  ),
  ...table<[keyof RunFields & string]>(
    'A run is not visible without a field',
    [['name'], ['run_type'], ['start_time']],
    async (store, [field]) => {
      const { [field]: _left, ...fields } = post(1).fields;
      await store.apply(SCOPE, [patch(1, fields)]);
      equal([await runsOf(store), await listed(store)], [[], []]);
      equal(await store.details(SCOPE, id(1)), undefined);
      await store.apply(SCOPE, [post(1)]);
      equal(await listed(store), [1]);
    },
  ),
  {
    title: 'Attachments of all messages are kept, and one with the same name is replaced',
    run: async (store) => {
      const attach = (name: string, text: string): RunOperation => ({
        ...post(1),
        attachments: [{ name, bytes: new TextEncoder().encode(text), mimeType: 'text/plain' }],
      });
      await applyEach(store, [attach('a', 'one'), attach('b', 'two'), attach('a', 'three')]);
      const info = (name: string, size: number) => ({ name, mime_type: 'text/plain', size });
      equal((await store.details(SCOPE, id(1)))?.attachments, [info('a', 5), info('b', 3)]);
      const attachment = await store.attachment(SCOPE, id(1), 'a');
      equal(new TextDecoder().decode(attachment?.bytes), 'three');
      attachment?.bytes.fill(0);
      equal(new TextDecoder().decode((await store.attachment(SCOPE, id(1), 'a'))?.bytes), 'three');
      equal(await store.attachment(SCOPE, id(1), 'c'), undefined);
    },
  },
  {
    title: 'A run has at most 100 attachments, and a request that adds more is rejected',
    run: async (store) => {
      const attach = (from: number, to: number): RunOperation => ({
        ...post(1),
        attachments: Array.from({ length: to - from }, (_, at) => ({
          name: `a${from + at}`,
          bytes: new Uint8Array(1),
          mimeType: 'x/y',
        })),
      });
      const count = async () => (await store.details(SCOPE, id(1)))?.attachments?.length;
      const tooLarge = { reason: 'too_large' };
      await rejects(store.apply(SCOPE, [attach(0, 101)]), tooLarge);
      equal(await count(), undefined);
      await store.apply(SCOPE, [attach(0, 99)]);
      await store.apply(SCOPE, [attach(0, 99), attach(99, 100)]);
      await rejects(store.apply(SCOPE, [post(2), attach(100, 101)]), tooLarge);
      equal([await count(), await listed(store)], [100, [1]]);
    },
  },
];

async function places(store: Store): Promise<string[]> {
  return (await runsOf(store)).map((run) => `${numberOf(run.trace_id)}: ${run.dotted_order}`);
}

const order = (...numbers: number[]): string => numbers.map(stamp).join('.');

const chainOf = (length: number): RunOperation[] =>
  Array.from({ length }, (_, at) => simple(at, at === 0 ? {} : { parent: at - 1 }));
const chain = chainOf(70);
const deepChain = chainOf(10_000);

/** Returns a run with a `trace_id` and the span of the OpenTelemetry trace 0. */
function both(number: number, trace: number): RunOperation {
  return simple(number, { ...span(number).fields, trace_id: id(trace) });
}

const NO_ID = '0'.repeat(32);

function invalid(number: number, trace_id: string): RunOperation {
  return simple(number, { extra: { metadata: { otel: { trace_id, span_id: '00f067aa0ba902b7' } } } });
}

function withoutProject({ fields: { session_name: _, ...fields }, ...run }: RunOperation): RunOperation {
  return { ...run, fields };
}

const trees: StoreCase[] = [
  ...table<[string, RunOperation[][], string[]]>(
    'A run without an order is placed',
    [
      [
        'below its parent',
        [[simple(1)], [simple(2, { parent: 1 })], [simple(3, { parent: 2 })]],
        [`1: ${order(1)}`, `1: ${order(1, 2)}`, `1: ${order(1, 2, 3)}`],
      ],
      [
        'below a parent in the same request, in any order',
        [[simple(3, { parent: 2 }), simple(4, { parent: 3 }), simple(2, { parent: 1 }), simple(1)]],
        [`1: ${order(1)}`, `1: ${order(1, 2)}`, `1: ${order(1, 2, 3)}`, `1: ${order(1, 2, 3, 4)}`],
      ],
      [
        'in a trace of its own until its parent arrives, as all runs below it',
        [[simple(3, { parent: 2 })], [simple(4, { parent: 3 })]],
        [`3: ${order(3)}`, `3: ${order(3, 4)}`],
      ],
      [
        'in the trace of a parent that arrives later, whatever that names',
        [[simple(3, { parent: 2 })], [simple(5, { parent: 4 })], [both(2, 1)], [span(4, 2)]],
        [`1: ${order(2)}`, `1: ${order(2, 3)}`, `1: ${order(2, 4)}`, `1: ${order(2, 4, 5)}`],
      ],
      [
        'in the trace that another run has named by it before its parent arrived',
        [[simple(3, { parent: 2 })], [simple(4, { trace_id: id(3) })], [simple(2)]],
        [`2: ${order(2)}`, `3: ${order(3)}`, `3: ${order(4)}`],
      ],
      [
        'in a trace of its own if it names another project than a parent that arrives later',
        [
          [simple(3, { parent: 2, session_name: 'bank' }), withoutProject(simple(4, { parent: 2 }))],
          [simple(2, { session_id: 'desk' })],
        ],
        [`2: ${order(2)}`, `2: ${order(2, 4)}`, `3: ${order(3)}`],
      ],
      [
        'below a parent with an order',
        [[post(2, { parent: 1 })], [simple(3, { parent: 2 })]],
        [`1: ${order(1, 2)}`, `1: ${order(1, 2, 3)}`],
      ],
      ['in the trace that it names', [[simple(3, { parent: 2, trace_id: id(1) })]], [`1: ${order(3)}`]],
      [
        'in the trace of its first message, unless the trace was not known yet',
        [
          [patch(3, {}), simple(4), post(2, { parent: 1 })],
          [simple(3, { trace_id: id(1) }), simple(4, { parent: 2 }), simple(2, { trace_id: id(9) })],
        ],
        [`1: ${order(1, 2)}`, `1: ${order(1, 2, 4)}`, `3: ${order(3)}`],
      ],
      [
        'below a parent that becomes visible later',
        [[patch(1, { outputs: {} })], [simple(2, { parent: 1 })], [simple(1)]],
        [`1: ${order(1)}`, `1: ${order(1, 2)}`],
      ],
      [
        'in one trace with the runs that are each the parent of another',
        [[simple(3, { parent: 5 }), simple(2, { parent: 1 }), simple(5, { parent: 4 }), simple(4, { parent: 3 })]],
        [`2: ${order(2)}`, `3: ${order(3)}`, `3: ${order(3, 4)}`, `3: ${order(3, 4, 5)}`],
      ],
      ['below the run of its parent span', [[span(1)], [span(2, 1)]], [`1: ${order(1)}`, `1: ${order(1, 2)}`]],
      [
        'below the run of a parent span that arrives later',
        [[span(3, 2)], [span(1)], [span(2, 1)]],
        [`1: ${order(1)}`, `1: ${order(1, 2)}`, `1: ${order(1, 2, 3)}`],
      ],
      [
        'in the trace of its span, whichever parents are missing or follow from each other',
        [[span(3, 2)], [span(5, 4)], [span(7, 6)], [span(6, 7)]],
        [`0: ${order(3)}`, `0: ${order(5)}`, `0: ${order(6)}`, `0: ${order(6, 7)}`],
      ],
      [
        'not below a span with the same id in another trace',
        [[span(1, undefined, 9)], [span(2, 1)]],
        [`0: ${order(2)}`, `1: ${order(1)}`],
      ],
      [
        'in the trace that another run of its OpenTelemetry trace has named before',
        [[both(1, 1)], [span(2, 1)], [simple(3, { trace_id: id(1) })]],
        [`1: ${order(1)}`, `1: ${order(1, 2)}`, `1: ${order(3)}`],
      ],
      [
        'in the trace that another run of its OpenTelemetry trace names later',
        [[span(2, 1)], [both(1, 1)], [simple(3, { trace_id: id(1) }), span(4, 2)], [simple(1)]],
        [`1: ${order(1)}`, `1: ${order(1, 2)}`, `1: ${order(1, 2, 4)}`, `1: ${order(3)}`],
      ],
      [
        'in the trace of spans whose root it names',
        [[span(2, 1)], [span(1)], [simple(3, { parent: 2, trace_id: id(1) })]],
        [`1: ${order(1)}`, `1: ${order(1, 2)}`, `1: ${order(1, 2, 3)}`],
      ],
      [
        'in the trace that other runs have named by it, if it is the first span of its OpenTelemetry trace',
        [[simple(3, { trace_id: id(1) })], [span(1)], [span(2, 1)]],
        [`1: ${order(1)}`, `1: ${order(1, 2)}`, `1: ${order(3)}`],
      ],
      [
        'in one of two traces that were known before a run named both',
        [[simple(1, { trace_id: id(1) })], [span(2)], [both(3, 1)], [span(4, 3), simple(5, { trace_id: id(1) })]],
        [`1: ${order(1)}`, `1: ${order(3)}`, `1: ${order(5)}`, `2: ${order(2)}`, `2: ${order(4)}`],
      ],
      [
        'in the trace that it names, if another has named its OpenTelemetry trace',
        [[both(1, 1)], [both(3, 3)], [span(4, 3)]],
        [`1: ${order(1)}`, `1: ${order(4)}`, `3: ${order(3)}`],
      ],
      [
        'in a trace of its own if its metadata contains no valid OpenTelemetry trace id',
        [[invalid(1, NO_ID)], [invalid(2, NO_ID)], [invalid(3, id(4))], [simple(4, { trace_id: id(4) })]],
        [1, 2, 3, 4].map((number) => `${number}: ${order(number)}`),
      ],
    ],
    async (store, [, requests, expected]) => {
      for (const operations of requests) await store.apply(SCOPE, operations);
      equal((await places(store)).sort(), expected);
      // Applying the same operations again must not change the runs.
      for (const operations of requests.toReversed()) await store.apply(SCOPE, operations.toReversed());
      equal((await places(store)).sort(), expected);
    },
  ),
  {
    title: 'A span whose later message names no parent is at the top',
    run: async (store) => {
      await store.apply(SCOPE, [span(2, 9)]);
      await store.apply(SCOPE, [span(2), span(9), simple(3, { parent: 2 })]);
      equal((await places(store)).sort(), [`2: ${order(2)}`, `2: ${order(2, 3)}`, `2: ${order(9)}`]);
    },
  },
  ...table<[string, readonly RunOperation[]]>(
    'Runs nested more than 64 levels deep have orders of 64 segments',
    [
      ['parents first', chain],
      ['children first', chain.toReversed()],
    ],
    async (store, [, operations]) => {
      await store.apply(SCOPE, operations);
      const runs = await runsOf(store);
      equal(runs.length, 70);
      equal([...new Set(runs.map((run) => run.trace_id))], [id(0)]);
      const levels = (number: number): number | undefined =>
        runs.find((run) => run.id === id(number))?.dotted_order.split('.').length;
      equal([62, 63, 64, 69].map(levels), [63, 64, 64, 64]);
    },
  ),
  {
    title: 'A trace of spans is shown with the id of its root, and is found by that and its OpenTelemetry id',
    run: async (store) => {
      const received: string[] = [];
      const stop = store.subscribe(SCOPE, ({ traceIds }) => void received.push(...traceIds));
      const found = (traceId: number) => listed(store, { filter: `trace:${id(traceId)}` });
      const shown = async () => [...new Set((await runsOf(store)).map((run) => numberOf(run.trace_id)))].sort();
      await store.apply(SCOPE, [span(7, 6), span(6, 5), simple(9)]);
      await store.addFeedback(SCOPE, feedback(7));
      equal([await shown(), await found(0), await found(5), await found(6)], [[0, 9], [7, 6], [], []]);
      // Of two spans without a parent, the earlier one is the root.
      for (const root of [5, 1]) {
        received.length = 0;
        await store.apply(SCOPE, [span(root)]);
        const all = (await listed(store)).filter((run) => run !== 9);
        equal(await shown(), [root, 9]);
        for (const name of [0, root]) {
          equal(await found(name), all);
          equal(await listed(store, { filter: `-trace:${id(name)}` }), [9]);
          equal((await outlined(store, name)).length, all.length);
          equal((await store.feedback(SCOPE, [id(name)])).length, 1);
          equal(received.includes(id(name)), true);
        }
        received.length = 0;
        await store.addFeedback(SCOPE, feedback(7));
        equal([await shown(), received.includes(id(root))], [[root, 9], true]);
      }
      stop();
      equal(await store.remove(SCOPE, { kind: 'trace', id: id(5) }), { runs: 0, traces: 0 });
      equal(await store.remove(SCOPE, { kind: 'trace', id: id(1) }), { runs: 4, traces: 1 });
      await store.apply(SCOPE, [span(8, 1)]);
      equal(await listed(store), [9]);
    },
  },
  {
    title: 'A request may contain runs nested 10,000 levels deep, children first',
    run: async (store) => {
      await store.apply(SCOPE, deepChain.toReversed());
      const numbers = (await outlined(store, 0)).map((run) => numberOf(run.id));
      equal(numbers, [...deepChain.keys()]);
    },
  },
];

export const ingestCases: readonly StoreCase[] = [...merging, ...trees];
