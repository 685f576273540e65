// https://docs.langchain.com/langsmith/trace-with-opentelemetry#supported-opentelemetry-attribute-and-event-mapping
import { describe, expect, test } from 'vitest';
import type { Attributes } from '#src/otel/conventions/values.ts';
import { expectRun, type Mapped, mapped } from './mapped.ts';

const ofKind = (kind: string, attributes: Attributes) => mapped({ 'langsmith.span.kind': kind, ...attributes });

test.each([
  ['llm', 'llm'],
  ['LLM', 'llm'],
  ['retriever', 'retriever'],
  ['parser', 'parser'],
])('the kind %s makes a run of type %s, whatever the operation', (kind, runType) => {
  expectRun(ofKind(kind, { 'gen_ai.operation.name': 'execute_tool' }), { runType, metadata: {} });
});

const named = {
  'langsmith.trace.name': 'answer',
  'gen_ai.operation.name': 'execute_tool',
  'gen_ai.tool.name': 'other',
};
const theirProject = { 'langsmith.trace.session_name': 'theirs' };
const idsOfAnotherTracer = {
  'langsmith.span.id': '018f0000-0000-7000-8000-000000000001',
  'langsmith.trace.id': '018f0000-0000-7000-8000-000000000002',
  'langsmith.span.parent_id': '018f0000-0000-7000-8000-000000000003',
  'langsmith.span.dotted_order': '20261120T072240123456Z018f0000-0000-7000-8000-000000000002',
  'langsmith.trace.session_id': '018f0000-0000-7000-8000-000000000004',
  'langsmith.reference_example_id': '018f0000-0000-7000-8000-000000000005',
};
const internal = {
  'langsmith.request.headers': '{"authorization":"Bearer SECRET"}',
  'langsmith.traceable': 'true',
  'langsmith.is_root': true,
  'langsmith.traceable_parent_otel_span_id': '2222222222222222',
};
const parameters = {
  'langsmith.request.streaming': true,
  'gen_ai.request.extra_query': '{"a":1}',
  'gen_ai.request.extra_body': '{"b":2}',
};
const parametersOfRun = { stream: true, extra_query: { a: 1 }, extra_body: { b: 2 } };

test.each<[string, Attributes, Partial<Mapped>]>([
  ['its name', named, { name: 'answer' }],
  ['its project', theirProject, { project: 'theirs' }],
  ['the project of runspan first', { ...theirProject, 'runspan.project': 'ours' }, { project: 'ours' }],
  ['tags from text', { 'langsmith.span.tags': 'a, b,c' }, { tags: ['a', 'b', 'c'] }],
  ['tags from a list', { 'langsmith.span.tags': ['a', 'b, c'] }, { tags: ['a', 'b, c'] }],
  ['no tags from empty text', { 'langsmith.span.tags': '' }, { tags: undefined, metadata: {} }],
  ['invalid tags in its metadata', { 'langsmith.span.tags': 4 }, { metadata: { 'langsmith.span.tags': 4 } }],
  [
    'metadata from one attribute, over which single attributes take precedence',
    { 'langsmith.metadata': '{"a":1,"b":2}', 'langsmith.metadata.b': 'own' },
    { metadata: { a: 1, b: 'own' } },
  ],
  ['the ids of another tracer in its metadata', idsOfAnotherTracer, { metadata: idsOfAnotherTracer }],
  ['neither headers nor internal attributes of the SDK', internal, { metadata: {} }],
  ['its parameters', parameters, { metadata: { ls_invocation_params: parametersOfRun } }],
])('a run has %s', (_, attributes, expected) => {
  expectRun(mapped(attributes), expected);
});

test('metadata is parsed if it is JSON, in the order of the attributes', () => {
  const { metadata } = mapped({
    'langsmith.metadata.user_id': 'u1',
    'langsmith.metadata.count': '3',
    'langsmith.metadata.nested.key': '{"a":[1]}',
    'langsmith.metadata.quoted': '"as it is"',
    'langsmith.metadata.broken': '{"a"',
    'langsmith.metadata.__proto__': 'p',
  });
  expect(Object.entries(metadata)).toEqual([
    ['user_id', 'u1'],
    ['count', '3'],
    ['nested.key', { a: [1] }],
    ['quoted', '"as it is"'],
    ['broken', '{"a"'],
    ['__proto__', 'p'],
  ]);
});

test.each([
  [{ session_id: 's1' }, 's1'],
  [{ conversation_id: 'c1' }, 'c1'],
  [{ threadId: 't1' }, 't1'],
  [{ session_id: 's1', thread_id: 't1' }, 't1'],
  [{ thread_id: 5 }, 5],
])('metadata names the thread by %j', (metadata, thread) => {
  expect(mapped({ 'langsmith.metadata': metadata }).metadata).toEqual({ ...metadata, thread_id: thread });
});

describe('the usage of a model call', () => {
  const details = {
    'gen_ai.usage.input_tokens': 1,
    'gen_ai.usage.input_token_details': '{"cache_read":2}',
    'gen_ai.usage.output_token_details': '{"reasoning":3}',
  };
  const odd = {
    input_tokens: '5',
    output_tokens: -1,
    tier: 'batch',
    input_token_details: { cache_read: 2, audio: -2, more: { less: 1 } },
  };

  test.each<[string, object, Attributes, object]>([
    [
      'is completed by the GenAI attributes',
      { input_tokens: 5, output_tokens: 7, total_cost: 0.5 },
      details,
      {
        input_tokens: 5,
        output_tokens: 7,
        total_tokens: 12,
        total_cost: 0.5,
        input_token_details: { cache_read: 2 },
        output_token_details: { reasoning: 3 },
      },
    ],
    ['has only valid counts', odd, {}, { input_tokens: 5, input_token_details: { cache_read: 2 } }],
  ])('%s', (_, usage, attributes, expected) => {
    const run = ofKind('llm', { 'langsmith.usage_metadata': JSON.stringify(usage), ...attributes });
    expect(run.outputs).toEqual({ usage_metadata: expected });
  });

  test('has its other counts if it is nested too deeply', () => {
    const usage = `{"input_tokens":5,"input_token_details":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}`;
    const run = ofKind('llm', { 'langsmith.usage_metadata': usage, 'gen_ai.completion': '{"outputs":"cold"}' });
    expect(run.outputs).toMatchObject({ outputs: 'cold', usage_metadata: { input_tokens: 5 } });
  });

  test('is not the usage of a chain, which sums it up', () => {
    const metadata = { 'langsmith.usage_metadata': '{"input_tokens":5,"output_tokens":7}' };
    expectRun(ofKind('chain', metadata), { outputs: undefined, metadata });
  });
});

test('prompt and completion are the payloads of any run', () => {
  const run = ofKind('tool', { 'gen_ai.prompt': '{"city":"Oslo"}', 'gen_ai.completion': '{"outputs":"cold"}' });
  expectRun(run, { inputs: { city: 'Oslo' }, outputs: { outputs: 'cold' } });
});
