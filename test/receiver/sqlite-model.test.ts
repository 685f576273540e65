import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  ALL_TIMES,
  type Feedback,
  type ListQuery,
  MemoryStore,
  parsedQuery,
  type RemovalTarget,
  type RunFields,
  type RunOperation,
  type Scope,
  type StatisticsQuery,
  type Store,
} from '#src/receiver.ts';
import { isoTimestamp } from '#src/run/time.ts';
import { indexAll, openLocalStore, runsIn, storePath } from './local-store.ts';

const IDS = Array.from({ length: 8 }, (_, index) => `0193b3a0-0000-7000-8000-00000000000${index}`);
const anId = fc.constantFrom(...IDS);
const aTime = fc
  .oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 300_000 }))
  .map((seconds) => isoTimestamp(Date.UTC(2026, 10, 20, 7, 0, seconds) * 1_000));
const aWord = fc.constantFrom(
  'Grün',
  'apple',
  'Äpfel',
  'apple pie',
  '東京',
  'a_b',
  'nul\u0000',
  '\ud800',
  'x'.repeat(70),
  '"quoted"',
);
/** Doubles add and subtract these exactly. */
const tokens = fc.constantFrom(0, 1, 7, 1.5, 1e12);
const cached = { input_tokens_details: fc.record({ cached_tokens: fc.constantFrom(0, 1, 5) }) };

/** Metadata of calls that several sources record. */
const someEvidence = fc.record(
  {
    recorded_by: fc.constantFrom(['wrapOpenAI'], ['fetch', 'wrapOpenAI'], [], 7),
    otel: fc.constantFrom({ scope: { name: 'openai' } }, { scope: { name: 'fetch' } }),
    response_id: fc.constantFrom('resp_1', 'resp_2'),
  },
  { requiredKeys: [] },
);

