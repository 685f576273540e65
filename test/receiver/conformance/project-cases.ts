import type { RunOperation } from '#src/receiver/domain/run-message.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import { applyEach, equal, id, numberOf, patch, SCOPE, type StoreCase, simple, table } from './support.ts';

const TRACE = { trace_id: id(99) };

/** A run without a parent in the trace 99, from the key of its project if `isLimited` is true. Runs start in the order of their numbers. */
function top(number: number, session_name: string, isLimited: boolean): ReturnType<typeof simple> {
  return simple(number, { ...TRACE, session_name, ...(isLimited && { limited_key: 'post' }) });
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
      [
        'a run that a key without a project has patched too',
        [top(2, 'shop', true), top(1, 'other', true), patch(1, { tags: [] })],
        1,
      ],
    ],
    async (store, [, operations, root]) => {
      await applyEach(store, operations);
      equal(await rootOf(store), root);
    },
  ),
  {
    title: 'A run that only a limited key has patched is in no project yet, and then in that of its post',
    run: async (store) => {
      const { fields } = simple(1);
      await applyEach(store, [patch(1, { ...fields, session_name: 'other', limited_key: 'patch' })]);
      equal(await store.projectsOf(SCOPE, [id(1)]), []);
      await applyEach(store, [simple(1)]);
      equal(await store.projectsOf(SCOPE, [id(1)]), ['shop']);
    },
  },
];
