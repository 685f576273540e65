// Compares a store with a store in memory after generated steps. `MemoryStore` is small, and has no index, no cache and no
// stored totals.
import fc from 'fast-check';
import type { GroupKey, ListQuery, Scope, StatisticsQuery, SuggestionField } from '#src/receiver/domain/query/query.ts';
import type { AttachmentInfo, StoredRun } from '#src/receiver/domain/run-view.ts';
import { condition } from '#src/receiver/filter/parser.ts';
import { ALL_TIMES, parsedQuery } from '#src/receiver/filter/run-filter.ts';
import { MemoryStore } from '#src/receiver/store/memory-store.ts';
import type { Store } from '#src/receiver/store/store.ts';
import { IDS, OTEL_IDS, type Step, someFilters, timeAfter } from './generated.ts';
import { equal, pagesOf, runsOf } from './support.ts';

/** Time after which no more cases are tried, and the search for the smallest failing one ends, in milliseconds. */
const INTERRUPT_MS = 200_000;
/** Timeout of a test that calls `compareWithMemory`, in milliseconds. */
export const MODEL_TIMEOUT_MS: number = INTERRUPT_MS + 40_000;

export interface Tested {
  /** Stores with the same data. Each step goes to one of them, and the next one answers. */
  readonly stores: readonly Store[];
  /** Called after each step. */
  readonly afterStep?: () => Promise<void>;
}

/** Compares the answers of stores with those of a store in memory after each of the steps. */
export async function compareWithMemory(
  { stores, afterStep }: Tested,
  someSteps: fc.Arbitrary<Step[]>,
  numRuns: number,
): Promise<void> {
  let index = 0;
  await fc.assert(
    fc.asyncProperty(someSteps, someFilters, async (steps, filters) => {
      // Tenants share nothing, and opening a store takes longer than the steps.
      index += 1;
      const scope = { tenant: `model ${index}` };
      const memory = new MemoryStore();
      const storeFor = (at: number): Store => stores[at % stores.length] ?? memory;
      for (const [at, step] of steps.entries()) {
        const expected = await take(memory, scope, step);
        const taken = await take(storeFor(at), scope, step);
        // A store in ClickHouse does not count the operations that it discards.
        if (taken !== undefined) equal(taken, expected);
        await afterStep?.();
        equal(await treesOf(storeFor(at + 1), scope), await treesOf(memory, scope));
      }
      equal(await answersOf(storeFor(0), scope, filters), await answersOf(memory, scope, filters));
      await checkGroups(storeFor(0), scope);
    }),
    { numRuns, interruptAfterTimeLimit: INTERRUPT_MS },
  );
}

async function take(store: Store, scope: Scope, step: Step): Promise<unknown> {
  if ('operations' in step) return store.apply(scope, structuredClone(step.operations));
  if ('feedback' in step) return store.addFeedback(scope, step.feedback);
  if ('withdrawn' in step) return store.removeFeedback(scope, step.withdrawn);
  if ('revoked' in step) return store.revokeTokens(scope, step.revoked, step.ms);
  const { target, ...project } = step;
  const counts = await store.removable({ ...scope, ...project }, target);
  equal(await store.remove({ ...scope, ...project }, target), counts);
  return counts;
}

/** Checks that the figures of each group are those of a filter that selects it. */
async function checkGroups(store: Store, scope: Scope): Promise<void> {
  for (const groupBy of COUNTED) {
    const { groups } = await store.statistics(scope, parsedQuery({ groupBy }));
    const selected = groups.map(async ({ group }) => {
      const { total } = await store.statistics(scope, parsedQuery({ filter: condition(groupBy, group) }));
      return { group, ...total };
    });
    equal(rounded(groups), rounded(await Promise.all(selected)), groupBy);
  }
}

const ALL = { limit: 1_000 };
const HOUR = { filter: `since:${timeAfter(0)} before:${timeAfter(3_600)}`, buckets: 1 };
const RANKED = { rankBy: 'cost', groups: 1, series: 2, timeZone: 'Asia/Kolkata' } as const;
const GROUPS: readonly GroupKey[] = [
  ...(['name', 'model', 'run_type', 'project', 'status', 'thread', 'user', 'tag', 'meta.user_id'] as const),
];

const COUNTED: readonly GroupKey[] = ['status', 'user', 'tag', 'thread', 'meta.user_id'];

