import { describe, expect, test } from 'vitest';
import type { Attributes } from '../../src/otel/conventions/values.ts';
import { mapped as spanMapped } from './mapped.ts';

/** Returns the run of a span with this kind and these attributes. */
function mapped(kind: string, attributes: Attributes) {
  const run = spanMapped({ 'openinference.span.kind': kind, ...attributes });
  const { 'openinference.span.kind': _, ...metadata } = run.metadata;
  return { ...run, metadata };
}

test.each([
  ['llm', 'LLM, llm'],
  ['chain', 'CHAIN, AGENT, GUARDRAIL, EVALUATOR, UNKNOWN, something new'],
  ['tool', 'TOOL'],
  ['retriever', 'RETRIEVER, RERANKER'],
  ['embedding', 'EMBEDDING'],
  ['prompt', 'PROMPT'],
])('a run has the type %s for the span kinds %s', (runType, kinds) => {
  for (const kind of kinds.split(', ')) expect([kind, mapped(kind, {}).runType]).toEqual([kind, runType]);
});

test('a chat call has its messages, tokens, model and parameters', () => {
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
    'llm.cost.prompt': 0.002,
    'llm.cost.completion': 0.008,
    'llm.cost.total': 0.01,
    'llm.cost.prompt_details.input': 0.0005,
    'llm.cost.prompt_details.cache_read': 0.001,
    'llm.cost.prompt_details.cache_write': 0.0003,
    'llm.cost.prompt_details.audio': 0.0002,
    'llm.cost.completion_details.output': 0.005,
    'llm.cost.completion_details.reasoning': 0.002,
    'llm.cost.completion_details.audio': 0.001,
    'llm.finish_reason': 'tool_calls',
  });
  const usage = {
    input_tokens: 20,
    output_tokens: 7,
    total_tokens: 27,
    input_token_details: { cache_read: 16, cache_creation: 2 },
    output_token_details: { reasoning: 5 },
    input_cost: 0.002,
    output_cost: 0.008,
    total_cost: 0.01,
    input_cost_details: { input: 0.0005, cache_read: 0.001, cache_creation: 0.0003, audio: 0.0002 },
    output_cost_details: { output: 0.005, reasoning: 0.002, audio: 0.001 },
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
          finish_reason: 'tool_calls',
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }],
        },
      ],
      usage_metadata: usage,
    },
    metadata: {
      ls_model_name: 'gpt-4o',
      response_model: 'gpt-4o-2024-08-06',
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

describe('the content of a message', () => {
  const at = 'llm.output_messages.0.message';
  const messageOf = (attributes: Attributes) => mapped('LLM', attributes).outputs.messages[0];

  test.each<[string, Attributes, object]>([
    ['text', { type: 'text', text: 'a' }, { type: 'text', text: 'a' }],
    [
      'text with a signature',
      { type: 'text', text: 'a', id: 'i', signature: 's' },
      { type: 'text', text: 'a', id: 'i', signature: 's' },
    ],
    [
      'an image',
      { type: 'image', 'image.image.url': 'data:image/png;base64,iVBO' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
    ],
    [
      'a redacted image',
      { type: 'image', 'image.image.url': '__REDACTED__' },
      { type: 'image_url', image_url: { url: '__REDACTED__' } },
    ],
    [
      'audio',
      { type: 'audio', 'audio.audio.url': 'https://a.example/b.mp3', 'audio.audio.mime_type': 'audio/mpeg' },
      { type: 'audio', audio: { url: 'https://a.example/b.mp3', mime_type: 'audio/mpeg' } },
    ],
    [
      'audio with a transcript',
      { type: 'audio', 'audio.audio.transcript': 'Hello' },
      { type: 'audio', audio: { transcript: 'Hello' } },
    ],
    [
      'a video',
      { type: 'video', 'video.video.url': 'gs://bucket/clip.mp4' },
      { type: 'video', video: { url: 'gs://bucket/clip.mp4' } },
    ],
    [
      'signed reasoning',
      { type: 'reasoning', text: 'Hm.', signature: 'EuYB' },
      { type: 'reasoning', reasoning: 'Hm.', signature: 'EuYB' },
    ],
    ['withheld reasoning', { type: 'reasoning', data: 'EmwK' }, { type: 'reasoning', data: 'EmwK' }],
    [
      'encrypted reasoning',
      { type: 'reasoning', id: 'rs_1', text: 'Hm.', encrypted_content: 'gAAA' },
      { type: 'reasoning', reasoning: 'Hm.', id: 'rs_1', encrypted_content: 'gAAA' },
    ],
    ['a part of unknown type', { type: 'smell', text: 'a', strength: 2 }, { type: 'smell', text: 'a', strength: 2 }],
  ])('has %s', (_, content, block) => {
    const attributes = Object.entries(content).map(([key, value]) => [
      `${at}.contents.0.message_content.${key}`,
      value,
    ]);
    expect(messageOf(Object.fromEntries(attributes))).toEqual({ content: [block] });
  });

  test('has tool calls in order between other parts', () => {
    const message = messageOf({
      [`${at}.role`]: 'assistant',
      [`${at}.contents.0.message_content.type`]: 'text',
      [`${at}.contents.0.message_content.text`]: 'Let me see.',
      [`${at}.contents.1.message_content.type`]: 'tool_use',
      [`${at}.contents.1.tool_call.id`]: 'call_1',
      [`${at}.contents.1.tool_call.function.name`]: 'weather',
      [`${at}.contents.1.tool_call.function.arguments`]: '{"city":"Cork"}',
      [`${at}.contents.1.tool_call.reasoning_signature`]: 'CiQB',
    });
    expect(message).toEqual({
      role: 'assistant',
      content: [
        { type: 'text', text: 'Let me see.' },
        {
          type: 'tool_use',
          id: 'call_1',
          name: 'weather',
          input: { city: 'Cork' },
          reasoning_signature: 'CiQB',
        },
      ],
    });
  });

  test.each([
    ['next to other parts', 'And?', ['And?', 'a']],
    ['that repeats a part', 'a', ['a']],
    ['that is empty', '', ['a']],
  ])('has text %s', (_, content, texts) => {
    const message = messageOf({
      [`${at}.content`]: content,
      [`${at}.contents.0.message_content.type`]: 'text',
      [`${at}.contents.0.message_content.text`]: 'a',
    });
    expect(message).toEqual({ content: texts.map((text) => ({ type: 'text', text })) });
  });

  test('has a name, a function call and the signature of a tool call', () => {
    expect(
      messageOf({
        [`${at}.name`]: 'adder',
        [`${at}.tool_calls.0.tool_call.function.name`]: 'add',
        [`${at}.tool_calls.0.tool_call.reasoning_signature`]: 'CiQB',
        [`${at}.function_call_name`]: 'multiply',
        [`${at}.function_call_arguments_json`]: '{"x":2}',
      }),
    ).toEqual({
      name: 'adder',
      tool_calls: [{ type: 'function', function: { name: 'add' }, reasoning_signature: 'CiQB' }],
      function_call: { name: 'multiply', arguments: '{"x":2}' },
    });
  });

  test('has no finish reason if there are several output messages', () => {
    const run = mapped('LLM', {
      'llm.output_messages.0.message.content': 'a',
      'llm.output_messages.1.message.content': 'b',
      'llm.finish_reason': 'stop',
    });
    expect(run.outputs).toEqual({ messages: [{ content: 'a' }, { content: 'b' }] });
    expect(run.metadata).toEqual({ finish_reasons: ['stop'] });
  });
});

describe('models', () => {
  test('of the request and of the response are separate fields', () => {
    const run = mapped('LLM', {
      'llm.model_name': 'opus-4',
      'llm.request.model_name': 'opus-5',
      'llm.response.model_name': 'opus-4',
      'llm.system': 'anthropic',
    });
    expect(run.metadata).toEqual({ ls_model_name: 'opus-5', response_model: 'opus-4', ls_provider: 'anthropic' });
  });

  test.each<[string, Attributes]>([
    ['nothing else', {}],
    ['parameters that have the same', { 'llm.invocation_parameters': '{"model":"gpt-4o"}' }],
    ['the same in the request', { 'llm.request.model_name': 'gpt-4o' }],
  ])('of the request are not the response model with %s', (_, attributes) => {
    const { metadata } = mapped('LLM', { 'llm.model_name': 'gpt-4o', ...attributes });
    expect(metadata.ls_model_name).toBe('gpt-4o');
    expect(metadata).not.toHaveProperty('response_model');
    expect(metadata).not.toHaveProperty('llm.model_name');
  });

  test('tools without a schema have their name and description', () => {
    const run = mapped('LLM', {
      'llm.tools.0.tool.name': 'weather',
      'llm.tools.0.tool.description': 'Tells it.',
      'llm.tools.1.tool.json_schema': '{"name":"add"}',
      'llm.tools.1.tool.name': 'add',
    });
    expect(run.metadata.ls_invocation_params).toEqual({
      tools: [{ type: 'function', function: { name: 'weather', description: 'Tells it.' } }, { name: 'add' }],
    });
  });

  test('tools that the parameters contain too are recorded once', () => {
    const run = mapped('LLM', {
      'llm.invocation_parameters': '{"temperature":1,"tools":[{"name":"add"}]}',
      'llm.tools.0.tool.json_schema': '{"name":"add"}',
    });
    expect(run.metadata).toEqual({
      ls_invocation_params: { temperature: 1, tools: [{ name: 'add' }] },
      ls_temperature: 1,
    });
  });

  test('redacted parameters stay in the metadata', () => {
    const run = mapped('LLM', { 'llm.invocation_parameters': '__REDACTED__' });
    expect(run.metadata).toEqual({ 'llm.invocation_parameters': '__REDACTED__' });
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
    ['redacted text', { 'input.value': '__REDACTED__' }, { input: '__REDACTED__' }],
    ['prompts', { 'llm.prompts.0.prompt.text': 'a', 'llm.prompts.1.prompt.text': 'b' }, { prompts: ['a', 'b'] }],
    ['prompts of earlier versions', { 'llm.prompts': ['a', 'b'] }, { prompts: ['a', 'b'] }],
    [
      'speech',
      {
        'input.audio.url': 'https://a.example/b.wav',
        'input.audio.mime_type': 'audio/wav',
        'input.audio.transcript': 'Hi',
      },
      { audio: { url: 'https://a.example/b.wav', mime_type: 'audio/wav', transcript: 'Hi' } },
    ],
    [
      'media without a side',
      {
        'image.url': 'https://a.example/b.png',
        'audio.url': 'gs://a',
        'audio.transcript': 'Hi',
        'video.url': 'gs://b',
      },
      {
        image: { url: 'https://a.example/b.png' },
        video: { url: 'gs://b' },
        audio: { url: 'gs://a', transcript: 'Hi' },
      },
    ],
    [
      'text with pictures',
      { 'input.value': 'a', 'input.images.0.image.url': 'https://a.example/b.png' },
      { input: 'a', images: ['https://a.example/b.png'] },
    ],
    ['a query', { 'reranker.query': 'q', 'reranker.top_k': 3 }, { query: 'q', top_k: 3 }],
    ['arguments of a tool', { 'tool.parameters': '{"city":"Oslo"}' }, { city: 'Oslo' }],
    ['variables of a prompt', { 'llm.prompt_template.variables': '{"name":"Ann"}' }, { name: 'Ann' }],
  ])('%s becomes inputs', (_, attributes, inputs) => {
    const run = mapped('LLM', attributes);
    expect(run.inputs).toEqual(inputs);
    expect(run.metadata).toEqual({});
  });

  test('a tool definition next to its arguments stays in the metadata', () => {
    const run = mapped('TOOL', { 'input.value': '{"city":"Oslo"}', 'tool.parameters': '{"city":"string"}' });
    expect(run).toMatchObject({ inputs: { city: 'Oslo' }, metadata: { 'tool.parameters': '{"city":"string"}' } });
  });

  test('completions and function calls become outputs', () => {
    const run = mapped('LLM', { 'llm.choices.0.completion.text': 'a', 'llm.function_call': '{"name":"f"}' });
    expect(run.outputs).toEqual({ choices: [{ text: 'a' }], function_call: { name: 'f' } });
  });

  test('speech and pictures become outputs', () => {
    const run = mapped('LLM', {
      'output.audio.url': 'https://a.example/b.wav',
      'output.audio.mime_type': 'audio/wav',
      'output.audio.transcript': 'Hi',
      'output.images.0.image.url': 'https://a.example/b.png',
    });
    expect(run.outputs).toEqual({
      audio: { url: 'https://a.example/b.wav', mime_type: 'audio/wav', transcript: 'Hi' },
      images: ['https://a.example/b.png'],
    });
    expect(run.metadata).toEqual({});
  });

  test('input and output documents of a reranker become inputs and outputs', () => {
    const run = mapped('RERANKER', {
      'reranker.query': 'cats',
      'reranker.top_k': 1,
      'reranker.model_name': 'cross-encoder',
      'reranker.input_documents.0.document.content': 'A dog.',
      'reranker.input_documents.1.document.content': 'A cat.',
      'reranker.output_documents.0.document.content': 'A cat.',
      'reranker.output_documents.0.document.score': 0.9,
    });
    expect(run).toEqual({
      runType: 'retriever',
      inputs: {
        query: 'cats',
        top_k: 1,
        documents: [
          { page_content: 'A dog.', type: 'Document', metadata: {} },
          { page_content: 'A cat.', type: 'Document', metadata: {} },
        ],
      },
      outputs: { documents: [{ page_content: 'A cat.', type: 'Document', metadata: { score: 0.9 } }] },
      metadata: { ls_model_name: 'cross-encoder' },
    });
  });

  test('a prompt has its variables, its template and its result', () => {
    const run = mapped('PROMPT', {
      'llm.prompt_template.template': 'Hello {name}',
      'llm.prompt_template.version': 'v1',
      'llm.prompt_template.variables': '{"name":"Ann"}',
      'input.value': '{"name":"Ann","unused":1}',
      'output.value': 'Hello Ann',
      'prompt.vendor': 'langsmith',
      'prompt.id': '7',
    });
    expect(run).toEqual({
      runType: 'prompt',
      inputs: { name: 'Ann' },
      outputs: { output: 'Hello Ann' },
      metadata: { template: 'Hello {name}', template_version: 'v1', 'prompt.vendor': 'langsmith', 'prompt.id': '7' },
    });
  });

  test('retrieved documents become outputs', () => {
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

  test.each<[string, unknown, object]>([
    ['redacted', '__REDACTED__', { vector: '__REDACTED__' }],
    ['JSON', '[0.125,0.25]', { dimensions: 2 }],
    ['base64', 'AAAAPgAAgD4=', {}],
  ])('a vector that is %s is recorded without its values', (_, vector, embedding) => {
    const run = mapped('EMBEDDING', { 'embedding.embeddings.0.embedding.vector': vector, 'embedding.vector': [0.125] });
    expect(run.outputs).toEqual({ embeddings: [embedding] });
    expect(run.metadata).toEqual({});
  });
});

describe('names, sessions and tags', () => {
  test('a tool and an agent have their own names', () => {
    expect(mapped('TOOL', { 'tool.name': 'weather', 'tool.id': 'call_1' })).toMatchObject({
      name: 'weather',
      metadata: { tool_call_id: 'call_1' },
    });
    expect(mapped('AGENT', { 'agent.name': 'planner' }).name).toBe('planner');
    expect(mapped('LLM', { 'tool.name': 'weather' }).name).toBeUndefined();
  });

  test('tags may be JSON text', () => {
    expect(mapped('CHAIN', { 'tag.tags': '["a","b"]' }).tags).toEqual(['a', 'b']);
    expect(mapped('CHAIN', { 'tag.tags': 'a' }).tags).toEqual(['a']);
  });

  test('session, user, tags and metadata have their own fields', () => {
    const run = mapped('CHAIN', {
      'session.id': 's1',
      'user.id': 'u1',
      'tag.tags': ['a', 'b'],
      metadata: '{"topic":"cats","user_id":"other"}',
    });
    expect(run.tags).toEqual(['a', 'b']);
    expect(run.metadata).toEqual({ thread_id: 's1', session_id: 's1', user_id: 'u1', topic: 'cats' });
  });

  test('graph nodes and evaluations stay in the metadata', () => {
    const attributes = {
      'graph.node.id': 'search_0',
      'graph.node.name': 'Search',
      'graph.node.parent_id': 'router_0',
      'evaluations.0.evaluation.name': 'relevance',
      'evaluations.0.evaluation.score': 0.95,
    };
    expect(mapped('EVALUATOR', attributes).metadata).toEqual(attributes);
  });

  test('token counts of a chain, which repeat those of its children, are not its usage', () => {
    const run = mapped('CHAIN', { 'llm.token_count.prompt': 20 });
    expect(run.outputs).toBeUndefined();
    expect(run.metadata).toEqual({ 'llm.token_count.prompt': 20 });
  });
});

test('an image next to an input in JSON is added to the input', () => {
  const attributes = { 'input.value': '{"a":1}', 'image.url': 'https://host/b.png' };
  expect(mapped('LLM', attributes).inputs).toEqual({ a: 1, image: { url: 'https://host/b.png' } });
});

// openinference-vercel, for example, sets attributes of ended spans to undefined.
test('attributes with the value undefined are ignored', () => {
  const message = 'llm.input_messages.0.message';
  const { inputs, metadata } = mapped('LLM', {
    [`${message}.role`]: 'user',
    [`${message}.content`]: 'Rain?',
    [`${message}.tool_calls.0.tool_call.function.name`]: undefined,
    'llm.input_messages.1.message.role': undefined,
    'input.mime_type': undefined,
    team: undefined,
  });
  expect(inputs).toEqual({ messages: [{ role: 'user', content: 'Rain?' }] });
  expect(Object.keys(metadata)).toEqual([]);
});

test('an agent has its own input, not the messages of its model call', () => {
  const run = mapped('AGENT', {
    'input.value': 'Rain?',
    'llm.input_messages.0.message.role': 'system',
    'llm.input_messages.0.message.content': 'Be brief.',
  });
  expect(run).toMatchObject({ inputs: { input: 'Rain?' }, metadata: {} });
});
