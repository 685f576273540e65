import { expect, test } from 'vitest';
import { RunSpanProcessor, type RunSpanProcessorOptions, type SpanVocabulary } from '#src/otel.ts';
import { logLines } from '../support/log-lines.ts';
import { inSpan, notingSink, setUp } from './set-up.ts';

const acme: SpanVocabulary = {
  attribute: 'acme.kind',
  runTypes: { model: 'llm', step: 'chain', 7: 'retriever' },
  nameFrom: 'acme.title',
  inputs: { 'acme.question': 'question', 'acme.limits.*': 'limits', 'acme.*.arguments': '*' },
  outputs: { 'acme.answer': '*' },
  usage: { 'acme.tokens.in': 'input_tokens', 'acme.tokens.out': 'output_tokens', 'acme.price': 'total_cost' },
  parameters: { 'acme.model': 'model', 'acme.settings': '*' },
  metadata: {
    'acme.model': 'ls_model_name',
    'acme.chat': 'thread_id',
    'acme.customer': 'user_id',
    'acme.labels.*': '*',
    'acme.more': '*',
  },
  tags: ['acme.tags', 'acme.tag'],
};

function runOf(attributes: Record<string, unknown>, options: RunSpanProcessorOptions = { vocabularies: [acme] }) {
  const { tracer, recorder } = setUp({ processors: [new RunSpanProcessor(options)] });
  tracer.startSpan('work', { attributes: attributes as never }).end();
  const [run] = recorder.runs;
  if (run === undefined) return undefined;
  const { otel, ...metadata } = run.extra?.metadata ?? {};
  const { name, run_type, inputs, outputs, tags } = run;
  return { name, run_type, inputs, outputs, tags, metadata: metadata as Record<string, unknown> };
}

const MODEL = {
  'acme.kind': 'model',
  'acme.title': 'ask',
  'acme.question': 'Where is my order?',
  'acme.limits.seconds': 3,
  'acme.answer': '{"text":"In Oslo.","sure":true}',
  'acme.tokens.in': 20,
  'acme.tokens.out': '5',
  'acme.price': 0.25,
  'acme.model': 'small',
  'acme.settings': '{"temperature":0.5,"model":"other"}',
  'acme.chat': 't1',
  'acme.customer': 'u1',
  'acme.labels.region': 'eu',
  'acme.labels.sizes': '[1,2]',
  'acme.more': '{"plan":"gold"}',
  'acme.tags': '["a","b"]',
  'acme.tag': 'c',
  'acme.other': 1,
};

const USAGE = { input_tokens: 20, output_tokens: 5, total_tokens: 25, total_cost: 0.25 };

test('a span has the fields of its own vocabulary', () => {
  const run = runOf(MODEL);
  expect(run).toMatchObject({
    name: 'ask',
    run_type: 'llm',
    inputs: { question: 'Where is my order?', limits: { seconds: 3 } },
    outputs: { text: 'In Oslo.', sure: true, usage_metadata: USAGE },
    tags: ['a', 'b'],
  });
  expect(run?.metadata).toMatchObject({
    ls_model_name: 'small',
    ls_invocation_params: { model: 'small', temperature: 0.5 },
    thread_id: 't1',
    user_id: 'u1',
    region: 'eu',
    sizes: [1, 2],
    plan: 'gold',
    usage_metadata: USAGE,
    'acme.other': 1,
  });
  expect(run?.metadata).not.toHaveProperty(['acme.question']);
});

test('a star between dots stands for one word', () => {
  const { inputs, metadata } = runOf({ 'acme.kind': 'step', 'acme.find.arguments': '{"city":"Oslo"}' }) ?? {};
  expect(inputs).toEqual({ city: 'Oslo' });
  expect(metadata).not.toHaveProperty(['acme.find.arguments']);
  expect(runOf({ 'acme.kind': 'step', 'acme.find.two.arguments': '{}' })?.inputs).toEqual({});
});

test('a span of the type chain has no token counts', () => {
  const run = runOf({ 'acme.kind': 'step', 'acme.tokens.in': 20 });
  expect(run?.metadata).toMatchObject({ 'acme.tokens.in': 20 });
  expect(run?.outputs).toEqual({});
});

