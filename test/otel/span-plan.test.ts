// The run of a span from a plan must be the run that `spanToRun` describes, text for text.
import { expect, test } from 'vitest';
import { defaultLimits } from '#src/config/limits.ts';
import { redact } from '#src/index.ts';
import type { Attributes } from '#src/otel/conventions/values.ts';
import { vocabularies } from '#src/otel/mapping/row-index.ts';
import { SpanPlans } from '#src/otel/mapping/span-plan.ts';
import { mappingWith, spanToRun } from '#src/otel/mapping/span-to-run.ts';
import type { SpanLike } from '#src/otel.ts';
import { put } from '#src/payload/fields.ts';
import { shownName } from '#src/payload/serialize.ts';
import { payloadRules } from '#src/payload/truncate.ts';
import { EncodedRun, extraJson, mainJson, mainText, runtimeJson } from '#src/run/encoded-run.ts';
import { randomFrom } from '../faults/random.ts';
import { notes } from '../package/attribute-notes.ts';
import { bareSpan } from '../support/bare-span.ts';
import { cases, seed } from '../support/campaign.ts';
import { flat, SHOW_ALL } from './mapped.ts';

const ids = { traceId: '5b8efff798038103d269b633813fc60c', spanId: 'eee19b7ec3c1b174' };
const capturing = (redaction = redact()) => ({ ...SHOW_ALL, payload: payloadRules(defaultLimits, redaction) });
const USUAL = capturing();
const AROUND: Parameters<SpanPlans['fieldsOf']>[2] = { startUs: 1_000_000, parentIds: undefined };

const rows = { metadata: { 'own.more': '*', 'own.labels.*': '*', 'own.counts': 'usage_metadata' }, tags: ['own.tags'] };
const own = {
  ...rows,
  attribute: 'own.kind',
  runTypes: { model: 'llm' as const },
  usage: { 'own.in': 'input_tokens' },
};
const mapping = mappingWith([own], ['service.*', 'k8s.*', 'thread_id', 'otel']);

const spanWith = (attributes: Attributes, fields: object = {}) =>
  ({ ...bareSpan('work', ids), ...fields, attributes }) as unknown as SpanLike;

function runWith(name: string, fields: object): EncodedRun {
  const base = {
    id: '0192f3c4-0000-7000-8000-000000000000',
    startUs: AROUND.startUs,
    project: 'p',
    metadata: undefined,
  };
  return Object.assign(new EncodedRun({ ...base, parent: undefined, runType: '', tags: undefined, name }), fields);
}

/** Returns the run of a span as texts. Undefined if there is no plan for the span. */
function planned(plans: SpanPlans, span: SpanLike, capture = USUAL, around = AROUND): object | undefined {
  const fields = plans.fieldsOf(span, capture, around);
  if (fields === undefined) return undefined;
  const { name, runType, inputs, outputs, metadata, origin, endTime, hasUsage, model, responseId } = fields;
  const extra = extraJson(`${metadata}"otel":${origin}`, runtimeJson());
  const main = mainText(runWith(name, { runType }), { endTime }, extra);
  return { main, inputs: inputs?.json, outputs: outputs?.json, hasUsage, model, responseId };
}

/** Returns the run that `spanToRun` describes, with what a plan never has. */
function described(span: SpanLike, capture = USUAL, around = AROUND): object {
  const { name, inputs, outputs, hasUsage, model, responseId, events, runType, tags, metadata, error, endTime } =
    spanToRun(span, capture, { ...around, mapping });
  const run = runWith(shownName(name, capture.payload), { runType, tags, metadata, error, endTime });
  const attachments = inputs?.attachments ?? outputs?.attachments;
  const payloads = { inputs: inputs?.json, outputs: outputs?.json, attachments, events };
  return { main: mainJson(run, true), ...payloads, hasUsage, model, responseId };
}

