import { describe, expect, test } from 'vitest';
import { mapSpan, mapStart } from '../../src/otel/mapping.ts';
import type { Attributes } from '../../src/otel/values.ts';

const SHOW_ALL = { hideInputs: false, hideOutputs: false };

/** What a span of this kind with these attributes comes to, as JSON has it. */
function mapped(kind: string, attributes: Attributes) {
  const { inputs, outputs, metadata, ...rest } = mapSpan({ 'openinference.span.kind': kind, ...attributes }, SHOW_ALL);
  const { 'openinference.span.kind': _, ...others } = Object.fromEntries(metadata);
  return JSON.parse(
    JSON.stringify({ ...rest, inputs: inputs?.payload?.fields, outputs: outputs?.fields, metadata: others }),
  );
}

test.each([
  ['LLM', 'llm'],
  ['llm', 'llm'],
  ['CHAIN', 'chain'],
  ['AGENT', 'chain'],
  ['TOOL', 'tool'],
  ['RETRIEVER', 'retriever'],
  ['RERANKER', 'retriever'],
  ['EMBEDDING', 'embedding'],
  ['GUARDRAIL', 'chain'],
  ['EVALUATOR', 'chain'],
  ['PROMPT', 'prompt'],
  ['UNKNOWN', 'chain'],
  ['something new', 'chain'],
])('the kind %s makes a run of type %s', (kind, runType) => {
  expect(mapped(kind, {}).runType).toBe(runType);
});

test('a call of a chat model has its messages, tokens, model and parameters', () => {
  // As @arizeai/openinference-instrumentation-openai sets them, in the order in which it does.
  const run = mapped('LLM', {
    'llm.model_name': 'gpt-4o-2024-08-06',
    'input.value': '{"model":"gpt-4o","messages":[]}',
    'input.mime_type': 'application/json',
    'llm.invocation_parameters': '{"model":"gpt-4o","temperature":0.5,"max_tokens":64,"stop":["x"]}',
    'llm.system': 'openai',
    'llm.provider': 'azure',
    'llm.input_messages.0.message.role': 'system',
    'llm.input_messages.0.message.content': 'Be brief.',
    'llm.input_messages.1.message.role': 'user',
    'llm.input_messages.1.message.contents.0.message_content.type': 'text',
    'llm.input_messages.1.message.contents.0.message_content.text': 'What is this?',
    'llm.input_messages.1.message.contents.1.message_content.type': 'image',
    'llm.input_messages.1.message.contents.1.message_content.image.image.url': 'https://a.example/b.png',
    'llm.input_messages.2.message.role': 'tool',
    'llm.input_messages.2.message.tool_call_id': 'call_0',
    'llm.input_messages.2.message.content': '12 C',
    'llm.tools.0.tool.json_schema': '{"type":"function","function":{"name":"weather"}}',
    'output.value': '{"id":"x"}',
    'output.mime_type': 'application/json',
    'llm.output_messages.0.message.role': 'assistant',
    'llm.output_messages.0.message.tool_calls.0.tool_call.id': 'call_1',
    'llm.output_messages.0.message.tool_calls.0.tool_call.function.name': 'weather',
    'llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments': '{"city":"Oslo"}',
    'llm.token_count.prompt': 20,
    'llm.token_count.completion': 7,
    'llm.token_count.total': 27,
    'llm.token_count.prompt_details.cache_read': 16,
    'llm.token_count.prompt_details.cache_write': 2,
    'llm.token_count.completion_details.reasoning': 5,
    'llm.cost.total': 0.01,
    'llm.finish_reason': 'tool_calls',
  });
  const usage = {
    input_tokens: 20,
    output_tokens: 7,
    total_tokens: 27,
    input_token_details: { cache_read: 16, cache_creation: 2 },
    output_token_details: { reasoning: 5 },
    total_cost: 0.01,
  };
  expect(run).toEqual({
    runType: 'llm',
    inputs: {
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
          ],
        },
        { role: 'tool', tool_call_id: 'call_0', content: '12 C' },
      ],
    },
    outputs: {
      messages: [
        {
          role: 'assistant',
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }],
        },
      ],
      usage_metadata: usage,
    },
    metadata: {
      ls_model_name: 'gpt-4o',
      'llm.model_name': 'gpt-4o-2024-08-06',
      ls_provider: 'azure',
      'llm.system': 'openai',
      ls_invocation_params: {
        model: 'gpt-4o',
        temperature: 0.5,
        max_tokens: 64,
        stop: ['x'],
        tools: [{ type: 'function', function: { name: 'weather' } }],
      },
      ls_temperature: 0.5,
      ls_max_tokens: 64,
      ls_stop: ['x'],
      finish_reasons: ['tool_calls'],
      usage_metadata: usage,
    },
  });
});