test('own vocabularies take precedence in their order, and others add what is missing', () => {
  const other: SpanVocabulary = {
    attribute: 'other.kind',
    runTypes: { call: 'tool' },
    inputs: { 'other.question': 'question', 'gen_ai.input.messages': '*' },
    outputs: { 'other.answer': 'answer' },
    metadata: { 'other.user': 'user_id', 'acme.chat': 'thread_id' },
  };
  const attributes = {
    ...MODEL,
    'other.kind': 'call',
    'other.question': 'none',
    'other.answer': 'none',
    'other.user': 'none',
    'gen_ai.operation.name': 'embeddings',
    'gen_ai.input.messages': '[{"role":"user","parts":[]}]',
    'gen_ai.request.model': 'none',
    'gen_ai.conversation.id': 'none',
    'gen_ai.request.top_p': 0.25,
    'gen_ai.usage.cache_read.input_tokens': 3,
  };
  const run = runOf(attributes, { vocabularies: [acme, other] });
  expect(run).toMatchObject({
    run_type: 'llm',
    inputs: { question: 'Where is my order?', limits: { seconds: 3 } },
    outputs: { text: 'In Oslo.', usage_metadata: { ...USAGE, input_token_details: { cache_read: 3 } } },
    metadata: { thread_id: 't1', user_id: 'u1', ls_invocation_params: { model: 'small', top_p: 0.25 } },
  });
  expect(runOf(attributes, { vocabularies: [other, acme] })).toMatchObject({
    run_type: 'tool',
    inputs: { question: 'none' },
    outputs: { answer: 'none' },
    metadata: { user_id: 'none' },
  });
  expect(runOf(attributes, { vocabularies: [] })).toMatchObject({
    run_type: 'embedding',
    inputs: { messages: [{ role: 'user' }] },
  });
});

test('the default filter selects the spans whose run type an own vocabulary selects', () => {
  logLines();
  expect(runOf({ 'acme.kind': 'step' })?.run_type).toBe('chain');
  expect(runOf({ 'acme.kind': 7 })?.run_type).toBe('retriever');
  expect(runOf({ 'acme.kind': 'new' })).toBeUndefined();
  expect(runOf({ 'acme.question': 'a' })).toBeUndefined();
  expect(runOf({ 'acme.kind': 'step' }, {})).toBeUndefined();
});

test('hidden inputs are in no field', async () => {
  const { sink, runs } = notingSink({ hideInputs: true });
  const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: sink, vocabularies: [acme] })] });
  await inSpan(tracer, 'work', (span) => {
    span.setAttributes({ 'acme.kind': 'model', 'acme.question': 'SECRET', 'acme.find.arguments': 'SECRET' });
    span.addEvent('asked', { 'acme.question': 'SECRET' });
  });
  expect(runs.length).toBeGreaterThan(0);
  const text = JSON.stringify(runs, (_, value) => (value instanceof Map ? [...value] : value));
  expect(text).not.toContain('SECRET');
  expect(text).toContain('acme.kind');
});

test('a program hears about mistakes once, and the rest of the vocabulary applies', () => {
  const lines = logLines();
  const mistaken = [
    { ...acme, inputs: { 'acme.question': 7 }, output: {}, tags: 'acme.tags' },
    'acme',
  ] as unknown as SpanVocabulary[];
  const place = 'warn: RunSpanProcessor: vocabularies';
  expect(runOf(MODEL, { vocabularies: mistaken })).toMatchObject({
    name: 'ask',
    run_type: 'llm',
    inputs: {},
    tags: undefined,
  });
  expect(lines.toSorted()).toEqual([
    `${place}[0]: expected \`inputs\` to be an object that maps attributes to keys, for example { 'acme.question': 'question' }; the option is ignored.`,
    `${place}[0]: expected \`tags\` to be a list of attributes; the option is ignored.`,
    `${place}[0]: unknown option \`output\` is ignored; use \`outputs\`.`,
    `${place}[1]: expected the options to be an object, got string; the options are ignored.`,
  ]);
});

test.each<[keyof SpanVocabulary, string, string]>([
  ['usage', 'acme.tokens', 'tokens'],
  ['inputs', 'acme.*.a.*', 'x'],
  ['metadata', '*', 'x'],
])('a key or a name that has no effect is a mistake: %s', (field, name, key) => {
  const lines = logLines();
  runOf(MODEL, { vocabularies: [{ [field]: { [name]: key } }] });
  expect(lines).toEqual([expect.stringContaining(`vocabularies[0]: expected \`${field}\` to be an object that maps`)]);
});

test('a list has at most 10 vocabularies', () => {
  const lines = logLines();
  const list = (length: number) => Array.from({ length }, (_, at) => (at === length - 1 ? acme : {}));
  expect(runOf(MODEL, { vocabularies: list(10) })?.name).toBe('ask');
  expect(lines).toEqual([]);
  expect(runOf(MODEL, { vocabularies: list(11) })).toBeUndefined();
  expect(lines).toEqual([
    'warn: RunSpanProcessor: expected `vocabularies` to be a list of at most 10 vocabularies; the option is ignored.',
  ]);
});
