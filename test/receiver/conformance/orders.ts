// Runs of trees by simple ingestion in any order, compared with the same runs in the order parent first.
import fc from 'fast-check';
import type { RunOperation } from '#src/receiver/domain/run-message.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import { equal, feedback, id, patch, runsOf, second, simple } from './support.ts';

const RUNS = 7;

/** The parent of each run, which has a smaller number. A run without one is a root. */
const someParents = fc.tuple(...[...Array(RUNS).keys()].map((at) => fc.option(fc.nat(Math.max(0, at - 1)))));

/** The positions of messages that arrive, in order: each once at least, and some again. */
const someOrder = fc.tuple(
  fc.shuffledSubarray([...Array(2 * RUNS).keys()], { minLength: 2 * RUNS }),
  fc.array(fc.nat(2 * RUNS - 1), { maxLength: 6 }),
);

/** The posts of runs, then their patches, as in `POST /runs` and `PATCH /runs/{id}`. */
function messagesOf(parents: readonly (number | null)[]): RunOperation[] {
  const posts = parents.map((parent, at) => {
    const isBelow = at > 0 && parent !== null;
    const metadata = { ...(at === 3 && { thread_id: 'talk' }), ...(at === 4 && { user_id: 'ada' }) };
    return simple(at, { ...(isBelow && { parent }), run_type: at === 5 ? 'llm' : 'chain', extra: { metadata } });
  });
  const usage = { usage_metadata: { input_tokens: 7 } };
  const patches = parents.map((_, at) => patch(at, { end_time: second(20 + at), outputs: at === 5 ? usage : { at } }));
  return [...posts, ...patches];
}

/** Checks that traces are those of the order parent first. */
export async function checkOrders(store: Store, numRuns: number): Promise<void> {
  let tenants = 0;
  await fc.assert(
    fc.asyncProperty(someParents, someOrder, async (parents, [order, again]) => {
      const messages = messagesOf(parents);
      const answers = async (sent: readonly (RunOperation | undefined)[]): Promise<unknown> => {
        const scope = { tenant: `orders ${++tenants}` };
        for (const message of sent) {
          if (message !== undefined) await store.apply(scope, [message]);
          if (message?.id === id(2)) await store.addFeedback(scope, feedback(2));
        }
        const all = parsedQuery({ limit: 100 });
        // Of other runs, some have been traces of their own, and their ids are further names of the traces.
        const roots = parents.flatMap((parent, at) => (at === 0 || parent === null ? [id(at)] : []));
        return {
          runs: (await runsOf(store, {}, scope)).sort((a, b) => (a.id < b.id ? -1 : 1)),
          traces: await store.traces(scope, all),
          threads: await store.threads(scope, all),
          figures: await store.statistics(scope, parsedQuery({ groupBy: 'thread' })),
          outlines: await Promise.all(roots.map((root) => store.outline(scope, root))),
          filtered: await Promise.all(roots.map((traceId) => store.list(scope, parsedQuery({ traceId })))),
        };
      };
      equal(await answers([...order, ...again].map((at) => messages[at])), await answers(messages));
    }),
    { numRuns },
  );
}

/** Checks that what a deletion of a trace covers stays deleted, and that it covers nothing that arrives above it. */
export async function checkDeletedOrders(store: Store, numRuns: number): Promise<void> {
  let tenants = 0;
  await fc.assert(
    fc.asyncProperty(someParents, someOrder, fc.nat(2 * RUNS - 1), async (parents, [order, again], deletedAfter) => {
      const scope = { tenant: `deleted orders ${++tenants}` };
      const messages = messagesOf(parents);
      /** The first run of the trace of each stored run, the parents that have been named, and the runs that are posted. */
      const tops = new Map<string, string>();
      const parentOf = new Map<string, string | undefined>();
      const posted = new Set<string>();
      const dead = new Set<string>();
      for (const [step, at] of [...order, ...again].entries()) {
        const { id: run = '', kind, fields } = messages[at] ?? {};
        const { parent_run_id: parent = '' } = fields ?? {};
        await store.apply(scope, messages.slice(at, at + 1));
        if (!dead.has(run) && !tops.has(run) && dead.has(parent)) dead.add(run);
        if (!dead.has(run)) {
          if (!tops.has(run)) tops.set(run, tops.get(parent) ?? run);
          if (kind === 'post') posted.add(run);
          parentOf.set(run, parent || parentOf.get(run));
        }
        for (const [below, above] of parentOf) {
          if (above === undefined || tops.get(below) !== below || !posted.has(above)) continue;
          const top = tops.get(above) ?? below;
          for (const [one, own] of tops) if (own === below) tops.set(one, top);
        }
        if (step !== deletedAfter) continue;
        const top = tops.get(run);
        // A store in ClickHouse finds only visible traces.
        if (top === undefined || !posted.has(top)) continue;
        await store.remove(scope, { kind: 'trace', id: top });
        for (const [one, own] of tops) if (own === top) dead.add(one);
        for (const gone of dead) for (const known of [tops, parentOf, posted]) known.delete(gone);
      }
      const kept = parents.map((_, at) => id(at)).filter((run) => !dead.has(run));
      equal((await runsOf(store, {}, scope)).map((run) => run.id).sort(), kept);
    }),
    { numRuns },
  );
}
