import { describe, expect, test } from 'vitest';
import { mapped } from './mapped.ts';

// https://docs.langchain.com/langsmith/trace-with-opentelemetry#supported-opentelemetry-attribute-and-event-mapping

test.each([
  ['llm', 'llm'],
  ['LLM', 'llm'],
  ['retriever', 'retriever'],
  ['parser', 'parser'],
])('the kind %s makes a run of type %s, whatever the operation', (kind, runType) => {
  expect(mapped({ 'langsmith.span.kind': kind, 'gen_ai.operation.name': 'execute_tool' }).runType).toBe(runType);
});

test('a run has the name, the tags and the project from the attributes', () => {
  const attributes = {
    'langsmith.trace.name': 'answer',
    'langsmith.trace.session_name': 'shop',
    'langsmith.span.tags': 'a, b,c',
    'gen_ai.tool.name': 'other',
    'gen_ai.operation.name': 'execute_tool',
  };
  expect(mapped(attributes)).toMatchObject({ name: 'answer', project: 'shop' });
  expect(mapped(attributes)).toMatchObject({ name: 'answer', tags: ['a', 'b', 'c'] });
  expect(mapped({ 'langsmith.span.tags': ['a', 'b, c'] }).tags).toEqual(['a', 'b, c']);
  expect(mapped({ 'langsmith.span.tags': '' })).toMatchObject({ tags: undefined, metadata: {} });
  expect(mapped({ 'langsmith.span.tags': 4 })).toMatchObject({ metadata: { 'langsmith.span.tags': 4 } });
});

test('`runspan.project` takes precedence over the LangSmith project', () => {
  const attributes = { 'langsmith.trace.session_name': 'theirs', 'runspan.project': 'ours' };
  expect(mapped(attributes).project).toBe('ours');
});

describe('metadata', () => {
  test('contains the attributes with its prefix, parsed if they are JSON', () => {
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

  test('may be one attribute, over which single attributes take precedence', () => {
    const attributes = { 'langsmith.metadata': '{"a":1,"b":2}', 'langsmith.metadata.b': 'own' };
    expect(mapped(attributes).metadata).toEqual({ a: 1, b: 'own' });
  });

  test.each([
    [{ session_id: 's1' }, 's1'],
    [{ conversation_id: 'c1' }, 'c1'],
    [{ session_id: 's1', thread_id: 't1' }, 't1'],
    [{ thread_id: 5 }, 5],
  ])('names the thread by %j', (metadata, thread) => {
    expect(mapped({ 'langsmith.metadata': metadata }).metadata).toEqual({ ...metadata, thread_id: thread });
  });

  test('contains the ids of another tracer, which do not replace those of the run', () => {
    const ids = {
      'langsmith.span.id': '018f0000-0000-7000-8000-000000000001',
      'langsmith.trace.id': '018f0000-0000-7000-8000-000000000002',
      'langsmith.span.parent_id': '018f0000-0000-7000-8000-000000000003',
      'langsmith.span.dotted_order': '20261120T072240123456Z018f0000-0000-7000-8000-000000000002',
      'langsmith.trace.session_id': '018f0000-0000-7000-8000-000000000004',
      'langsmith.reference_example_id': '018f0000-0000-7000-8000-000000000005',
    };
    expect(mapped(ids).metadata).toEqual(ids);
  });

  test('contains neither headers nor internal attributes of the SDK', () => {
    const attributes = {
      'langsmith.request.headers': '{"authorization":"Bearer SECRET"}',
      'langsmith.traceable': 'true',
      'langsmith.is_root': true,
      'langsmith.traceable_parent_otel_span_id': '2222222222222222',
    };
    expect(mapped(attributes).metadata).toEqual({});
  });
});

describe('a model call', () => {
  test('has the usage of LangSmith, completed by the GenAI attributes', () => {
    const usage = { input_tokens: 5, output_tokens: 7, total_cost: 0.5 };
    const run = mapped({
      'langsmith.span.kind': 'llm',
      'langsmith.usage_metadata': JSON.stringify(usage),
      'gen_ai.usage.input_tokens': 1,
      'gen_ai.usage.input_token_details': '{"cache_read":2}',
      'gen_ai.usage.output_token_details': '{"reasoning":3}',
    });
    expect(run.outputs).toEqual({
      usage_metadata: {
        ...usage,
        total_tokens: 12,
        input_token_details: { cache_read: 2 },
        output_token_details: { reasoning: 3 },
      },
    });
  });

  test('has only valid counts of its usage', () => {
    const usage = {
      input_tokens: '5',
      output_tokens: -1,
      tier: 'batch',
      input_token_details: { cache_read: 2, audio: -2, more: { less: 1 } },
    };
    expect(mapped({ 'langsmith.span.kind': 'llm', 'langsmith.usage_metadata': JSON.stringify(usage) }).outputs).toEqual(
      {
        usage_metadata: { input_tokens: 5, total_tokens: 5, input_token_details: { cache_read: 2 } },
      },
    );
  });

  test('keeps its other fields if the usage is nested too deeply', () => {
    const usage = `{"input_tokens":5,"input_token_details":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}`;
    const run = mapped({
      'langsmith.span.kind': 'llm',
      'langsmith.usage_metadata': usage,
      'gen_ai.completion': '{"outputs":"cold"}',
    });
    expect(run.outputs).toMatchObject({ outputs: 'cold', usage_metadata: { input_tokens: 5 } });
  });

  test('has its parameters', () => {
    const { metadata } = mapped({
      'langsmith.request.streaming': true,
      'gen_ai.request.extra_query': '{"a":1}',
      'gen_ai.request.extra_body': '{"b":2}',
    });
    expect(metadata).toEqual({
      ls_invocation_params: { stream: true, extra_query: { a: 1 }, extra_body: { b: 2 } },
    });
  });

  test('has prompt and completion as payloads', () => {
    const run = mapped({
      'langsmith.span.kind': 'tool',
      'gen_ai.prompt': '{"city":"Oslo"}',
      'gen_ai.completion': '{"outputs":"cold"}',
    });
    expect(run).toMatchObject({ inputs: { city: 'Oslo' }, outputs: { outputs: 'cold' } });
  });
});

test('the summed usage of a chain is not its own usage', () => {
  const usage = '{"input_tokens":5,"output_tokens":7}';
  const run = mapped({ 'langsmith.span.kind': 'chain', 'langsmith.usage_metadata': usage });
  expect(run.outputs).toBeUndefined();
  expect(run.metadata).toEqual({ 'langsmith.usage_metadata': usage });
});
