// Deletions, late messages in all forms, and restarts in any order, compared with a set of runs.
import fc from 'fast-check';
import { copyRuns } from '#src/receiver/api/store-copy.ts';
import type { DeletionTarget, Scope } from '#src/receiver/domain/query/query.ts';
import type { RunOperation } from '#src/receiver/domain/run-message.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import { MemoryStore } from '#src/receiver/store/memory-store.ts';
import type { Store } from '#src/receiver/store/store.ts';
import { canonicalId } from '#src/run/time.ts';
import { equal, id, post, runsOf, simple } from './support.ts';

const RUNS = 3;

interface SentTrace {
  /** Whether its runs name the trace, only their parent, only their span, or only the first one names the trace too. */
  readonly form: 'named' | 'unnamed' | 'span' | 'both';
  readonly project: string;
  /** The position of the run that has the user, the thread, or neither. */
  readonly user: number;
  readonly thread: number;
  /** The position of the run that is in another project, if the runs name the trace. */
  readonly foreign: number;
  readonly startsLater: boolean;
}

const aTrace: fc.Arbitrary<SentTrace> = fc.record({
  form: fc.constantFrom('named', 'unnamed', 'span', 'both'),
  project: fc.constantFrom('shop', 'bank'),
  user: fc.nat(RUNS),
  thread: fc.nat(RUNS),
  foreign: fc.integer({ min: 1, max: RUNS }),
  startsLater: fc.boolean(),
});

interface Deletion {
  readonly target: DeletionTarget;
  readonly project: string | undefined;
}

type Step = { readonly trace: number; readonly runs: number } | Deletion | 'restart';

const TRACES = 4;
const rootId = (trace: number): string => id(10 * trace);
const spanId = (trace: number, run: number): string => (10 * trace + run).toString(16).padStart(16, 'a');
const otelTraceId = (trace: number): string => spanId(trace, 0) + spanId(trace, 9);
const aTarget: fc.Arbitrary<DeletionTarget> = fc.oneof(
  fc
    .tuple(fc.constantFrom(rootId, otelTraceId), fc.nat(TRACES - 1))
    .map(([idOf, trace]) => ({ kind: 'trace' as const, id: canonicalId(idOf(trace)) })),
  fc.constantFrom({ kind: 'user', id: 'ada' }, { kind: 'thread', id: 't' }, { kind: 'project', id: 'shop' }),
);
const someSteps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof<fc.WeightedArbitrary<Step>[]>(
    // A bit for each run.
    {
      arbitrary: fc.record({ trace: fc.nat(TRACES - 1), runs: fc.integer({ min: 1, max: 2 ** RUNS - 1 }) }),
      weight: 6,
    },
    { arbitrary: fc.record({ target: aTarget, project: fc.constantFrom(undefined, undefined, 'bank') }), weight: 2 },
    { arbitrary: fc.constant('restart'), weight: 1 },
  ),
  { minLength: 1, maxLength: 12 },
);

function projectOf({ form, project, foreign }: SentTrace, run: number): string {
  return form === 'named' && run === foreign ? 'desk' : project;
}

function messageOf(trace: SentTrace, at: number, run: number): RunOperation {
  const metadata = { ...(trace.user === run && { user_id: 'ada' }), ...(trace.thread === run && { thread_id: 't' }) };
  const ids = { trace_id: otelTraceId(at), span_id: spanId(at, run) };
  const hasSpan = trace.form === 'span' || trace.form === 'both';
  const otel = { ...ids, ...(run > 0 && { parent_span_id: spanId(at, 0) }) };
  const fields = {
    session_name: projectOf(trace, run),
    ...(trace.startsLater && { start_time: '2100-01-01T00:00:00.000000Z' }),
    extra: { metadata: { ...metadata, ...(hasSpan && { otel }) } },
  };
  const below = run === 0 || hasSpan ? {} : { parent: 10 * at };
  return trace.form === 'named' || (trace.form === 'both' && run === 0)
    ? post(10 * at + run, { ...below, ...fields })
    : simple(10 * at + run, { ...below, ...fields });
}

/** Returns the runs of a trace that a deletion deletes, of those that are stored. */
function deletedRuns(
  { target, project }: Deletion,
  trace: SentTrace,
  at: number,
  stored: readonly number[],
): readonly number[] {
  const own = stored.filter((run) => project === undefined || projectOf(trace, run) === project);
  const root = stored.includes(0) || trace.form !== 'named' ? 0 : Math.min(...stored);
  const isCovered = {
    trace: () => namesOf(trace, at, stored).includes(target.id),
    user: () => own.includes(trace.user),
    thread: () => own.includes(trace.thread),
    project: () => [target.id, project ?? target.id].every((name) => projectOf(trace, root) === name),
  };
  return own.length > 0 && isCovered[target.kind]() ? own : [];
}

