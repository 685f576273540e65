// Meaning of the attributes: https://www.traceloop.com/docs/openllmetry/contributing/semantic-conventions and
// https://github.com/traceloop/openllmetry-js/blob/main/packages/ai-semantic-conventions/src/SemanticAttributes.ts
import { describe, expect, test } from 'vitest';
import type { Attributes } from '../../src/otel/conventions/values.ts';
import { mapped } from './mapped.ts';

describe('kinds and names', () => {
  test.each([
    ['workflow', 'chain'],
    ['task', 'chain'],
    ['agent', 'chain'],
    ['tool', 'tool'],
    ['session', 'chain'],
    ['unknown', 'chain'],
    ['something new', 'chain'],
  ])('the kind %s makes a run of type %s, named after the entity', (kind, runType) => {
    const run = mapped({
      'traceloop.span.kind': kind,
      'traceloop.entity.name': 'plan',
      'traceloop.entity.path': 'outer.plan',
      'traceloop.entity.version': 2,
      'traceloop.workflow.name': 'trip',
    });
    expect(run).toEqual({
      name: 'plan',
      runType,
      metadata: {
        'traceloop.span.kind': kind,
        'traceloop.entity.path': 'outer.plan',
        'traceloop.entity.version': 2,
        'traceloop.workflow.name': 'trip',
      },
    });
  });

  test('only a workflow is named after `traceloop.workflow.name`', () => {
    expect(mapped({ 'traceloop.span.kind': 'workflow', 'traceloop.workflow.name': 'trip' }).name).toBe('trip');
    expect(mapped({ 'traceloop.span.kind': 'task', 'traceloop.workflow.name': 'trip' }).name).toBeUndefined();
    expect(mapped({ 'traceloop.workflow.name': 'trip' }).name).toBeUndefined();
  });

  test.each([
    ['chat', 'llm', 'chat'],
    ['completion', 'llm', 'llm'],
    ['embedding', 'embedding', 'embedding'],
    ['rerank', 'retriever', undefined],
    ['unknown', 'llm', undefined],
  ])('a request of type %s makes a run of type %s', (type, runType, modelType) => {
    const run = mapped({ 'llm.request.type': type, 'gen_ai.request.model': 'm' });
    expect(run).toMatchObject({ runType, metadata: { 'llm.request.type': type } });
    expect(run.metadata.ls_model_type).toBe(modelType);
  });

  test('the operation of the GenAI conventions takes precedence over the span kind', () => {
    const run = mapped({
      'gen_ai.operation.name': 'execute_tool',
      'traceloop.span.kind': 'task',
      'traceloop.entity.name': 'Weather',
    });
    expect(run).toMatchObject({ runType: 'tool', name: 'Weather' });
  });

  test('a guard is a chain with the name of the guardrail', () => {
    const run = mapped({
      'gen_ai.operation.name': 'guard',
      'gen_ai.guardrail.name': 'toxicity',
      'gen_ai.guardrail.input': '{"text":"hello"}',
      'gen_ai.guardrail.output': '{"is_safe":true}',
      'gen_ai.guardrail.status': 'PASSED',
    });
    expect(run).toMatchObject({
      runType: 'chain',
      name: 'toxicity',
      inputs: { text: 'hello' },
      outputs: { is_safe: true },
      metadata: { 'gen_ai.guardrail.status': 'PASSED' },
    });
  });
});