/** Each field is present in half of the cases. */
const someFields: fc.Arbitrary<RunFields> = fc.record(
  {
    // SQLite groups text as UTF-8 up to a NUL.
    name: aWord.filter((word) => word.isWellFormed() && !word.includes('\0')),
    run_type: fc.constantFrom('chain', 'llm', 'llm', 'llm', 'embedding', 'tool'),
    start_time: aTime,
    end_time: aTime,
    error: fc.constantFrom('', 'Error: no\n at x', 'Incomplete: given up'),
    tags: fc.uniqueArray(aWord, { maxLength: 2 }),
    parent_run_id: anId,
    trace_id: anId,
    dotted_order: fc
      .array(anId, { maxLength: 1 })
      .map((ids) => ids.map((id) => `20261120T070000000000Z${id}`).join('.')),
    session_name: fc.constantFrom('shop', 'bank', 'default'),
    session_id: fc.constantFrom('shop', 'desk'),
    extra: fc.record(
      {
        metadata: fc.dictionary(
          fc.constantFrom('ls_model_name', 'user_id', 'thread_id', 'end_reason'),
          fc.constantFrom('cancelled', 'ada', 7, null),
        ),
        evidence: someEvidence,
        other: aWord,
      },
      { requiredKeys: [] },
    ),
    inputs: fc.record(
      { question: aWord, deep: fc.array(aWord, { maxLength: 2 }), input: fc.constantFrom('Hi', 'Hello') },
      { requiredKeys: [] },
    ),
    outputs: fc.record(
      {
        answer: aWord,
        usage: fc.record({ input_tokens: tokens, total_cost: tokens, ...cached }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    ),
    events: fc.array(fc.record({ name: fc.constantFrom('new_token', 'other'), time: aTime }), { maxLength: 2 }),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<RunFields>;

/** Moves the evidence to the metadata. The types of runs with the text of a request are those of calls. */
function withEvidence({ extra, ...fields }: RunFields): RunFields {
  const { evidence, metadata, ...others } = (extra ?? {}) as Record<string, object | undefined>;
  if (fields.inputs?.input !== undefined && fields.run_type === 'chain') fields.run_type = 'llm';
  const all = { ...metadata, ...evidence };
  const own = metadata === undefined && evidence === undefined ? others : { ...others, metadata: all };
  return { ...fields, ...(extra && { extra: own }) };
}

const anOperation: fc.Arbitrary<RunOperation> = fc
  .record({
    kind: fc.constantFrom('post', 'patch'),
    id: anId,
    fields: someFields,
    attachments: fc.uniqueArray(
      fc.record({
        name: fc.constantFrom('a', 'b'),
        mimeType: fc.constant('x/y'),
        bytes: fc.uint8Array({ maxLength: 3 }),
      }),
      { maxLength: 2, selector: ({ name }) => name },
    ),
  })
  .map((operation) => {
    const { dotted_order: above, parent_run_id, ...fields } = withEvidence(operation.fields);
    // Parents have smaller ids, so that they form no cycle.
    const parent = parent_run_id !== undefined && parent_run_id < operation.id ? { parent_run_id } : {};
    if (above === undefined) return { ...operation, fields: { ...fields, ...parent } };
    const own = `20261120T070000000000Z${operation.id}`;
    const order = { dotted_order: above === '' ? own : `${above}.${own}`, trace_id: above.slice(-36) || operation.id };
    return { ...operation, fields: { ...fields, ...parent, ...order } };
  }) as fc.Arbitrary<RunOperation>;

const aFeedback: fc.Arbitrary<Feedback> = fc.record({
  id: fc.constantFrom('f1', 'f2'),
  run_id: anId,
  key: fc.constantFrom('liked', 'comment'),
  score: fc.constantFrom(1, 0, true),
  created_at: fc.constant('2026-11-20T07:00:00Z'),
  modified_at: aTime,
});

const aTarget: fc.Arbitrary<RemovalTarget> = fc.oneof(
  fc.record({ kind: fc.constantFrom('run', 'trace'), id: anId }),
  fc.record({ kind: fc.constantFrom('thread', 'user'), id: fc.constantFrom('ada', 'cancelled') }),
  fc.record({ kind: fc.constant('project'), id: fc.constantFrom('shop', 'desk', 'default') }),
);
const aProject = fc.constantFrom(undefined, undefined, 'shop', 'bank');
type Step = readonly RunOperation[] | Feedback | { readonly target: RemovalTarget; readonly project?: string };

const aStep: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.array(anOperation, { maxLength: 6 }), weight: 4 },
  { arbitrary: aFeedback, weight: 1 },
  {
    arbitrary: fc
      .record({ target: aTarget, project: aProject })
      .map(({ target, project }) => ({ target, ...(project !== undefined && { project }) })),
    weight: 1,
  },
);

const CONDITIONS = `name:apple name:*p* name:Ä* name:*n type:llm,chain status:error status:success,pending status:*e*
  project:shop project:desk project:*a* user:ada user:* thread:ada,cancelled model:*d* model:ada
  tag:apple tag:*ppl* tag:"東京",a_b error:NO error:* is:root
  meta.user_id meta.user_id:ada meta.user_id:7 meta.thread_id:null meta.end_reason:*l* meta.thread_id:cancelled,7
  feedback.liked feedback.liked>0 feedback.comment:true feedback.liked:1
  latency>10s latency:..1m tokens>1 input_tokens:0..7 output_tokens>0 cost>=1.5 cached<50% cached:0.5..`;
const aCondition = fc.constantFrom(
  ...CONDITIONS.split(/\s+/),
  ...IDS.slice(0, 2).flatMap((id) => [`run:${id}`, `trace:${id}`]),
);
const { aTree } = fc.letrec<{ aTree: string; aNode: string }>((tie) => ({
  aTree: fc.oneof({ maxDepth: 3 }, aCondition, tie('aNode')),
  aNode: fc.oneof(
    tie('aTree').map((tree) => `-(${tree})`),
    tie('aTree').map((tree) => `any(${tree.replaceAll('any(', '(')})`),
    fc.tuple(tie('aTree'), tie('aTree')).map((trees) => `(${trees.join(' OR ')})`),
    fc.tuple(tie('aTree'), tie('aTree')).map((trees) => `(${trees.join(' ')})`),
  ),
}));
const someFilters = fc.array(aTree, { minLength: 4, maxLength: 4 });

async function take(store: Store, scope: Scope, step: Step): Promise<unknown> {
  if (Array.isArray(step)) return store.apply(scope, step);
  if (!('target' in step)) return store.addFeedback(scope, step as Feedback);
  const { target, ...project } = step;
  const removal = await store.removable({ ...scope, ...project }, target);
  expect(await store.remove({ ...scope, ...project }, target)).toEqual(removal);
  return removal;
}

/** All answers of a store. Numbers have twelve digits, because sums of floats depend on their order. */
async function answersOf(store: Store, scope: Scope, texts: readonly string[]): Promise<unknown> {
  const all = { limit: 1_000 };
  const filters = [
    { project: 'shop' },
    { project: 'desk' },
    { filter: 'status:error,pending' },
    { filter: 'model:ada' },
    { filter: 'tag:apple' },
    { filter: 'meta.user_id=7' },
    { filter: 'meta.user_id=ada' },
    { filter: 'meta.user_id' },
    { filter: 'latency>=1s' },
    { filter: 'tokens>=1' },
  ];
  const words = ['apple', 'apfel', 'app', '"apple pie"', '東', 'a_b', 'x'.repeat(64), `"${'x'.repeat(70)} y"`, 'nul'];
  const traces = (query: ListQuery) => store.traces(scope, parsedQuery({ ...all, ...query }));
  const threads = (query: ListQuery) => store.threads(scope, parsedQuery({ ...all, ...query }));
  const list = (query: ListQuery) => store.list(scope, parsedQuery({ ...all, ...query }));
  const statistics = (query: StatisticsQuery) => store.statistics(scope, parsedQuery(query));
  const ofEach = <Answer>(ask: (id: string) => Promise<Answer>) => Promise.all(IDS.map(ask));
  const answers = {
    runs: await runsIn(store, {}, scope),
    projects: await store.projects(scope, ALL_TIMES),
    traces: await traces({}),
    byTokens: await traces({ sort: 'tokens', order: 'ascending' }),
    filtered: await Promise.all(filters.map(list)),
    filteredTraces: await Promise.all(filters.map(traces)),
    threads: await Promise.all([{}, { filter: 'thread:ada' }, ...filters].map(threads)),
    selectedThreads: await Promise.all(texts.map((filter) => threads({ filter }))),
    foundThreads: await Promise.all(words.map((text) => threads({ filter: text }))),
    selected: await Promise.all(texts.map((filter) => list({ filter }))),
    selectedTraces: await Promise.all(texts.map((filter) => traces({ filter }))),
    selectedFigures: await Promise.all(texts.map((filter) => statistics({ filter, buckets: 1 }))),
    found: await Promise.all(words.map((text) => list({ sort: 'latency', filter: text }))),
    foundTraces: await Promise.all(words.map((text) => traces({ filter: text }))),
    outlines: await ofEach((id) => store.outline(scope, id)),
    details: await ofEach((id) => store.details(scope, id)),
    outputs: await ofEach((id) => store.payload(scope, id, 'outputs')),
    attachments: await ofEach((id) => store.attachment(scope, id, 'a')),
    statistics: await statistics({ buckets: 3 }),
    byModel: await statistics({ groupBy: 'model', filter: 'since:2026-11-20T07:00:03Z' }),
    ofProject: await statistics({ groupBy: 'status', project: 'shop' }),
    grouped: await Promise.all(
      (['thread', 'user', 'tag', 'meta.user_id'] as const).map((groupBy) =>
        statistics({ groupBy, buckets: 2, series: 1 }),
      ),
    ),
    ofUser: await statistics({ filter: 'meta.user_id=ada' }),
    feedback: (await ofEach((id) => store.feedback(scope, [id]))).map((given) =>
      given.map(({ run_id, id }) => [run_id, id]).sort(),
    ),
  };
  return JSON.parse(
    JSON.stringify(answers, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(12)) : value)),
  );
}