describe('payloads', () => {
  test.each<[string, Attributes, object]>([
    ['an object of JSON', { 'input.value': '{"q":1}', 'input.mime_type': 'application/json' }, { q: 1 }],
    ['a number of JSON', { 'input.value': '1', 'input.mime_type': 'application/json' }, { input: 1 }],
    ['broken JSON', { 'input.value': '{"q', 'input.mime_type': 'application/json' }, { input: '{"q' }],
    ['text that looks like JSON', { 'input.value': '{"q":1}', 'input.mime_type': 'text/plain' }, { input: '{"q":1}' }],
    ['JSON without a type', { 'input.value': ' {"q":1}' }, { q: 1 }],
    ['text without a type', { 'input.value': '12 monkeys' }, { input: '12 monkeys' }],
    [
      'a list of messages',
      { 'input.value': '[{"role":"user","content":"a"}]' },
      { messages: [{ role: 'user', content: 'a' }] },
    ],
    ['a list', { 'input.value': '[1,2]' }, { input: [1, 2] }],
    ['what was redacted', { 'input.value': '__REDACTED__' }, { input: '__REDACTED__' }],
    ['prompts', { 'llm.prompts.0.prompt.text': 'a', 'llm.prompts.1.prompt.text': 'b' }, { prompts: ['a', 'b'] }],
    ['a query', { 'reranker.query': 'q', 'reranker.top_k': 3 }, { query: 'q', top_k: 3 }],
    ['arguments of a tool', { 'tool.parameters': '{"city":"Oslo"}' }, { city: 'Oslo' }],
    ['variables of a prompt', { 'llm.prompt_template.variables': '{"name":"Ann"}' }, { name: 'Ann' }],
  ])('%s becomes inputs', (_, attributes, inputs) => {
    const run = mapped('LLM', attributes);
    expect(run.inputs).toEqual(inputs);
    expect(run.metadata).toEqual({});
  });

  test('the definition of a tool beside its arguments stays in the metadata', () => {
    const run = mapped('TOOL', { 'input.value': '{"city":"Oslo"}', 'tool.parameters': '{"city":"string"}' });
    expect(run).toMatchObject({ inputs: { city: 'Oslo' }, metadata: { 'tool.parameters': '{"city":"string"}' } });
  });

  test('completions and function calls become outputs', () => {
    const run = mapped('LLM', { 'llm.choices.0.completion.text': 'a', 'llm.function_call': '{"name":"f"}' });
    expect(run.outputs).toEqual({ choices: [{ text: 'a' }], function_call: { name: 'f' } });
  });

  test('documents that were retrieved become outputs', () => {
    const run = mapped('RETRIEVER', {
      'input.value': 'cats',
      'output.value': '{"documents":[]}',
      'retrieval.documents.0.document.id': 'd1',
      'retrieval.documents.0.document.content': 'A cat.',
      'retrieval.documents.0.document.score': 0.5,
      'retrieval.documents.0.document.metadata': '{"page":3}',
      'retrieval.documents.1.document.content': 'Two cats.',
    });
    expect(run.inputs).toEqual({ input: 'cats' });
    expect(run.outputs).toEqual({
      documents: [
        { page_content: 'A cat.', type: 'Document', metadata: { page: 3, id: 'd1', score: 0.5 } },
        { page_content: 'Two cats.', type: 'Document', metadata: {} },
      ],
    });
  });

  test('embeddings are recorded as their texts and lengths, without the vectors', () => {
    const run = mapped('EMBEDDING', {
      'embedding.model_name': 'small',
      'input.value': 'a',
      'embedding.embeddings.0.embedding.text': 'a',
      'embedding.embeddings.0.embedding.vector': [0.1, 0.2, 0.3],
      'llm.token_count.prompt': 1,
    });
    expect(run).toMatchObject({
      runType: 'embedding',
      inputs: { texts: ['a'] },
      outputs: { embeddings: [{ dimensions: 3 }], usage_metadata: { input_tokens: 1, total_tokens: 1 } },
      metadata: { ls_model_name: 'small' },
    });
    expect(JSON.stringify(run)).not.toContain('0.2');
  });
});

describe('names, sessions and tags', () => {
  test('a tool and an agent are called by their own name', () => {
    expect(mapped('TOOL', { 'tool.name': 'weather', 'tool.id': 'call_1' })).toMatchObject({
      name: 'weather',
      metadata: { tool_call_id: 'call_1' },
    });
    expect(mapped('AGENT', { 'agent.name': 'planner' }).name).toBe('planner');
    expect(mapped('LLM', { 'tool.name': 'weather' })).not.toHaveProperty('name');
  });

  test('session, user, tags and metadata have their own places', () => {
    const run = mapped('CHAIN', {
      'session.id': 's1',
      'user.id': 'u1',
      'tag.tags': ['a', 'b'],
      metadata: '{"topic":"cats","user_id":"other"}',
    });
    expect(run.tags).toEqual(['a', 'b']);
    expect(run.metadata).toEqual({ thread_id: 's1', session_id: 's1', user_id: 'u1', topic: 'cats' });
  });

  test('token counts of a chain, which are those of its children, are no usage of its own', () => {
    const run = mapped('AGENT', { 'llm.token_count.prompt': 20 });
    expect(run).not.toHaveProperty('outputs');
    expect(run.metadata).toEqual({ 'llm.token_count.prompt': 20 });
  });
});

test('type and inputs are known at the start where the span starts with them', () => {
  const attributes = { 'openinference.span.kind': 'LLM', 'llm.input_messages.0.message.role': 'user' };
  expect(mapStart(attributes, SHOW_ALL)).toMatchObject({
    runType: 'llm',
    inputs: { payload: { fields: { messages: [{ role: 'user' }] } } },
  });
});
