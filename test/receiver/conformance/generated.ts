// Messages, deletions and filters for the model of a store.
import fc from 'fast-check';
import type { Feedback } from '#src/receiver/domain/feedback.ts';
import { grouped } from '#src/receiver/domain/grouped.ts';
import { ageOf } from '#src/receiver/domain/identity.ts';
import type { DeletionTarget } from '#src/receiver/domain/query/query.ts';
import type { RunFields, RunOperation } from '#src/receiver/domain/run-message.ts';
import { condition, searchWords } from '#src/receiver/filter/parser.ts';
import { PROGRAM_ENDED } from '#src/run/record.ts';
import { isoTimestamp } from '#src/run/time.ts';
import { id, SPECIAL_TEXTS, span } from './support.ts';

export const IDS: readonly string[] = Array.from({ length: 8 }, (_, at) => id(at));
const FIRST_MS = Date.UTC(2026, 10, 20, 7);

export type Step =
  | { readonly operations: readonly RunOperation[] }
  | { readonly feedback: Feedback }
  | { readonly withdrawn: Pick<Feedback, 'id' | 'run_id'> }
  | { readonly revoked: string; readonly ms: number }
  | { readonly target: DeletionTarget; readonly project?: string };

export function timeAfter(seconds: number): string {
  return isoTimestamp((FIRST_MS + seconds * 1_000) * 1_000);
}

const anId = fc.constantFrom(...IDS);
const aTime = fc.oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 300_000 })).map(timeAfter);
const TEXTS = ['Grün', 'apple', 'Äpfel', 'apple pie', 'a_b', 'x'.repeat(70), 'y'.repeat(1_001), ...SPECIAL_TEXTS];
const aText = fc.constantFrom(...TEXTS, 'nul\u0000', '\ud800');
/** Doubles add and subtract these exactly. */
const tokens = fc.constantFrom(0, 1, 7, 1.5, 1e12);
const cached = { input_tokens_details: fc.record({ cached_tokens: fc.constantFrom(0, 1, 5) }) };

/** Metadata of calls that several sources record. The program has marked some of them. */
const someEvidence = fc.record(
  {
    recorded_by: fc.constantFrom(['wrapOpenAI'], ['fetch', 'wrapOpenAI'], [], 7),
    otel: fc.constantFrom<object[]>(
      { scope: { name: 'openai' } },
      { scope: { name: 'fetch' } },
      { protocol: 'http' },
      { parent_is_remote: true },
    ),
    'http.response.status_code': fc.constantFrom(200, 429),
    response_id: fc.constantFrom('resp_1', 'resp_2'),
    tool_call_id: fc.constantFrom('call_1', 'call_2'),
    ls_model_name: fc.constantFrom('gpt-4o', 'gpt-4o-2024-08-06', 'gpt-4o-mini'),
    same_call: fc.constantFrom(...IDS, 7),
    same_call_usage: fc.constantFrom({ input_tokens: 5 }, {}, 7),
  },
  { requiredKeys: [] },
);