test('a store on disk answers like a store in memory after any messages in any order', async () => {
  const path = storePath();
  const onDisk = await openLocalStore(path);
  let index = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(aStep, { minLength: 1, maxLength: 6 }), someFilters, async (steps, texts) => {
      // Tenants share nothing, and opening a store takes longer than the steps.
      const scope = { tenant: `tenant ${index}` };
      const inMemory = new MemoryStore();
      for (const step of steps) {
        const [expected, result] = await Promise.all([inMemory, onDisk].map((store) => take(store, scope, step)));
        expect(result).toEqual(expected);
        // Some of the searches find what is in the index, others what is not yet.
        index += 1;
        if (index % 3 === 0) await indexAll(path);
      }
      expect(await answersOf(onDisk, scope, texts)).toEqual(await answersOf(inMemory, scope, texts));
    }),
    { numRuns: 40, interruptAfterTimeLimit: 25_000, markInterruptAsFailure: true },
  );
});

/**
 * A message of a run that may record the same call as other runs. The parent of each run is fixed. Requests are compared
 * only if their message has the type of a call.
 */
function aCallMessage(parents: readonly number[]): fc.Arbitrary<RunOperation> {
  const fields = fc.record(
    {
      run_type: fc.constantFrom('llm', 'llm', 'llm', 'tool', 'retriever', 'chain'),
      name: fc.constantFrom('a', 'a', 'b'),
      start_time: fc.integer({ min: 0, max: 3 }).map(aSecond),
      end_time: fc.integer({ min: 2, max: 6 }).map(aSecond),
      error: fc.constantFrom('', 'Error: no'),
      inputs: fc.constantFrom({}, { input: 'Hi' }, { messages: [{ content: 'Hi' }] }, { input: 'Hello' }),
      outputs: fc.constantFrom({}, { usage: { input_tokens: 7 } }),
    },
    { requiredKeys: ['run_type', 'name', 'start_time'] },
  );
  const flags = { isNamed: fc.boolean(), hasParent: fc.boolean(), isSmall: fc.integer({ max: 3, min: 0 }) };
  return fc
    .record({ kind: fc.constantFrom('post', 'patch'), at: fc.nat(7), fields, evidence: someEvidence, ...flags })
    .map(({ kind, at, fields: { inputs, name, run_type, start_time, ...others }, evidence, ...draws }) => {
      const parent = parents[at - 1];
      return {
        kind,
        id: IDS[at] ?? '',
        fields: {
          ...others,
          ...(draws.isSmall > 0 && { name, run_type, start_time, ...(inputs && run_type !== 'chain' && { inputs }) }),
          ...(draws.isNamed && { trace_id: IDS[at < 4 ? 0 : 4] ?? '' }),
          ...(draws.hasParent && parent !== undefined && { parent_run_id: IDS[parent] ?? '' }),
          extra: { metadata: { user_id: 'ada', ...evidence } },
        },
        attachments: [],
      };
    });
}