/** Returns the ids with which clients mean a trace of which some runs are stored. */
function namesOf({ form }: SentTrace, at: number, stored: readonly number[]): string[] {
  const isRootId = stored.includes(0) || (form === 'named' && stored.length > 0);
  const isOtelId = (form === 'span' || form === 'both') && stored.length > 0;
  return [...(isRootId ? [rootId(at)] : []), ...(isOtelId ? [canonicalId(otelTraceId(at))] : [])];
}

/** Checks after each step that exactly what deletions cover is gone. */
export async function checkDeletions(
  openTenant: (tenant: string) => { readonly store: () => Promise<Store>; readonly restart: () => Promise<void> },
  numRuns: number,
): Promise<void> {
  let tenants = 0;
  const someTraces = fc.array(aTrace, { minLength: TRACES, maxLength: TRACES });
  await fc.assert(
    fc.asyncProperty(someTraces, someSteps, async (traces, steps) => {
      const tenant = `deletions ${++tenants}`;
      const { store, restart } = openTenant(tenant);
      const stored = traces.map(() => new Set<number>());
      const deadTraces = new Set<number>();
      const deadRuns = new Set<string>();
      const all = traces.map((_, trace) => ({ trace, runs: 2 ** RUNS - 1 }));
      for (const step of [...steps, ...all]) {
        if (step === 'restart') await restart();
        else if ('trace' in step) {
          const { trace: at } = step;
          const trace = traces[at] as SentTrace;
          // Runs below others name nothing but their parent, so they follow it.
          const runs = [0, 1, 2].filter(
            (run) => (step.runs >> run) % 2 === 1 || (run === 0 && trace.form === 'unnamed'),
          );
          for (const run of runs) if (!deadTraces.has(at) && !deadRuns.has(id(10 * at + run))) stored[at]?.add(run);
          await (await store()).apply(
            { tenant },
            runs.map((run) => messageOf(trace, at, run)),
          );
        } else {
          const names = traces.flatMap((trace, at) => namesOf(trace, at, [...(stored[at] ?? [])]));
          // A trace that has not arrived has no other name yet than the one in the deletion.
          if (step.target.kind === 'trace' && !names.includes(step.target.id)) continue;
          for (const [at, trace] of traces.entries()) {
            const runs = stored[at] ?? new Set();
            const deleted = deletedRuns(step, trace, at, [...runs]);
            if (deleted.length > 0 && step.project === undefined) deadTraces.add(at);
            for (const run of deleted) {
              runs.delete(run);
              deadRuns.add(id(10 * at + run));
            }
          }
          const scope = { tenant, ...(step.project !== undefined && { project: step.project }) };
          await (await store()).remove(scope, step.target);
        }
        const kept = stored.flatMap((runs, at) => [...runs].map((run) => id(10 * at + run))).sort();
        await expectOnly(await store(), { tenant }, kept);
      }
      const copy = new MemoryStore();
      await copyRuns(await store(), copy, { tenant }, () => {});
      await expectOnly(copy, { tenant }, await exported(await store(), { tenant }));
    }),
    { numRuns },
  );
}

async function exported(store: Store, scope: Scope): Promise<string[]> {
  return (await runsOf(store, {}, scope)).map((run) => run.id).sort();
}

/** Expects that no read of a store returns or counts other runs than these. */
async function expectOnly(store: Store, scope: Scope, kept: readonly string[]): Promise<void> {
  const query = parsedQuery({ limit: 100 });
  const [runs, list, traces, statistics, words, users] = await Promise.all([
    exported(store, scope),
    store.list(scope, query),
    store.traces(scope, query),
    store.statistics(scope, query),
    store.list(scope, parsedQuery({ limit: 100, filter: 'run' })),
    store.suggestions(scope, { field: 'user' }),
  ]);
  equal(runs, kept);
  for (const { items } of [list, words]) equal(items.map((run) => run.id).sort(), kept);
  const counts = traces.items.map(({ trace }) => trace.runs);
  equal([counts.reduce((sum, count) => sum + count, 0), statistics.total.runs], [kept.length, kept.length]);
  const hasUser = list.items.some(({ user }) => user !== undefined);
  equal(users.length > 0, hasUser);
  const outlines = await Promise.all(traces.items.map(({ trace_id }) => store.outline(scope, trace_id)));
  equal(outlines.flat().length, kept.length);
}
