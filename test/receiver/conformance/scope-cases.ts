import { notDeepStrictEqual } from 'node:assert/strict';
import type { Scope } from '#src/receiver/domain/query/query.ts';
import { ALL_TIMES, parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import { equal, feedback, id, post, runsOf, SCOPE, type StoreCase, second, statisticsOf, table } from './support.ts';

/** The number of a run, and the time at which its tokens were revoked. */
interface Given {
  readonly run: number;
  readonly revokedMs: number;
}

const OWN: Given = { run: 1, revokedMs: 500 };

/** Stores a run with an attachment and feedback, and revokes the tokens of run 1. */
async function fill(store: Store, scope: Scope, given: Given): Promise<void> {
  const name = given === OWN ? 'own' : 'other';
  const extra = { metadata: { thread_id: 't' } };
  const run = post(given.run, { name, session_name: scope.project ?? 'shop', inputs: { name }, extra });
  const attachment = { name: 'a', bytes: new TextEncoder().encode(name), mimeType: 'text/plain' };
  await store.apply(scope, [{ ...run, attachments: [attachment] }]);
  await store.addFeedback(scope, feedback(given.run, { comment: name }));
  await store.revokeTokens(scope, id(OWN.run), given.revokedMs);
}

type Reads<Name extends string = string> = Readonly<Record<Name, (store: Store, scope: Scope) => Promise<unknown>>>;
/** Methods that change a store or report changes, and those whose results belong to no tenant. */
type Other = `${'add' | 'remov' | 'revoke' | 'subscribe'}${string}` | 'apply' | 'tokenSecrets';

/** Methods that read runs from a tenant or from one of the tenant's projects. */
const RUN_READS: Reads<Exclude<keyof Store, Other | 'mergedRuns' | 'tokensRevokedMs'>> = {
  runs: (store, scope) => runsOf(store, {}, scope),
  attachment: (store, scope) => store.attachment(scope, id(1), 'a'),
  projects: (store, scope) => store.projects(scope, ALL_TIMES),
  traces: (store, scope) => store.traces(scope, parsedQuery({})),
  threads: (store, scope) => store.threads(scope, parsedQuery({})),
  list: (store, scope) => store.list(scope, parsedQuery({})),
  outline: (store, scope) => store.outline(scope, id(1)),
  details: (store, scope) => store.details(scope, id(1)),
  projectsOf: (store, scope) => store.projectsOf(scope, [id(1)]),
  payload: (store, scope) => store.payload(scope, id(1), 'inputs'),
  statistics: (store, scope) => statisticsOf(store, {}, scope),
  suggestions: (store, scope) => store.suggestions(scope, { field: 'name' }),
  feedback: (store, scope) => store.feedback(scope, [id(1)]),
  feedbackWithId: (store, scope) => store.feedbackWithId(scope, feedback(1).id),
};

/** Methods that read from a tenant and ignore the project. */
const TENANT_READS: Reads = {
  mergedRuns: (store, scope) => store.mergedRuns(scope, [id(1)]),
  tokensRevokedMs: (store, scope) => store.tokensRevokedMs(scope, [id(OWN.run)]),
};

async function readAll(store: Store, scope: Scope, reads: Reads): Promise<Record<string, unknown>> {
  const results: Record<string, unknown> = {};
  for (const [name, read] of Object.entries(reads)) results[name] = await read(store, scope);
  return results;
}

export const scopeCases: readonly StoreCase[] = [
  ...table<[string, Scope, Scope, Reads, Given]>(
    'Each method separates the data of',
    [
      // Run 1 of the other tenant is another run with the same id.
      ['two tenants', SCOPE, { tenant: 'other' }, { ...RUN_READS, ...TENANT_READS }, { run: 1, revokedMs: 501 }],
      [
        'two projects',
        { ...SCOPE, project: 'shop' },
        { ...SCOPE, project: 'other' },
        RUN_READS,
        { run: 2, revokedMs: 501 },
      ],
    ],
    async (store, [, own, other, reads, given]) => {
      await fill(store, own, OWN);
      const [before, empty] = [await readAll(store, own, reads), await readAll(store, other, reads)];
      for (const name of Object.keys(reads)) notDeepStrictEqual(before[name], empty[name], name);
      await fill(store, other, given);
      equal(await readAll(store, own, reads), before);
    },
  ),
  {
    title: 'A query for a project outside the scope finds nothing',
    run: async (store) => {
      await store.apply(SCOPE, [post(1), post(2, { session_name: 'other' })]);
      const [scope, query] = [{ ...SCOPE, project: 'other' }, parsedQuery({ project: 'shop' })];
      equal([(await store.list(scope, query)).items, (await store.traces(scope, query)).items], [[], []]);
      equal((await store.statistics(scope, query)).total.runs, 0);
    },
  },
  {
    title: 'Projects are limited to traces that start in the range',
    run: async (store) => {
      await store.apply(SCOPE, [post(1), post(2), post(3), post(4, { session_name: 'later' })]);
      const { filter } = parsedQuery({ filter: `since:${second(2)} before:${second(3)}` });
      equal(await store.projects(SCOPE, filter.range), [{ name: 'shop', traces: 1, last_start_time: second(2) }]);
    },
  },
  {
    title: 'A page has 50 items without a limit, and up to 1000 with a limit',
    run: async (store) => {
      const runs = Array.from({ length: 1_001 }, (_, at) => post(at));
      await store.apply(SCOPE, runs);
      for (const limit of [undefined, 1_000]) {
        const query = parsedQuery(limit === undefined ? {} : { limit });
        for (const page of [await store.list(SCOPE, query), await store.traces(SCOPE, query)]) {
          equal([page.items.length, typeof page.next], [limit ?? 50, 'string']);
        }
      }
    },
  },
];