describe('inputs and outputs of functions', () => {
  test.each<[string, string, unknown]>([
    ['no argument', '{"args":[],"kwargs":{}}', {}],
    ['one object', '{"args":[],"kwargs":{"city":"Oslo"}}', { city: 'Oslo' }],
    ['one list', '{"args":[],"kwargs":[1,2]}', { input: [1, 2] }],
    ['null', '{"args":[],"kwargs":null}', { input: null }],
    ['one text', '{"args":["Oslo"],"kwargs":{}}', { input: 'Oslo' }],
    ['one text that is JSON', '{"args":["{\\"city\\":1}"],"kwargs":{}}', { input: '{"city":1}' }],
    ['one object among arguments', '{"args":[{"city":"Oslo"}],"kwargs":{}}', { city: 'Oslo' }],
    ['several arguments', '{"args":["Oslo",{"days":2}],"kwargs":{}}', { args: ['Oslo', { days: 2 }] }],
    ['both kinds', '{"args":[1],"kwargs":{"a":2}}', { args: [1], kwargs: { a: 2 } }],
    ['arguments of a LangChain tool', '{"args":["{\\"city\\":\\"Oslo\\"}"]}', { city: 'Oslo' }],
    ['text for a LangChain tool', '{"args":["Oslo"]}', { input: 'Oslo' }],
    ['inputs of a framework', '{"question":"q"}', { question: 'q' }],
    ['inputs that only look like arguments', '{"args":[1],"other":2}', { args: [1], other: 2 }],
    ['messages', '[{"role":"user","content":"a"}]', { messages: [{ role: 'user', content: 'a' }] }],
    ['text', '"hello"', { input: 'hello' }],
    ['a number', '5', { input: 5 }],
    ['truncated JSON', '{"args":["O', { input: '{"args":["O' }],
  ])('%s becomes inputs', (_, value, inputs) => {
    const run = mapped({ 'traceloop.span.kind': 'task', 'traceloop.entity.input': value });
    expect(run.inputs).toEqual(inputs);
    expect(run.metadata).toEqual({ 'traceloop.span.kind': 'task' });
  });

  test.each<[string, string, unknown]>([
    ['an object', '{"rain":true}', { rain: true }],
    ['a list', '[1]', { output: [1] }],
    ['text', '"wet"', { output: 'wet' }],
    ['a number', '12.5', { output: 12.5 }],
    ['a boolean', 'false', { output: false }],
    ['null', 'null', { output: null }],
    ['plain text', 'wet', { output: 'wet' }],
  ])('%s becomes outputs', (_, value, outputs) => {
    expect(mapped({ 'traceloop.entity.output': value })).toMatchObject({ outputs, metadata: {} });
  });
});

