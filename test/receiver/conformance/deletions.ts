// Deletions, late messages in all forms, and restarts in any order, compared with a set of runs.
import fc from 'fast-check';
import type { DeletionTarget } from '#src/receiver/domain/query/query.ts';
import type { RunOperation } from '#src/receiver/domain/run-message.ts';
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
  readonly startsLater: boolean;
}

const aTrace: fc.Arbitrary<SentTrace> = fc.record({
  form: fc.constantFrom('named', 'unnamed', 'span', 'both'),
  project: fc.constantFrom('shop', 'bank'),
  user: fc.nat(RUNS),
  thread: fc.nat(RUNS),
  startsLater: fc.boolean(),
});

type Step =
  | { readonly trace: number; readonly runs: number }
  | { readonly target: DeletionTarget; readonly project: string | undefined }
  | 'restart';

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

function messageOf(trace: SentTrace, at: number, run: number): RunOperation {
  const metadata = { ...(trace.user === run && { user_id: 'ada' }), ...(trace.thread === run && { thread_id: 't' }) };
  const ids = { trace_id: otelTraceId(at), span_id: spanId(at, run) };
  const hasSpan = trace.form === 'span' || trace.form === 'both';
  const otel = { ...ids, ...(run > 0 && { parent_span_id: spanId(at, 0) }) };
  const fields = {
    session_name: trace.project,
    ...(trace.startsLater && { start_time: '2100-01-01T00:00:00.000000Z' }),
    extra: { metadata: { ...metadata, ...(hasSpan && { otel }) } },
  };
  const below = run === 0 || hasSpan ? {} : { parent: 10 * at };
  return trace.form === 'named' || (trace.form === 'both' && run === 0)
    ? post(10 * at + run, { ...below, ...fields })
    : simple(10 * at + run, { ...below, ...fields });
}

/** Returns whether a deletion selects a trace of which some runs were sent. */
function selects(
  { target, project }: Exclude<Step, 'restart' | { trace: number }>,
  trace: SentTrace,
  at: number,
  sent: ReadonlySet<number>,
  isStored: boolean,
): boolean {
  if (project !== undefined && project !== trace.project) return false;
  if (target.kind === 'trace') {
    const isOtelId = target.id === canonicalId(otelTraceId(at)) && trace.form !== 'named' && trace.form !== 'unnamed';
    // Of a trace that is not stored yet, only the id under which it will be stored is known.
    if (isOtelId) return sent.size > 0 && (isStored || trace.form === 'span' || !sent.has(0));
    return target.id === rootId(at) && (trace.form === 'named' ? sent.size > 0 : sent.has(0));
  }
  const isSelected = {
    user: sent.has(trace.user),
    thread: sent.has(trace.thread),
    project: trace.project === target.id,
  };
  return isSelected[target.kind] && !trace.startsLater;
}

/** Checks after each step that exactly the traces that deletions select are gone. */
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
      const sent = traces.map(() => new Set<number>());
      const dead = new Set<number>();
      const deletions: [deletion: Exclude<Step, 'restart' | { trace: number }>, stored: readonly boolean[]][] = [];
      const all = traces.map((_, trace) => ({ trace, runs: 2 ** RUNS - 1 }));
      for (const step of [...steps, ...all]) {
        if (step === 'restart') await restart();
        else if ('trace' in step) {
          const trace = traces[step.trace] as SentTrace;
          // Runs below others name nothing but their parent, so they follow it.
          const runs = [0, 1, 2].filter(
            (run) => (step.runs >> run) % 2 === 1 || (run === 0 && trace.form === 'unnamed'),
          );
          for (const run of runs) sent[step.trace]?.add(run);
          await (await store()).apply(
            { tenant },
            runs.map((run) => messageOf(trace, step.trace, run)),
          );
        } else {
          deletions.push([step, sent.map((runs) => runs.size > 0)]);
          const scope = { tenant, ...(step.project !== undefined && { project: step.project }) };
          await (await store()).remove(scope, step.target);
        }
        for (const [at, trace] of traces.entries()) {
          const isSelected = deletions.some(([deletion, stored]) =>
            selects(deletion, trace, at, sent[at] ?? new Set(), stored[at] === true),
          );
          if (isSelected) dead.add(at);
        }
        const kept = sent.flatMap((runs, at) => (dead.has(at) ? [] : [...runs].map((run) => id(10 * at + run))));
        const stored = (await runsOf(await store(), {}, { tenant })).map((run) => run.id);
        equal(stored.sort(), kept.sort());
      }
    }),
    { numRuns },
  );
}