const SECRET = 'k9Xw27abQ4k9Xw27';
const QUESTION = '[{"role":"user","content":"Why?"}]';
const PARTS = '[{"role":"user","parts":[{"type":"text","content":"Why?"}]}]';
const IMAGE = `data:image/png;base64,${'A'.repeat(1_600)}`;
const VALUES: readonly unknown[] = [
  ...[0, -0, 7, 1_200, 1.5, -1, 1e9, 1e21, Number.NaN, Number.POSITIVE_INFINITY, true, false, null, undefined, 7n],
  ...[[], ['a', 'b'], [1, 2], [null], { a: 1 }, { password: SECRET }, new Uint8Array(2), new Date(0), () => 7, IMAGE],
  ...['', 'short', 'Hello, world.', 'é漢字😀', '\ud800 lone', 'control \u0001\n', 'text/plain', 'otel', 'model', '7'],
  ...[`https://e.com/?api_key=${SECRET}`, `Authorization: Bearer ${SECRET}`, `{"password":"${SECRET}"}`, '["a"]'],
  ...['{}', ' { } ', '[]', '{"a', '{"a":1}', '{"a":"\u0001"}', '{"usage_metadata":1}', '{"a":1e400}', '{"a":1,"a":2}'],
  ...['{"id":12345678901234567890}', '{"otel":1,"thread_id":"t","__proto__":{"b":1}}', '{"model":"m","id":"r1"}'],
  ...[QUESTION, PARTS, `{"a":"${IMAGE}"}`, PARTS.replace('"type":"text"', `"type":"blob","modality":"image"`)],
];
const OTHERS = [
  ...'session.id user.id service.name otel __proto__ usage_metadata thread_id end_reason note metadata'.split(' '),
  ...'own.kind own.more own.labels.otel own.in own.counts own.tags dropped_attributes langsmith.metadata.hidden_attributes output.value url.full'.split(
    ' ',
  ),
  ...[`https://e.com/?api_key=${SECRET}`, 'x'.repeat(200)],
];
const NAMES = vocabularies.map(({ inputs, outputs, usage, parameters, metadata, tags, times, ignored = [] }) => {
  const read = [inputs, outputs, usage, parameters, metadata, tags, times].flatMap((group = []) => group);
  return [...read.flatMap(([name]) => [name, `${name}.b`, `${name}.0.a`]), ...ignored];
});
const SECRETS = { thread_id: 'r', 'k8s.a': `Authorization: ${SECRET}` };
const RESOURCES = [{}, SECRETS, { otel: 'r' }, { 'service.name': 'shop' }].map((attributes) => ({ attributes }));
const CAPTURES = [
  ...[USUAL, USUAL, USUAL, SHOW_ALL, { ...USUAL, hideInputs: true }, capturing(redact({ keys: ['usage_metadata'] }))],
  ...[capturing(redact({ paths: ['metadata.note'] })), capturing(redact({ patterns: [/Hello/] }))],
];
const SPANS = [
  ...[{}, {}, {}, { status: { code: 1 } }, { kind: 2 }, { name: `https://e.com/?key=${SECRET}` }, { endTime: [0, 7] }],
  ...[{ status: { code: 2, message: 'failed' } }, { events: [{ name: 'e', time: [1, 0] }] }, { droppedLinksCount: 2 }],
  ...[{ links: [{ attributes: { a: 1 } }] }, { spanContext: () => ({ traceId: 'a"', spanId: '\n' }) }],
];

test('a plan gives the run that the full mapping gives, and never the values of another span', () => {
  const random = randomFrom(seed());
  const oneOf = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const plans = new SpanPlans(mapping);
  let answers = 0;
  for (let at = 0; at < cases(8_000); at++) {
    const table = Math.floor(random() * NAMES.length);
    const read = NAMES[table] as string[];
    const kind = oneOf(notes[vocabularies[table]?.name ?? '']?.kinds ?? [{}]);
    const chosen = Array.from({ length: random() * 9 }, () => oneOf(oneOf([read, read, OTHERS])));
    const names = [...new Set([...Object.keys(kind), ...chosen])].sort(() => random() - 0.5);
    for (let pass = 0; pass < 4; pass++) {
      const attributes = {};
      for (const name of names) put(attributes, name, (random() < 0.9 && kind[name]) || oneOf(VALUES));
      const span = spanWith(attributes, { resource: oneOf(RESOURCES), ...oneOf(SPANS) });
      const parentIds = oneOf([undefined, { ...ids, traceFlags: 1, isRemote: true }]);
      const given = [oneOf(CAPTURES), { ...AROUND, parentIds, hasUsageBelow: random() < 0.3 }] as const;
      const run = planned(plans, span, ...given);
      if (run === undefined) continue;
      answers++;
      expect(run).toEqual(described(span, ...given));
    }
  }
  expect(answers).toBeGreaterThan(cases(8_000) / 5);
});