describe('a model call', () => {
  test('has its messages, tools, tokens and parameters', () => {
    // As the instrumentations up to 0.22 and those of Python set them.
    const run = mapped({
      'gen_ai.system': 'OpenAI',
      'llm.request.type': 'chat',
      'gen_ai.request.model': 'gpt-4o',
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.max_tokens': 64,
      'gen_ai.request.top_p': 0.9,
      'llm.top_k': 5,
      'llm.frequency_penalty': 0.1,
      'llm.presence_penalty': 0.2,
      'llm.request.repetition_penalty': 1.1,
      'llm.chat.stop_sequences': ['x'],
      'llm.is_streaming': true,
      'llm.user': 'u1',
      'llm.headers': '{"authorization":"Bearer k"}',
      'gen_ai.prompt.0.role': 'system',
      'gen_ai.prompt.0.content': 'Be brief.',
      'gen_ai.prompt.1.role': 'user',
      'gen_ai.prompt.1.content':
        '[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"https://a.example/b.png"}}]',
      'gen_ai.prompt.2.role': 'assistant',
      'gen_ai.prompt.2.tool_calls.0.id': 'call_0',
      'gen_ai.prompt.2.tool_calls.0.name': 'weather',
      'gen_ai.prompt.2.tool_calls.0.arguments': '{"city":"Oslo"}',
      'gen_ai.prompt.3.role': 'tool',
      'gen_ai.prompt.3.tool_call_id': 'call_0',
      'gen_ai.prompt.3.content': '[12]',
      'llm.request.functions.0.name': 'weather',
      'llm.request.functions.0.description': 'The weather.',
      'llm.request.functions.0.parameters': '{"type":"object"}',
      'llm.request.functions.1.name': 'clock',
      'llm.request.functions.1.arguments': '{"type":"string"}',
      'gen_ai.response.model': 'gpt-4o-2024-08-06',
      'gen_ai.completion.0.finish_reason': 'tool_calls',
      'gen_ai.completion.0.role': 'assistant',
      'gen_ai.completion.0.content': '',
      'gen_ai.completion.0.tool_calls.0.name': 'weather',
      'gen_ai.completion.0.tool_calls.0.arguments': '{"city":"Rome"}',
      'gen_ai.completion.0.function_call.name': 'clock',
      'gen_ai.completion.0.function_call.arguments': '{}',
      'gen_ai.usage.prompt_tokens': 20,
      'gen_ai.usage.completion_tokens': 7,
      'llm.usage.total_tokens': 30,
      'gen_ai.usage.cache_read_input_tokens': 16,
      'gen_ai.usage.cache_creation_input_tokens': 2,
      'gen_ai.usage.reasoning_tokens': 5,
    });
    const usage = {
      input_tokens: 20,
      output_tokens: 7,
      total_tokens: 30,
      input_token_details: { cache_read: 16, cache_creation: 2 },
      output_token_details: { reasoning: 5 },
    };
    const parameters = {
      model: 'gpt-4o',
      temperature: 0.5,
      max_tokens: 64,
      top_p: 0.9,
      top_k: 5,
      frequency_penalty: 0.1,
      presence_penalty: 0.2,
      repetition_penalty: 1.1,
      stop: ['x'],
      stream: true,
      tools: [
        {
          type: 'function',
          function: { name: 'weather', description: 'The weather.', parameters: { type: 'object' } },
        },
        { type: 'function', function: { name: 'clock', parameters: { type: 'string' } } },
      ],
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
          {
            role: 'assistant',
            tool_calls: [
              { id: 'call_0', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
            ],
          },
          { role: 'tool', tool_call_id: 'call_0', content: '[12]' },
        ],
      },
      outputs: {
        messages: [
          {
            role: 'assistant',
            content: '',
            finish_reason: 'tool_calls',
            tool_calls: [{ type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } }],
            function_call: { name: 'clock', arguments: '{}' },
          },
        ],
        usage_metadata: usage,
      },
      metadata: {
        ls_provider: 'OpenAI',
        ls_model_name: 'gpt-4o',
        response_model: 'gpt-4o-2024-08-06',
        ls_model_type: 'chat',
        'llm.request.type': 'chat',
        finish_reasons: ['tool_calls'],
        user_id: 'u1',
        ls_invocation_params: parameters,
        ls_temperature: 0.5,
        ls_max_tokens: 64,
        ls_stop: ['x'],
        usage_metadata: usage,
      },
    });
  });

  test.each<[string, Attributes, object]>([
    ['text', { 'gen_ai.prompt': 'ReadEvent me.' }, { input: 'ReadEvent me.' }],
    ['an object', { 'gen_ai.prompt': '{"q":1}' }, { q: 1 }],
    ['a list of messages', { 'gen_ai.prompt': '[{"role":"user"}]' }, { messages: [{ role: 'user' }] }],
    [
      'messages one level deeper',
      { 'gen_ai.prompt.0.message.role': 'user', 'gen_ai.prompt.0.message.content': 'a' },
      { messages: [{ role: 'user', content: 'a' }] },
    ],
    [
      'messages with missing indexes, sorted by number',
      { 'gen_ai.prompt.10.role': 'b', 'gen_ai.prompt.2.role': 'a' },
      { messages: [{ role: 'a' }, { role: 'b' }] },
    ],
  ])('has prompts that are %s', (_, attributes, inputs) => {
    expect(mapped(attributes)).toMatchObject({ inputs, metadata: {} });
  });

  test.each<[string, Attributes, object]>([
    ['text', { 'gen_ai.completion': 'Yes.' }, { output: 'Yes.' }],
    ['an object', { 'gen_ai.completion': '{"a":1}' }, { a: 1 }],
    ['a list of messages', { 'gen_ai.completion': '[{"role":"assistant"}]' }, { messages: [{ role: 'assistant' }] }],
  ])('has a completion that is %s', (_, attributes, outputs) => {
    expect(mapped(attributes)).toMatchObject({ outputs, metadata: {} });
  });

  test('prefers the messages of the GenAI conventions', () => {
    const run = mapped({
      'gen_ai.input.messages': '[{"role":"user","parts":[{"type":"text","content":"new"}]}]',
      'gen_ai.prompt.0.role': 'user',
      'gen_ai.prompt.0.content': 'old',
    });
    expect(run.inputs).toEqual({ messages: [{ role: 'user', content: 'new' }] });
  });

  test('does not record request headers', () => {
    expect(JSON.stringify(mapped({ 'llm.headers': '{"api-key":"k"}' }))).not.toContain('api-key');
  });

  test.each([
    ['llm.response.finish_reason', 'stop'],
    ['llm.response.stop_reason', 'stop'],
  ])('has a finish reason from %s', (name, reason) => {
    expect(mapped({ [name]: reason }).metadata).toEqual({ finish_reasons: ['stop'] });
  });
});