async function treesOf(store: Store, scope: Scope): Promise<unknown> {
  const statistics = (query: StatisticsQuery) => store.statistics(scope, parsedQuery(query));
  return rounded({
    list: await store.list(scope, parsedQuery(ALL)),
    traces: await store.traces(scope, parsedQuery(ALL)),
    outlines: await Promise.all([...IDS, ...OTEL_IDS].map((id) => store.outline(scope, id))),
    figures: await Promise.all(COUNTED.map((groupBy) => statistics({ ...HOUR, groupBy }))),
  });
}

const SELECTIONS = `status:error,pending status:failed_below status:incomplete user:ada
  model:ada tag:apple meta.user_id=7 meta.user_id=ada meta.user_id latency>=1s tokens>=1`.split(/\s+/);

async function answersOf(store: Store, scope: Scope, texts: readonly string[]): Promise<unknown> {
  const queries = [
    ...['shop', 'desk'].map((project): ListQuery => ({ project })),
    ...[...SELECTIONS, 'tag:apple meta.end_reason:cancelled', ...texts].map((filter) => ({ filter })),
  ];
  const statistics = (query: StatisticsQuery) => store.statistics(scope, parsedQuery(query));
  const ofEach = <Of, Answer>(items: readonly Of[], ask: (item: Of) => Promise<Answer>) => Promise.all(items.map(ask));
  const fields: SuggestionField[] = ['name', 'type', 'status', 'project', 'user', 'thread', 'model', 'tag', 'meta'];
  const inProject = { ...scope, project: 'shop' };
  return rounded({
    // The order of traces with equal orders is that of their arrival in some stores.
    runs: (await runsOf(store, {}, scope)).map(withSortedAttachments).sort(byTrace),
    projects: [await store.projects(scope, ALL_TIMES), (await store.projectsOf(scope, IDS)).sort()],
    pages: await ofEach(['start_time', 'latency', 'tokens', 'cost'] as const, (sort) =>
      ofEach(['ascending', 'descending'] as const, async (order) => [
        await pagesOf((query) => store.list(scope, query), { sort, order, limit: 3 }),
        await pagesOf((query) => store.traces(scope, query), { sort, order, limit: 2 }),
      ]),
    ),
    threads: await pagesOf((query) => store.threads(scope, query), { limit: 1 }),
    selected: await ofEach(queries, async (query) => [
      await store.list(scope, parsedQuery({ ...ALL, ...query })),
      await store.traces(scope, parsedQuery({ ...ALL, ...query }, 'traces')),
      await store.threads(scope, parsedQuery({ ...ALL, ...query }, 'traces')),
      await statistics({ ...query, buckets: 1 }),
    ]),
    inProject: [
      await store.list(inProject, parsedQuery(ALL)),
      await store.traces(inProject, parsedQuery({ ...ALL, filter: texts.at(-2) ?? '' })),
      await store.statistics(inProject, parsedQuery({ groupBy: 'user' })),
    ],
    runsById: await ofEach(IDS, async (id) => [
      withSortedAttachments((await store.details(scope, id)) ?? {}),
      await store.payload(scope, id, 'outputs'),
      await store.attachment(scope, id, 'a'),
      (await store.feedback(scope, [id])).map((given) => [given.run_id, given.id]).sort(),
      await store.tokensRevokedMs(scope, [id]),
    ]),
    figures: await ofEach(GROUPS, (groupBy) =>
      ofEach([{ buckets: 3, series: 1 }, HOUR, RANKED, { filter: texts.at(-1) ?? '' }], (query) =>
        statistics({ ...query, groupBy }),
      ),
    ),
    suggestions: await ofEach([...fields, 'meta.user_id', 'feedback'] as const, (field) =>
      store.suggestions(scope, { field }),
    ),
  });
}

function withSortedAttachments<Run extends { readonly attachments?: readonly AttachmentInfo[] }>(run: Run): Run {
  return { ...run, attachments: run.attachments?.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
}

function byTrace(a: StoredRun, b: StoredRun): number {
  return a.trace_id < b.trace_id ? -1 : a.trace_id > b.trace_id ? 1 : 0;
}

/** Numbers have twelve digits, because sums of floats depend on their order. */
function rounded(value: unknown): unknown {
  const short = (_: string, item: unknown) => (typeof item === 'number' ? Number(item.toPrecision(12)) : item);
  return JSON.parse(JSON.stringify(value, short));
}
