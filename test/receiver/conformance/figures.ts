// The figures that a key limited to a project sees, compared with those of a tenant that has only the runs of the project.
import fc from 'fast-check';
import type { Scope } from '#src/receiver/domain/query/query.ts';
import type { RunOperation } from '#src/receiver/domain/run-message.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import type { Store } from '#src/receiver/store/store.ts';
import { equal, feedback, id, patch, post, runsOf, statisticsOf } from './support.ts';

const RUNS = 5;

interface SentRun {
  readonly project: string;
  readonly type: string;
  readonly tokens: number;
  readonly hasFailed: boolean;
  readonly isOpen: boolean;
  readonly score: number | undefined;
  readonly thread: string | undefined;
  /** What a patch changes after all runs have been sent. */
  readonly patch: 'nothing' | 'tokens' | 'end' | 'project';
}

const aRun: fc.Arbitrary<SentRun> = fc.record({
  project: fc.constantFrom('shop', 'shop', 'bank'),
  type: fc.constantFrom('chain', 'llm', 'tool'),
  tokens: fc.nat(100),
  hasFailed: fc.boolean(),
  isOpen: fc.boolean(),
  score: fc.option(fc.nat(5), { nil: undefined }),
  thread: fc.constantFrom('a', 'b', undefined),
  patch: fc.constantFrom('nothing', 'nothing', 'tokens', 'end', 'project'),
});

/** The root is in the project, the other runs are its children. */
const aTrace = fc.record({ root: aRun, children: fc.array(aRun, { maxLength: RUNS - 1 }) });
type SentTrace = typeof aTrace extends fc.Arbitrary<infer Trace> ? Trace : never;

function usage(tokens: number): Pick<RunOperation['fields'], 'outputs'> {
  return { outputs: { usage_metadata: { input_tokens: tokens, output_tokens: 1, total_tokens: tokens + 1 } } };
}

function messagesOf({ root, children }: SentTrace, trace: number): RunOperation[][] {
  return [{ ...root, project: 'shop' }, ...children].map((run, at) => {
    const number = 10 * trace + at;
    const metadata = { ls_model_name: 'gpt-4.1', ls_provider: 'openai', ...(run.thread && { thread_id: run.thread }) };
    const whole = post(number, {
      session_name: run.project,
      run_type: run.type,
      inputs: { text: `question ${number}` },
      extra: { metadata },
      ...(at > 0 && { parent: 10 * trace }),
      ...(!run.isOpen && { ms: 1_000 * (1 + at) }),
      ...(run.hasFailed && { error: `Error: ${number}` }),
      ...(run.type === 'llm' && run.patch !== 'tokens' && usage(run.tokens)),
    });
    if (run.patch === 'nothing') return [whole];
    if (run.patch === 'tokens') return [whole, patch(number, run.type === 'llm' ? usage(run.tokens) : {})];
    if (run.patch === 'end') return [whole, patch(number, { end_time: '2026-11-20T07:10:00.000000Z' })];
    const from = { ...whole, fields: { ...whole.fields, session_name: run.project === 'shop' ? 'bank' : 'shop' } };
    return [from, patch(number, { session_name: run.project })];
  });
}

const FILTERS = [
  ...['', 'tokens>50', 'cost>0.0001', 'input_tokens<30'],
  ...['status:failed_below', 'NOT status:success', 'status:error'],
];
const SORTS = ['start_time', 'tokens', 'cost', 'latency'] as const;

/** The sums of costs may differ in their last digit, because runs arrive in another order. */
async function readAll(store: Store, scope: Scope): Promise<unknown> {
  const read: unknown[] = [];
  for (const filter of FILTERS) {
    for (const sort of SORTS) read.push((await store.traces(scope, parsedQuery({ filter, sort }, 'traces'))).items);
    for (const sort of SORTS) read.push((await store.list(scope, parsedQuery({ filter, sort }))).items);
    read.push((await store.threads(scope, parsedQuery({ filter }, 'traces'))).items);
    read.push(await statisticsOf(store, { filter }, scope), await statisticsOf(store, { groupBy: 'thread' }, scope));
  }
  for (const field of ['name', 'model', 'status', 'thread', 'feedback', 'project'] as const) {
    read.push(await store.suggestions(scope, { field }));
  }
  read.push(await store.projects(scope, parsedQuery({}).filter.range), await runsOf(store, {}, scope));
  return JSON.parse(JSON.stringify(read, (_, value) => (typeof value === 'number' ? +value.toPrecision(12) : value)));
}

/** Checks the rule with `count` generated sets of traces. */
export async function checkFigures(store: Store, count: number): Promise<void> {
  let tenants = 0;
  const traces = fc.array(aTrace, { minLength: 1, maxLength: 3 });
  const property = fc.asyncProperty(traces, fc.infiniteStream(fc.nat(1_000)), async (sent, random) => {
    tenants += 1;
    const [both, alone] = [{ tenant: `both ${tenants}` }, { tenant: `alone ${tenants}` }];
    const ofRuns = sent.flatMap((trace, at) => messagesOf(trace, at));
    const projectOf = (messages: readonly RunOperation[]) =>
      messages.at(-1)?.fields.session_name ?? messages[0]?.fields.session_name;
    // The messages of a run arrive in their order.
    const places = ofRuns.flatMap((messages, run) => messages.map(() => ({ run, place: random.next().value })));
    const order = places.sort((a, b) => a.place - b.place).map(({ run }) => run);
    const sentOf = new Map<number, number>();
    for (const run of order) {
      const at = sentOf.get(run) ?? 0;
      sentOf.set(run, at + 1);
      const message = ofRuns[run]?.[at] as RunOperation;
      await store.apply(both, [message]);
      if (projectOf(ofRuns[run] ?? []) === 'shop') await store.apply(alone, [message]);
    }
    for (const [at, { root, children }] of sent.entries()) {
      for (const [child, { score }] of [root, ...children].entries()) {
        const number = 10 * at + child;
        if (score === undefined) continue;
        for (const tenant of [both, alone])
          await store.addFeedback(tenant, feedback(number, { id: id(5_000 + number), score }));
      }
    }
    const [seen, expected] = [await readAll(store, { ...both, project: 'shop' }), await readAll(store, alone)];
    equal(seen, expected);
  });
  await fc.assert(property, { numRuns: count });
}