/** Each field is present in half of the cases. */
const someFields: fc.Arbitrary<RunFields> = fc.record(
  {
    // SQLite groups text as UTF-8 up to a NUL.
    name: fc.constantFrom(...TEXTS, '__start__'),
    run_type: fc.constantFrom('chain', 'llm', 'llm', 'llm', 'embedding', 'tool'),
    start_time: aTime,
    end_time: aTime,
    error: fc.constantFrom('', 'Error: no\n at x', PROGRAM_ENDED),
    tags: fc.uniqueArray(aText, { maxLength: 2 }),
    parent_run_id: anId,
    trace_id: anId,
    dotted_order: fc
      .array(anId, { maxLength: 1 })
      .map((ids) => ids.map((above) => `20261120T070000000000Z${above}`).join('.')),
    session_name: fc.constantFrom('shop', 'bank', 'default'),
    limited_key: fc.constant(true as const),
    session_id: fc.constantFrom('shop', 'desk'),
    extra: fc.record(
      {
        metadata: fc.dictionary(
          fc.constantFrom('ls_model_name', 'user_id', 'thread_id', 'end_reason'),
          fc.constantFrom('cancelled', 'ada', 7, null, 'claude-opus-5', `${'y'.repeat(1_000)}z`),
        ),
        evidence: someEvidence,
        other: aText,
        runspan_end_reason: fc.constantFrom('cancelled', 'interrupted', 'incomplete'),
      },
      { requiredKeys: [] },
    ),
    inputs: fc.record(
      { question: aText, deep: fc.array(aText, { maxLength: 2 }), input: fc.constantFrom('Hi', 'Hello') },
      { requiredKeys: [] },
    ),
    outputs: fc.record(
      {
        answer: aText,
        status_code: fc.constantFrom(200, 404),
        usage: fc.record({ input_tokens: tokens, total_cost: tokens, ...cached }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    ),
    events: fc.array(fc.record({ name: fc.constantFrom('new_token', 'other'), time: aTime }), { maxLength: 2 }),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<RunFields>;

/** Moves the evidence to the metadata. Messages with the text of a request have no type that other messages contradict. */
function withEvidence({ extra, ...fields }: RunFields): RunFields {
  const { evidence, metadata, ...others } = (extra ?? {}) as Record<string, object | undefined>;
  if (fields.inputs !== undefined && fields.run_type !== undefined) fields.run_type = 'llm';
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

const aFeedbackId = fc.constantFrom('f1', 'f2');
const aFeedback: fc.Arbitrary<Feedback> = fc.record({
  id: aFeedbackId,
  run_id: anId,
  key: fc.constantFrom('liked', 'comment', 'note'),
  score: fc.constantFrom(1, 0, true),
  comment: fc.constantFrom('', 'apple', 'Ä*b'),
  created_at: fc.constant('2026-11-20T07:00:00Z'),
  modified_at: aTime,
});

const aTarget: fc.Arbitrary<DeletionTarget> = fc.oneof(
  fc.record({ kind: fc.constant('trace'), id: anId }),
  fc.record({ kind: fc.constantFrom('thread', 'user'), id: fc.constantFrom('ada', 'cancelled') }),
  fc.record({ kind: fc.constant('project'), id: fc.constantFrom('shop', 'desk', 'default') }),
);
const aDeletion: fc.Arbitrary<Step> = fc
  .record({ target: aTarget, project: fc.constantFrom(undefined, undefined, 'shop', 'bank') })
  .map(({ target, project }) => ({ target, ...(project !== undefined && { project }) }));

/** Steps with any messages, in any order. */
export const anySteps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { arbitrary: fc.record({ operations: fc.array(anOperation, { maxLength: 6 }) }), weight: 8 },
    { arbitrary: fc.record({ feedback: aFeedback }), weight: 3 },
    { arbitrary: fc.record({ withdrawn: fc.record({ id: aFeedbackId, run_id: anId }) }), weight: 1 },
    { arbitrary: fc.record({ revoked: anId, ms: fc.integer({ min: 1, max: 9 }) }), weight: 1 },
    { arbitrary: aDeletion, weight: 2 },
  ),
  { minLength: 1, maxLength: 6 },
);

/**
 * A message of a run that may record the same call as other runs. The parent of each run is fixed, and which runs are tools.
 * Some messages with inputs have no type.
 */
function aCallMessage(parents: readonly number[]): fc.Arbitrary<RunOperation> {
  const fields = fc.record(
    {
      run_type: fc.constantFrom('llm', 'llm', 'llm', 'retriever', 'chain'),
      name: fc.constantFrom('a', 'a', 'b'),
      start_time: fc.integer({ min: 0, max: 3 }).map(timeAfter),
      end_time: fc.integer({ min: 2, max: 6 }).map(timeAfter),
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
      const type = TOOLS.includes(at) && run_type !== 'chain' ? 'tool' : run_type;
      return {
        kind,
        id: IDS[at] ?? '',
        fields: {
          ...others,
          ...(draws.isSmall > 0 && { name, run_type: type, start_time }),
          ...(inputs && (draws.isSmall === 0 || type !== 'chain') && { inputs }),
          ...(draws.isNamed && { trace_id: IDS[at < 4 ? 0 : 4] ?? '' }),
          ...(draws.hasParent && parent !== undefined && { parent_run_id: IDS[parent] ?? '' }),
          extra: { metadata: { user_id: 'ada', ...evidence } },
        },
        attachments: [],
      };
    });
}

/** The positions of runs that are tools. */
const TOOLS: readonly number[] = [3, 5];

/** Steps in which several runs record the same call. Parents have smaller ids, so that they form no cycle. */
export const callSteps: fc.Arbitrary<Step[]> = fc.tuple(...IDS.slice(1).map((_, at) => fc.nat(at))).chain((parents) => {
  const operations = fc.array(aCallMessage(parents), { minLength: 1, maxLength: 6 });
  const target = fc.record({ kind: fc.constant('trace' as const), id: anId });
  const step: fc.Arbitrary<Step> = fc.oneof(
    { arbitrary: fc.record({ operations }), weight: 6 },
    { arbitrary: fc.record({ target }), weight: 1 },
  );
  return fc.array(step, { minLength: 1, maxLength: 8 });
});

/** Ends of records, in the order of their ages: see `Age` in identity.ts. */
const ENDS: readonly RunFields[] = [
  { error: PROGRAM_ENDED, extra: { runspan_end_reason: 'interrupted' } },
  { error: 'Incomplete: given up', extra: { runspan_end_reason: 'incomplete' } },
  { extra: { runspan_end_reason: 'interrupted' } },
  {},
  { error: 'Error: no' },
  { extra: { runspan_end_reason: 'cancelled' } },
];

/** Fields of a whole record, or of a patch that ends a run or not. Each record has other values. */
const aRecord: fc.Arbitrary<Pick<RunOperation, 'kind' | 'fields'>> = fc
  .record({
    kind: fc.constantFrom('post', 'post', 'patch'),
    end: fc.constantFrom(undefined, undefined, ...ENDS),
    number: fc.nat(),
    has: fc.record({ inputs: fc.boolean(), outputs: fc.boolean(), tags: fc.boolean() }),
  })
  .map(({ kind, end, number, has }) => {
    const { extra, ...ended } = end ?? {};
    const fields = {
      ...(kind === 'post' && { name: `run ${number}`, run_type: 'chain', start_time: timeAfter(number % 3) }),
      ...(has.inputs && { inputs: { number } }),
      ...(has.outputs && { outputs: { number } }),
      ...(has.tags && { tags: [`${number}`] }),
      ...(end && { ...ended, end_time: timeAfter(3 + (number % 100)) }),
      extra: { ...extra, metadata: { number, [`key ${number % 5}`]: number } },
    };
    return { kind, fields } as const;
  });

/** The records of a run, and the same records in another order, in which those of the same age keep their order. */
export const someRecords = fc.array(fc.tuple(aRecord, fc.nat()), { minLength: 2, maxLength: 5 }).map((drawn) => {
  const records = drawn.map(([record]) => record);
  const byAge = grouped(records, ({ kind, fields }) => ageOf(kind, fields));
  const order = drawn.toSorted(([, a], [, b]) => a - b).map(([{ kind, fields }]) => ageOf(kind, fields));
  return [records, order.map((age) => byAge.get(age)?.shift()).filter((one) => one !== undefined)] as const;
});

/** The OpenTelemetry trace ids of generated spans, as UUIDs. */
export const OTEL_IDS: readonly string[] = [id(101), id(102)];

/**
 * Steps with runs and spans whose parents may be missing, late or below them. A run may have a `trace_id`, an OpenTelemetry
 * trace id, both or neither, also in its later records.
 */
export const identitySteps: fc.Arbitrary<Step[]> = fc
  .array(fc.record({ otel: fc.constantFrom(undefined, 101, 102), parent: fc.option(fc.nat(7), { nil: undefined }) }), {
    minLength: 8,
    maxLength: 8,
  })
  .chain((shapes) => {
    const traceId = fc.constantFrom(undefined, undefined, ...IDS.slice(0, 4));
    const anOperation = fc
      .record({ at: fc.nat(7), record: aRecord, traceId, isSpan: fc.boolean(), hasParent: fc.boolean() })
      .map(({ at, record: { kind, fields }, traceId: trace_id, isSpan, hasParent }): RunOperation => {
        const { otel, parent } = shapes[at] ?? {};
        const above = hasParent && parent !== at ? parent : undefined;
        const ids = otel !== undefined && span(at, above, otel).fields.extra?.metadata;
        const parentId = above !== undefined && otel === undefined && { parent_run_id: IDS[above] ?? '' };
        const extra = { metadata: { ...fields.extra?.metadata, ...(isSpan && ids) } };
        const names = { ...(trace_id && { trace_id }), ...parentId };
        return { kind, id: IDS[at] ?? '', fields: { ...fields, ...names, extra }, attachments: [] };
      });
    const target = fc.record({ kind: fc.constant('trace' as const), id: fc.constantFrom(...IDS, ...OTEL_IDS) });
    const step: fc.Arbitrary<Step> = fc.oneof(
      { arbitrary: fc.record({ operations: fc.array(anOperation, { minLength: 1, maxLength: 5 }) }), weight: 6 },
      { arbitrary: fc.record({ target }), weight: 1 },
    );
    return fc.array(step, { minLength: 1, maxLength: 8 });
  });

const CONDITIONS = `name:apple name:*p* name:Ä* name:*n name:*?* name:*%* type:llm,chain status:error
  status:success,pending status:*e* project:shop project:desk project:*a* user:ada user:* thread:ada,cancelled model:*d*
  model:ada tag:apple tag:*ppl* tag:"東京",a_b error:NO error:* is:root is:internal
  meta.user_id meta.user_id:ada meta.user_id:7 meta.thread_id:null meta.end_reason:*l* meta.thread_id:cancelled,7
  feedback.liked feedback.liked>0 feedback.comment:true feedback.liked:1 note:apple note:*b* note:*
  latency>10s latency:..1m tokens>1 input_tokens:0..7 output_tokens>0 cost>=1.5 cached<50% cached:0.5..`;
const aCondition = fc.constantFrom(
  ...CONDITIONS.split(/\s+/),
  ...TEXTS.flatMap((text) => [condition('name', text), condition('tag', text)]),
  ...IDS.slice(0, 2).flatMap((of) => [`run:${of}`, `trace:${of}`]),
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
const aWord = fc.constantFrom(
  ...['apple', 'apfel', 'app', '"apple pie"', '東', 'a_b', 'x'.repeat(64), `"${'x'.repeat(70)} y"`, 'nul', 'quoted'],
  ...SPECIAL_TEXTS.map(searchWords),
);
const aRange = fc
  .uniqueArray(aTime, { minLength: 2, maxLength: 2 })
  .map((times) => times.sort())
  .map(([from, before]) => `since:${from} before:${before}`);

/** Texts of filters. The last ones search for words, and limit times. */
export const someFilters: fc.Arbitrary<string[]> = fc.tuple(aTree, aTree, aTree, aTree, aWord, aRange);

/**
 * Returns steps that delete no runs. A store in ClickHouse may return the projects of deleted runs, and counts only the
 * runs that lists show. It ignores a new run whose OpenTelemetry trace was deleted, also if the run has a `trace_id`.
 */
export function withoutDeletions(someSteps: fc.Arbitrary<Step[]>): fc.Arbitrary<Step[]> {
  return someSteps.map((steps) => steps.filter((step) => !('target' in step)));
}
