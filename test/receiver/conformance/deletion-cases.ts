import { rejects } from 'node:assert/strict';
import type { DeletionTarget, Scope } from '#src/receiver/domain/query/query.ts';

import { ALL_TIMES, parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import {
  equal,
  feedback,
  id,
  listed,
  matches,
  numbersOf,
  patch,
  post,
  runsOf,
  SCOPE,
  type StoreCase,
  simple,
  span,
  statisticsOf,
  table,
} from './support.ts';

const USAGE = { usage: { input_tokens: 2, total_cost: 1 } };
const ATTACHMENT = { name: 'a', bytes: new Uint8Array([1]), mimeType: 'x/y' };
const OTHER = { tenant: 'other' };
const BANK = id(900);

/**
 * Runs 1 to 4 form a trace whose root is in the project `shop`, 5 and 6 a trace whose root is in `bank`, and 7 a trace of
 * its own. Runs 4 and 6 are in the other project.
 */
const OPERATIONS = [
  post(1, { ms: 5, outputs: USAGE, extra: { metadata: { thread_id: 't', user_id: 'ada' } } }),
  post(2, { parent: 1, ms: 1, inputs: { text: 'zebra' }, tags: ['red'] }),
  { ...post(3, { parent: 1, parent_run_id: id(2), run_type: 'llm', outputs: USAGE }), attachments: [ATTACHMENT] },
  post(4, { parent: 1, session_name: 'bank', session_id: BANK, error: 'Error: no' }),
  post(5, { session_name: 'bank', session_id: BANK, extra: { metadata: { thread_id: 't' } } }),
  post(6, { parent: 5, run_type: 'llm', outputs: USAGE, extra: { metadata: { user_id: 'bob' } } }),
  post(7, { extra: { metadata: { user_id: 'ada' } } }),
];
const ALL = [1, 2, 3, 4, 5, 6, 7];

async function fill(store: Store, numbers: readonly number[] = ALL, scope: Scope = SCOPE): Promise<void> {
  const operations = OPERATIONS.filter((_, at) => numbers.includes(at + 1));
  await store.apply(scope, operations);
  for (const number of numbers) {
    await store.addFeedback(scope, { ...feedback(number), id: id(800 + number) });
  }
}

async function answersOf(store: Store, scope: Scope = SCOPE): Promise<unknown> {
  const query = { limit: 100, order: 'ascending' } as const;
  const numbered = <Answer>(numbers: readonly number[], ask: (runId: string) => Promise<Answer>): Promise<Answer[]> =>
    Promise.all(numbers.map((number) => ask(id(number))));
  return await Promise.all([
    runsOf(store, {}, scope),
    store.list(scope, parsedQuery(query)),
    store.traces(scope, parsedQuery(query)),
    store.list(scope, parsedQuery({ filter: 'zebra' })),
    store.list(scope, parsedQuery({ filter: 'tag:red' })),
    store.projects(scope, ALL_TIMES),
    statisticsOf(store, { groupBy: 'run_type' }, scope),
    numbered([1, 5, 7], (traceId) => store.outline(scope, traceId)),
    numbered([1, 5, 7], (traceId) => store.feedback(scope, [traceId])),
    numbered(ALL, (runId) => store.details(scope, runId)),
    numbered([3, 6], (runId) => store.payload(scope, runId, 'outputs')),
    store.attachment(scope, id(3), 'a'),
  ]);
}

type Row = [title: string, target: DeletionTarget, kept: readonly number[], traces: number, project?: string];

const ROWS: readonly Row[] = [
  ['a trace, by any spelling of its id', { kind: 'trace', id: id(1).toUpperCase() }, [5, 6, 7], 1],
  ['the traces of a thread', { kind: 'thread', id: 't' }, [7], 2],
  ['the traces in which a run has the user', { kind: 'user', id: 'bob' }, [1, 2, 3, 4, 7], 1],
  ['the traces whose root is in the project', { kind: 'project', id: 'shop' }, [5, 6], 2],
  ['the traces whose root is in the project with the id', { kind: 'project', id: BANK }, [1, 2, 3, 4, 7], 1],
  ['only the runs in the project of the scope', { kind: 'thread', id: 't' }, [4, 5, 6, 7], 1, 'shop'],
  ['nothing for an unknown id', { kind: 'trace', id: id(2) }, ALL, 0],
  ['its runs in a trace of another project', { kind: 'user', id: 'bob' }, [1, 2, 3, 4, 5, 7], 1, 'shop'],
  ['nothing for a user of runs in another project', { kind: 'user', id: 'bob' }, ALL, 0, 'bank'],
  ['nothing in another project than that of the scope', { kind: 'project', id: 'shop' }, ALL, 0, 'bank'],
];

export const deletionCases: readonly StoreCase[] = [
  {
    title: 'The operations of deleted runs that are sent again are counted, if the store counts them',
    run: async (store) => {
      const send = (scope = SCOPE) =>
        store.apply(scope, [post(1), post(2, { parent: 1 }), patch(2, { outputs: {} }), post(3)]);
      if ((await send()) === undefined) return;
      equal(await send(), 0);
      await store.remove(SCOPE, { kind: 'trace', id: id(1) });
      equal([await send(), await send(), await send(OTHER)], [3, 3, 0]);
      equal(await store.apply(SCOPE, [post(4, { parent: 1 }), post(5, { parent: 3 })]), 1);
    },
  },
  ...table<Row>('Each deletion deletes', ROWS, async (store, [, target, kept, traces, project]) => {
    const expected = { runs: ALL.length - kept.length, traces };
    const scope = { ...SCOPE, ...(project !== undefined && { project }) };
    // The tenant `third` never contains the deleted runs, so its results are the expected results.
    const third = { tenant: 'third' };
    await Promise.all([fill(store), store.apply(OTHER, OPERATIONS), fill(store, kept, third)]);
    const answers = await answersOf(store, third);

    const nothing = { runs: 0, traces: 0 };
    const unknown = { ...scope, tenant: 'unknown' };
    equal([await store.removable(unknown, target), await store.remove(unknown, target)], [nothing, nothing]);
    equal(await store.removable(scope, target), expected);
    equal((await listed(store)).length, ALL.length, 'counting deletes nothing');
    equal(await store.remove(scope, target), expected);
    equal(await answersOf(store), answers);
    equal(await store.remove(scope, target), nothing);
    equal((await runsOf(store, {}, OTHER)).length, ALL.length, 'the other tenant keeps its runs');

    // A client sends everything again, for example from its spool.
    await store.apply(SCOPE, OPERATIONS);
    const removed = ALL.filter((number) => !kept.includes(number));
    await store.apply(
      SCOPE,
      removed.map((number) =>
        patch(number, { trace_id: OPERATIONS[number - 1]?.fields.trace_id ?? '', tags: ['late'] }),
      ),
    );
    equal((await numbersOf(store)).sort(), kept);
    for (const number of ALL) equal(await store.addFeedback(SCOPE, feedback(number)), kept.includes(number));
  }),
  {
    title: 'A kind that is not in the list is rejected, also if it is part of an SQL condition',
    run: async (store) => {
      await fill(store);
      const target = { kind: '1 = 1 OR user', id: 'bob' } as never;
      for (const remove of [store.removable, store.remove]) {
        await rejects(async () => remove.call(store, SCOPE, target), { code: 'RUNSPAN_INVALID_OPTION' });
      }
      equal(await numbersOf(store), ALL);
    },
  },
  {
    title: 'A trace that is deleted before anything of it has arrived is ignored',
    run: async (store) => {
      equal(await store.remove(SCOPE, { kind: 'trace', id: id(1) }), { runs: 0, traces: 0 });
      await store.remove({ ...SCOPE, project: 'bank' }, { kind: 'trace', id: id(5) });
      await store.apply(SCOPE, OPERATIONS);
      equal((await numbersOf(store)).sort(), [5, 6, 7]);
    },
  },
  {
    title: 'Late spans of a deleted trace are ignored, whichever name of the trace they have',
    run: async (store) => {
      await store.apply(SCOPE, [span(1), simple(2, { ...span(2, 1, 9).fields, trace_id: id(2) })]);
      for (const trace of [0, 2]) await store.remove(SCOPE, { kind: 'trace', id: id(trace) });
      await store.apply(SCOPE, [span(3, 1), span(4, 99), span(5, 2, 9), simple(6, { trace_id: id(2) })]);
      await store.apply(SCOPE, [simple(11, { parent: 3 }), simple(12, { parent: 11 })]);
      await store.apply(SCOPE, [simple(7, { ...span(7).fields, trace_id: id(7) }), simple(8, { trace_id: id(7) })]);
      await store.apply(SCOPE, [simple(10, { ...span(10, 2, 9).fields, trace_id: id(10) })]);
      equal(await numbersOf(store), [10]);
    },
  },
  {
    title: 'A run that names its trace by a run of a deleted trace is ignored',
    run: async (store) => {
      await store.apply(SCOPE, [post(1), post(2, { parent: 1, trace_id: id(1) })]);
      await store.remove(SCOPE, { kind: 'trace', id: id(1) });
      await store.apply(SCOPE, [post(3, { trace_id: id(2) })]);
      equal(await numbersOf(store), []);
    },
  },
  {
    title: 'A run that is stored in another trace keeps its messages that name a deleted trace',
    run: async (store) => {
      await store.apply(SCOPE, [post(1), post(2)]);
      await store.remove(SCOPE, { kind: 'trace', id: id(1) });
      await store.apply(SCOPE, [patch(2, { trace_id: id(1), tags: ['late'] })]);
      matches(await runsOf(store), [{ id: id(2), trace_id: id(2), tags: ['late'] }]);
    },
  },
  {
    title: 'Until the root of a trace arrives, the project of the first run decides whether the trace is deleted',
    run: async (store) => {
      await store.apply(SCOPE, [post(3, { parent: 1 }), post(2, { parent: 1, session_name: 'bank' })]);
      equal(await store.remove(SCOPE, { kind: 'project', id: 'shop' }), { runs: 0, traces: 0 });
      equal(await store.remove(SCOPE, { kind: 'project', id: 'bank' }), { runs: 2, traces: 1 });
      await store.apply(SCOPE, [post(1), post(4, { parent: 1 })]);
      equal(await numbersOf(store), []);
    },
  },
];