function aSecond(second: number): string {
  return isoTimestamp(Date.UTC(2026, 10, 20, 7, 0, second) * 1_000);
}

/** All answers that depend on which runs record the same call. */
async function callsOf(store: Store, scope: Scope) {
  const hour = { filter: `since:${aSecond(0)} before:${aSecond(3_600)}`, buckets: 1 };
  const groups = ['run_type', 'status', 'user', 'meta.user_id'] as const;
  const statistics = [{}, hour].flatMap((range) => groups.map((groupBy) => ({ ...range, groupBy })));
  const answers = {
    lists: (await store.list(scope, parsedQuery({ limit: 100 }))).items,
    traces: (await store.traces(scope, parsedQuery({ limit: 100 }))).items,
    outlines: await Promise.all(IDS.map((id) => store.outline(scope, id))),
    statistics: await Promise.all(statistics.map((query) => store.statistics(scope, parsedQuery(query)))),
    roots: await store.statistics(scope, parsedQuery({ ...hour, filter: `${hour.filter} is:root`, groupBy: 'name' })),
  };
  return JSON.parse(JSON.stringify(answers)) as typeof answers;
}

test('a store on disk finds the same repeated calls as a store in memory after each message', async () => {
  const onDisk = await openLocalStore(storePath());
  const aRemoval = fc.record({ target: fc.record({ kind: fc.constantFrom('run', 'trace'), id: anId }) });
  // Parents have smaller ids, so that they form no cycle.
  const someSteps = fc.tuple(...IDS.slice(1).map((_, at) => fc.nat(at))).chain((parents) => {
    const someMessages = fc.array(aCallMessage(parents), { minLength: 1, maxLength: 6 });
    const step = fc.oneof({ arbitrary: someMessages, weight: 6 }, { arbitrary: aRemoval, weight: 1 });
    return fc.array(step as fc.Arbitrary<Step>, { minLength: 1, maxLength: 8 });
  });
  let [index, repeated] = [0, 0];
  await fc.assert(
    fc.asyncProperty(someSteps, async (steps) => {
      index += 1;
      const scope = { tenant: `tenant ${index}` };
      const inMemory = new MemoryStore();
      for (const step of steps) {
        await Promise.all([inMemory, onDisk].map((store) => take(store, scope, step)));
        const expected = await callsOf(inMemory, scope);
        expect(await callsOf(onDisk, scope)).toEqual(expected);
        repeated += expected.lists.filter(({ same_call_as }) => same_call_as !== undefined).length;
      }
    }),
    { numRuns: 60, interruptAfterTimeLimit: 25_000, markInterruptAsFailure: true },
  );
  expect(repeated).toBeGreaterThan(20);
});