const json = (side: string, value: string) => ({ [`${side}.value`]: value, [`${side}.mime_type`]: 'application/json' });
const values = { ...json('input', '{"question":"Why?"}'), ...json('output', '{"answer":"So."}') };
const step = (kind: string) => ({ 'openinference.span.kind': kind, ...values });
const model = { 'llm.model_name': 'm', 'llm.token_count.prompt': 7, 'llm.token_count.completion': 2 };
const chat = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'm', 'gen_ai.input.messages': PARTS };
const operation = { 'ai.operationId': 'ai.generateText.doGenerate', 'ai.response.finishReason': 'stop' };
const messages = flat('llm.input_messages', [{ message: { role: 'user', content: 'Why?' } }]);

test.each<[string, boolean, Attributes, object?, object?]>([
  ['an agent', true, step('CHAIN')],
  ['a model call of OpenInference', true, { ...step('LLM'), ...model }],
  ['flattened messages', true, { ...step('LLM'), ...messages, ...model }],
  ['GenAI', true, { ...chat, 'gen_ai.output.messages': PARTS, 'gen_ai.usage.input_tokens': 7 }],
  ['a tool', true, { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 't', 'gen_ai.tool.call.id': 'c' }],
  ['the AI SDK', true, { ...operation, 'ai.prompt.messages': QUESTION, 'ai.model.id': 'm', 'ai.response.text': 'So.' }],
  ['LangSmith', true, { 'langsmith.span.kind': 'llm', 'gen_ai.prompt': QUESTION, 'gen_ai.completion': '{"a":"So."}' }],
  ['Langfuse', true, { 'langfuse.observation.type': 'generation', 'langfuse.observation.input': QUESTION }],
  ['Traceloop', true, { 'traceloop.span.kind': 'task', 'traceloop.entity.name': 'n', 'traceloop.entity.input': '{}' }],
  ['HTTP', true, { 'http.request.method': 'GET', 'url.full': 'https://e.com/', 'http.response.status_code': 200 }],
  ['own vocabularies', true, { 'own.kind': 'model', 'own.counts': '{"a":1}', 'own.in': 7, ...values }],
  ['a pending resource', false, model, { resource: { attributes: {}, asyncAttributesPending: true } }],
  ['a resource with the key of an attribute', false, { thread_id: 't' }, { resource: RESOURCES[1] }],
  ['the time of the first token', false, { ...operation, 'ai.response.msToFirstChunk': 5 }],
  ['too much metadata', false, { 'own.more': JSON.stringify({ ...Array(1_000).fill(0) }), note: 1 }],
  ['a name that is too long', false, { ['x'.repeat(200)]: 1 }],
])('plans are made for usual spans and not for rare ones: %s', (_, isUsual, attributes, fields = {}, around = {}) => {
  const plans = new SpanPlans(mapping);
  for (let times = 0; times < 2; times++) plans.fieldsOf(spanWith(attributes), USUAL, AROUND);
  const span = spanWith(attributes, fields);
  const run = planned(plans, span, USUAL, { ...AROUND, ...around });
  expect(run).toEqual(isUsual ? described(span) : undefined);
});

test('plans are forgotten when there are too many, and made again', () => {
  const plans = new SpanPlans(mapping);
  const usual = spanWith(step('CHAIN'));
  const isKnown = () => planned(plans, usual) !== undefined;
  expect([isKnown(), isKnown()]).toEqual([false, true]);
  for (let at = 0; at < 5_000; at++) planned(plans, spanWith({ [`name ${at}`]: at }));
  expect([isKnown(), isKnown()]).toEqual([false, true]);
});

test('there is no plan for a span that ends while another span is read', () => {
  const plans = new SpanPlans(mapping);
  const inner = spanWith({ note: {}, other: 1 });
  const get = () => plans.fieldsOf(inner, USUAL, AROUND) ?? 'outer';
  for (let times = 0; times < 2; times++) plans.fieldsOf(inner, USUAL, AROUND);
  const note = Object.defineProperty({}, 'a', { enumerable: true, get });
  const { metadata } = plans.fieldsOf(spanWith({ note, other: 2 }), USUAL, AROUND) ?? {};
  expect(JSON.parse(`{${metadata}"otel":0}`)).toMatchObject({ note: { a: 'outer' }, other: 2 });
});