describe('association properties', () => {
  test('become metadata under their own names', () => {
    const run = mapped({
      'traceloop.association.properties.user_id': 'u1',
      'traceloop.association.properties.session_id': 's1',
      'traceloop.association.properties.plan.tier': 'gold',
    });
    expect(run.metadata).toEqual({ user_id: 'u1', session_id: 's1', thread_id: 's1', 'plan.tier': 'gold' });
  });

  test('do not replace fields of the run', () => {
    const run = mapped({
      'gen_ai.request.model': 'm',
      'traceloop.association.properties.ls_model_name': 'other',
      'traceloop.association.properties.thread_id': 't1',
      'traceloop.association.properties.session_id': 's1',
    });
    expect(run.metadata).toMatchObject({ ls_model_name: 'm', thread_id: 't1', session_id: 's1' });
  });

  test('may have the name of a prototype', () => {
    const { metadata } = mapped({ 'traceloop.association.properties.__proto__': 'x' });
    expect(Object.entries(metadata)).toEqual([['__proto__', 'x']]);
    const text = { 'traceloop.association.properties': 'x' };
    expect(mapped(text).metadata).toEqual(text);
  });
});

describe('a vector database', () => {
  test('is a retriever with its matches as documents if it is searched', () => {
    const run = mapped({
      'db.system': 'Pinecone',
      'db.vector.table_name': 'pages',
      'db.vector.query.top_k': 2,
      'db.vector.query.id': 'q1',
      'db.vector.query.metadata_filter': '{"lang":"en"}',
      'db.vector.query.include_metadata': true,
      'db.vector.query.include_values': false,
      'db.vector.query.embeddings.vector': [0.125, 0.25, 0.5],
      'db.vector.query.result.namespace': 'ns',
      'db.vector.query.result.matches_length': 2,
      'db.vector.query.result.0.id': 'a',
      'db.vector.query.result.0.score': 0.75,
      'db.vector.query.result.0.values': '[0.375,0.625]',
      'db.vector.query.result.0.sparse.indices': [1],
      'db.vector.query.result.0.metadata': '{"page":3}',
      'db.vector.query.result.1.id': 'b',
    });
    expect(run).toEqual({
      runType: 'retriever',
      inputs: {
        collection: 'pages',
        top_k: 2,
        id: 'q1',
        filter: { lang: 'en' },
        include_metadata: true,
        include_values: false,
        embeddings: [{ dimensions: 3 }],
      },
      outputs: {
        documents: [
          { page_content: '', type: 'Document', metadata: { dimensions: 2, page: 3, id: 'a', score: 0.75 } },
          { page_content: '', type: 'Document', metadata: { id: 'b' } },
        ],
      },
      metadata: {
        'db.system': 'Pinecone',
        'db.vector.query.result.namespace': 'ns',
        'db.vector.query.result.matches_length': 2,
      },
    });
  });

  test('is a retriever if only the number of matches is known', () => {
    const run = mapped({ 'db.system': 'Qdrant', 'db.vector.query.result.matches_length': 0 });
    expect(run).toMatchObject({ runType: 'retriever' });
  });

  test('is a retriever if vectors are read by their ids', () => {
    const run = mapped({ 'db.system': 'Qdrant', 'db.vector.get.selector': '[1,2]', 'db.vector.get.count': 2 });
    expect(run).toMatchObject({ runType: 'retriever', inputs: { ids: [1, 2] } });
  });

  test('is a chain if vectors are added', () => {
    const run = mapped({ 'db.system': 'Qdrant', 'db.vector.table_name': 'pages', 'db.vector.add.count': 2 });
    expect(run).toMatchObject({ runType: 'chain', inputs: { collection: 'pages' } });
  });
});
