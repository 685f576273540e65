import type { RunFields, RunOperation } from '#src/receiver/domain/run-message.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import {
  applyEach,
  equal,
  id,
  numberOf,
  numbersOf,
  patch,
  post,
  SCOPE,
  type StoreCase,
  simple,
  table,
} from './support.ts';

const TRACE = { trace_id: id(99) };

/** A run without a parent in the trace 99. Runs start in the order of their numbers. */
function top(number: number, session_name: string, isLimited: boolean, fields: RunFields = {}): RunOperation {
  return simple(number, { ...TRACE, session_name, ...(isLimited && { limited_key: true }), ...fields });
}

/** A run of a limited key whose parent is in another program, or has not arrived. */
function entry(number: number, session_name: string, parent = 90): RunOperation {
  const extra = { metadata: { otel: { parent_is_remote: true } } };
  return top(number, session_name, true, { parent_run_id: id(parent), extra });
}

async function rootOf(store: Store): Promise<number | undefined> {
  const { items } = await store.traces(SCOPE, parsedQuery({}));
  return items[0] && numberOf(items[0].id);
}

export const projectCases: readonly StoreCase[] = [
  ...table<[string, readonly RunOperation[], number]>(
    'The root of a trace from limited keys is a run of its project',
    [
      ['another project does not take it over', [top(2, 'shop', true), top(1, 'other', true)], 2],
      [
        'nor does another project that was first, if a run is of a key without a project',
        [top(1, 'other', true), top(2, 'shop', false)],
        2,
      ],
      ['the project that was first keeps it', [top(2, 'other', true), top(1, 'shop', true)], 2],
      [
        'an earlier run of the same project becomes it',
        [top(3, 'shop', true), top(1, 'other', true), top(2, 'shop', true)],
        2,
      ],
      ['an earlier run of a key without a project becomes it', [top(2, 'shop', true), top(1, 'other', false)], 1],
      ['a project does not take over one whose parent is elsewhere', [entry(2, 'shop'), top(1, 'other', true)], 2],
      ['nor one whose root is missing', [top(2, 'shop', true, { parent_run_id: id(90) }), top(1, 'other', true)], 2],
      ['the caller that it names is its root', [entry(3, 'shop', 1), top(1, 'other', true)], 1],
      [
        'a run that a key without a project has posted too',
        [top(2, 'shop', true), top(1, 'other', true), top(1, 'other', false)],
        1,
      ],
    ],
    async (store, [, operations, root]) => {
      await applyEach(store, operations);
      equal(await rootOf(store), root);
    },
  ),
  {
    title: 'A run is in the project of its first message that names one, unless a key without a project posts it',
    run: async (store) => {
      const patched = patch(1, { session_name: 'other', limited_key: true });
      await applyEach(store, [patch(1, { tags: [] })]);
      equal(await store.projectsOf(SCOPE, [id(1)]), []);
      await applyEach(store, [patched]);
      equal(await store.projectsOf(SCOPE, [id(1)]), ['other']);
      await applyEach(store, [simple(1), patched]);
      equal(await store.projectsOf(SCOPE, [id(1)]), ['shop']);
    },
  },
  {
    title:
      'A deletion with a project deletes the runs in it that have arrived, and keeps out no other run of their traces',
    run: async (store) => {
      const scope = { ...SCOPE, project: 'bank' };
      const [shop, bank] = [post(1), post(2, { parent: 1, session_name: 'bank' })];
      await store.apply(SCOPE, [shop, bank]);
      equal(await store.remove(scope, { kind: 'trace', id: id(1) }), { runs: 1, traces: 1 });
      equal(await numbersOf(store), [1]);
      await applyEach(store, [bank, post(3, { parent: 1, session_name: 'bank' })]);
      equal(await numbersOf(store), [1, 3]);
      // Of this trace, only a run of the project has arrived.
      await applyEach(store, [post(5, { parent: 4, session_name: 'bank' })]);
      equal(await store.remove(scope, { kind: 'trace', id: id(4) }), { runs: 1, traces: 1 });
      await applyEach(store, [post(4), post(5, { parent: 4, session_name: 'bank' }), post(6, { parent: 4 })]);
      equal(await numbersOf(store), [1, 3, 4, 6]);
    },
  },
];
