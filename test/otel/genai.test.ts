import { describe, expect, test } from 'vitest';
import type { Attributes } from '../../src/otel/conventions/values.ts';
import { mapped } from './mapped.ts';

test.each([
  ['llm', 'chat, generate_content, text_completion, fetch_response, completion'],
  ['embedding', 'embeddings, embedding'],
  ['retriever', 'retrieval, rerank, search_memory'],
  ['tool', 'create_memory, update_memory, upsert_memory, delete_memory, create_memory_store'],
  ['tool', 'delete_memory_store, execute_tool'],
  ['chain', 'agent_step, handoff, guard, guardrail.run, create_agent, invoke_agent, invoke_workflow, plan'],
  ['chain', 'something new'],
])('a run has the type %s for the operations %s', (runType, kinds) => {
  for (const kind of kinds.split(', '))
    expect([kind, mapped({ 'gen_ai.operation.name': kind }).runType]).toEqual([kind, runType]);
});

test.each([
  ['execute_tool', 'gen_ai.tool.name'],
  ['create_agent', 'gen_ai.agent.name'],
  ['invoke_agent', 'gen_ai.agent.name'],
  ['invoke_workflow', 'gen_ai.workflow.name'],
  ['guard', 'gen_ai.guardrail.name'],
])('the operation %s has its name in %s', (operation, attribute) => {
  expect(mapped({ 'gen_ai.operation.name': operation, [attribute]: 'own' }).name).toBe('own');
});

test('an agent step with a model is a chain without usage', () => {
  const run = mapped({
    'gen_ai.operation.name': 'agent_step',
    'gen_ai.request.model': 'm',
    'gen_ai.usage.input_tokens': 3,
  });
  expect(run.runType).toBe('chain');
  expect(run.outputs).toBeUndefined();
  expect(run.metadata['gen_ai.usage.input_tokens']).toBe(3);
});

test('a span with a model and no operation is an llm run', () => {
  expect(mapped({ 'gen_ai.request.model': 'm' }).runType).toBe('llm');
});

test('a chat call has its messages, tokens, model and parameters', () => {
  // After the example in open-telemetry/semantic-conventions-genai, docs/gen-ai/non-normative/examples-llm-calls.md
  const run = mapped({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.conversation.id': 'conv_1',
    'gen_ai.request.model': 'gpt-4',
    'gen_ai.request.max_tokens': 200,
    'gen_ai.request.top_p': 1,
    'gen_ai.request.temperature': 0,
    'gen_ai.request.stop_sequences': ['END'],
    'gen_ai.request.choice.count': 2,
    'gen_ai.response.id': 'chatcmpl-1',
    'gen_ai.response.model': 'gpt-4-0613',
    'gen_ai.response.finish_reasons': ['stop', 'tool_call'],
    'gen_ai.usage.input_tokens': 97,
    'gen_ai.usage.output_tokens': 52,
    'gen_ai.usage.cache_read.input_tokens': 50,
    'gen_ai.usage.reasoning.output_tokens': 12,
    'gen_ai.system_instructions': '[{"type":"text","content":"Be brief."}]',
    'gen_ai.input.messages': JSON.stringify([
      { role: 'user', parts: [{ type: 'text', content: 'Weather in Paris?' }] },
      {
        role: 'assistant',
        parts: [{ type: 'tool_call', id: 'c1', name: 'weather', arguments: { location: 'Paris' } }],
      },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', result: 'rainy' }] },
    ]),
    'gen_ai.output.messages': JSON.stringify([
      { role: 'assistant', parts: [{ type: 'text', content: 'It rains.' }], finish_reason: 'stop' },
      {
        role: 'assistant',
        parts: [
          { type: 'reasoning', content: 'hm' },
          { type: 'text', content: 'Rain.' },
        ],
      },
    ]),
    'gen_ai.tool.definitions': '[{"type":"function","name":"weather"}]',
    'server.address': 'api.openai.com',
  });
  const usage = {
    input_tokens: 97,
    output_tokens: 52,
    total_tokens: 149,
    input_token_details: { cache_read: 50 },
    output_token_details: { reasoning: 12 },
  };
  expect(run).toEqual({
    runType: 'llm',
    inputs: {
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Weather in Paris?' },
        {
          role: 'assistant',
          tool_calls: [
            { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"location":"Paris"}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'rainy' },
      ],
    },
    outputs: {
      messages: [
        { role: 'assistant', content: 'It rains.', finish_reason: 'stop' },
        {
          role: 'assistant',
          content: [
            { type: 'reasoning', reasoning: 'hm' },
            { type: 'text', text: 'Rain.' },
          ],
          finish_reason: 'tool_call',
        },
      ],
      usage_metadata: usage,
    },
    metadata: {
      'gen_ai.operation.name': 'chat',
      ls_provider: 'openai',
      ls_model_name: 'gpt-4',
      ls_model_type: 'chat',
      response_model: 'gpt-4-0613',
      thread_id: 'conv_1',
      'gen_ai.conversation.id': 'conv_1',
      'gen_ai.response.id': 'chatcmpl-1',
      finish_reasons: ['stop', 'tool_call'],
      ls_invocation_params: {
        model: 'gpt-4',
        temperature: 0,
        max_tokens: 200,
        stop: ['END'],
        top_p: 1,
        n: 2,
        tools: [{ type: 'function', name: 'weather' }],
      },
      ls_temperature: 0,
      ls_max_tokens: 200,
      ls_stop: ['END'],
      usage_metadata: usage,
      'server.address': 'api.openai.com',
    },
  });
});

describe('messages', () => {
  const inputs = (messages: unknown, more: Attributes = {}) =>
    mapped({ 'gen_ai.input.messages': messages, ...more }).inputs;

  test('may be structured values instead of JSON text', () => {
    expect(inputs([{ role: 'user', parts: [{ type: 'text', content: 'a' }] }])).toEqual({
      messages: [{ role: 'user', content: 'a' }],
    });
  });

  test('keep parts of unknown types, and messages without parts', () => {
    const file = { type: 'file', modality: 'image', file_id: 'f' };
    const uri = { type: 'uri', modality: 'image', uri: 'https://a.example/b.png' };
    expect(
      inputs([
        { role: 'user', name: 'ann', parts: [file, uri] },
        { role: 'user', content: 'b' },
      ]),
    ).toEqual({
      messages: [
        { role: 'user', name: 'ann', content: [file, { type: 'image_url', image_url: { url: uri.uri } }] },
        { role: 'user', content: 'b' },
      ],
    });
  });

  // https://github.com/open-telemetry/semantic-conventions-genai/blob/main/model/gen-ai/gen-ai-input-messages.json
  test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['text', { type: 'text', content: 'a', extra: 1 }, { type: 'text', text: 'a', extra: 1 }],
    ['reasoning', { type: 'reasoning', content: 'hm' }, { type: 'reasoning', reasoning: 'hm' }],
    ['reasoning of other packages', { type: 'reasoning', text: 'hm' }, { type: 'reasoning', reasoning: 'hm' }],
    [
      'image',
      { type: 'blob', modality: 'image', mime_type: 'image/png', content: 'AAAA' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    ],
    [
      'sound',
      { type: 'blob', modality: 'audio', mime_type: 'audio/wav', content: 'AAAA', transcript: 'hi' },
      {
        type: 'blob',
        modality: 'audio',
        mime_type: 'audio/wav',
        content: 'data:audio/wav;base64,AAAA',
        transcript: 'hi',
      },
    ],
    [
      'document of unknown type',
      { type: 'blob', modality: 'document', mime_type: null, content: 'AAAA' },
      {
        type: 'blob',
        modality: 'document',
        mime_type: null,
        content: 'data:application/octet-stream;base64,AAAA',
      },
    ],
    [
      'image at an address',
      { type: 'uri', modality: 'image', uri: 'https://a.example/b.png' },
      { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
    ],
    ...[
      { type: 'uri', modality: 'video', uri: 'gs://a/b.mp4' },
      { type: 'file', modality: 'image', file_id: 'f1' },
      { type: 'server_tool_call', id: 's1', name: 'search', server_tool_call: { type: 'web_search', query: 'q' } },
      { type: 'server_tool_call_response', id: 's1', server_tool_call_response: { type: 'web_search', hits: 2 } },
      { type: 'compaction', id: 'k1', content: 'so far' },
      { type: 'something new', content: 'a' },
    ].map((part) => [part.type, part, part] as [string, Record<string, unknown>, Record<string, unknown>]),
  ])('have a part of the type %s', (_, part, block) => {
    const parts = [{ type: 'text', content: 'see' }, part];
    const content = [{ type: 'text', text: 'see' }, block];
    expect(inputs([{ role: 'user', parts }])).toEqual({ messages: [{ role: 'user', content }] });
  });

  test('prefer `call_id` as the id of a tool call, because its response has this id', () => {
    expect(
      inputs([
        { role: 'assistant', parts: [{ type: 'tool_call', id: 'fc_1', call_id: 'c1', name: 'f', arguments: '{}' }] },
        { role: 'user', parts: [{ type: 'tool_call_response', call_id: 'c1', response: 'wet', server: 's' }] },
      ]),
    ).toEqual({
      messages: [
        { role: 'assistant', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }] },
        { role: 'tool', tool_call_id: 'c1', content: 'wet', server: 's' },
      ],
    });
  });

  test('do not repeat the system instructions', () => {
    const parts = [{ type: 'text', content: 'Be brief.' }];
    const messages = [
      { role: 'system', parts },
      { role: 'user', content: 'a' },
    ];
    const expected = {
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'a' },
      ],
    };
    expect(inputs(messages, { 'gen_ai.system_instructions': 'Be brief.' })).toEqual(expected);
    expect(inputs(messages, { 'gen_ai.system_instructions': parts })).toEqual(expected);
    expect(inputs(messages, { 'gen_ai.system_instructions': 'Be kind.' }).messages).toHaveLength(3);
  });

  test('read a tool result from `response` or `result`', () => {
    const answers = [
      { type: 'tool_call_response', id: '1', response: { temperature: 12 } },
      { type: 'tool_call_response', id: '2', result: 'cold' },
    ];
    expect(inputs([{ role: 'tool', parts: answers }])).toEqual({
      messages: [
        { role: 'tool', tool_call_id: '1', content: { temperature: 12 } },
        { role: 'tool', tool_call_id: '2', content: 'cold' },
      ],
    });
  });

  test('start with system instructions in plain text', () => {
    const messages = [{ role: 'user', parts: [{ type: 'text', content: 'a' }] }];
    expect(inputs(messages, { 'gen_ai.system_instructions': 'Be brief.' }).messages[0]).toEqual({
      role: 'system',
      content: 'Be brief.',
    });
  });

  test('that are invalid stay in the metadata', () => {
    const run = mapped({ 'gen_ai.input.messages': '[{"role"' });
    expect(run.inputs).toBeUndefined();
    expect(run.metadata).toEqual({ 'gen_ai.input.messages': '[{"role"' });
  });
});

test('a tool has its name, arguments and result', () => {
  const run = mapped({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'weather',
    'gen_ai.tool.call.id': 'c1',
    'gen_ai.tool.call.arguments': '{"city":"Oslo"}',
    'gen_ai.tool.call.result': 'cold',
  });
  expect(run).toMatchObject({
    name: 'weather',
    runType: 'tool',
    inputs: { city: 'Oslo' },
    outputs: { output: 'cold' },
    metadata: { tool_call_id: 'c1' },
  });
});

test('a retrieval has its query and documents', () => {
  const run = mapped({
    'gen_ai.operation.name': 'retrieval',
    'gen_ai.retrieval.query.text': 'cats',
    'gen_ai.retrieval.documents': '[{"id":"d1","score":0.5,"content":"A cat."},{"id":"d2"}]',
  });
  expect(run.inputs).toEqual({ query: 'cats' });
  expect(run.outputs).toEqual({
    documents: [
      { page_content: 'A cat.', type: 'Document', metadata: { id: 'd1', score: 0.5 } },
      { page_content: '', type: 'Document', metadata: { id: 'd2' } },
    ],
  });
});

// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/registry/attributes/gen-ai.md
test('a memory search has its query, and its records as documents', () => {
  const run = mapped({
    'gen_ai.operation.name': 'search_memory',
    'gen_ai.memory.store.id': 'ms_1',
    'gen_ai.memory.query.text': 'diet',
    'gen_ai.memory.records': [
      { content: 'Likes tea.', id: 'mem_1', score: 0.5 },
      { content: { preference: 'vegetarian' }, metadata: { source: 'profile' } },
    ],
  });
  expect(run.inputs).toEqual({ query: 'diet' });
  expect(run.outputs).toEqual({
    documents: [
      { page_content: 'Likes tea.', type: 'Document', metadata: { id: 'mem_1', score: 0.5 } },
      { page_content: '{"preference":"vegetarian"}', type: 'Document', metadata: { source: 'profile' } },
    ],
  });
  expect(run.metadata).toEqual({ 'gen_ai.operation.name': 'search_memory', 'gen_ai.memory.store.id': 'ms_1' });
});

test('records written to the memory are inputs', () => {
  const records = [{ content: 'Likes tea.', id: 'mem_1' }];
  const run = mapped({ 'gen_ai.operation.name': 'create_memory', 'gen_ai.memory.records': JSON.stringify(records) });
  expect(run.inputs).toEqual({ records });
  expect(run.outputs).toBeUndefined();
});

describe('a prompt and a completion of the first versions', () => {
  test.each<[string, unknown, unknown]>([
    ['messages', '[{"role":"user","content":"a"}]', { messages: [{ role: 'user', content: 'a' }] }],
    ['an object', '{"question":"a"}', { question: 'a' }],
    ['plain text', 'a', { input: 'a' }],
    ['broken JSON', '[{"role"', { input: '[{"role"' }],
  ])('may be %s', (_, prompt, inputs) => {
    expect(mapped({ 'gen_ai.prompt': prompt }).inputs).toEqual(inputs);
  });

  test('are ignored if the current attributes are set', () => {
    const run = mapped({
      'gen_ai.input.messages': [{ role: 'user', content: 'a' }],
      'gen_ai.prompt': 'b',
      'gen_ai.output.messages': [{ role: 'assistant', content: 'c' }],
      'gen_ai.completion': 'd',
    });
    expect(run.inputs).toEqual({ messages: [{ role: 'user', content: 'a' }] });
    expect(run.outputs).toEqual({ messages: [{ role: 'assistant', content: 'c' }] });
    expect(run.metadata).toEqual({});
  });
});

test.each([
  ['gen_ai.request.reasoning.level', 'high', { reasoning_effort: 'high' }],
  ['gen_ai.request.frequency_penalty', 0.5, { frequency_penalty: 0.5 }],
  ['gen_ai.request.presence_penalty', 0.5, { presence_penalty: 0.5 }],
  ['gen_ai.request.top_k', 5, { top_k: 5 }],
  ['gen_ai.request.seed', 7, { seed: 7 }],
  ['gen_ai.request.stream', true, { stream: true }],
  ['gen_ai.request.encoding_formats', ['float'], { encoding_formats: ['float'] }],
  ['gen_ai.output.type', 'json', { output_type: 'json' }],
  ['gen_ai.openai.request.service_tier', 'auto', { service_tier: 'auto' }],
  ['openai.request.service_tier', 'flex', { service_tier: 'flex' }],
])('%s is a parameter of the call', (attribute, value, parameters) => {
  expect(mapped({ [attribute]: value }).metadata).toEqual({ ls_invocation_params: parameters });
});

test.each([
  ['gen_ai.usage.cache_read.input_tokens', 'input_token_details', 'cache_read'],
  ['gen_ai.usage.cache_read_input_tokens', 'input_token_details', 'cache_read'],
  ['gen_ai.usage.details.cache_read_tokens', 'input_token_details', 'cache_read'],
  ['gen_ai.usage.cache_creation.input_tokens', 'input_token_details', 'cache_creation'],
  ['gen_ai.usage.cache_creation_input_tokens', 'input_token_details', 'cache_creation'],
  ['gen_ai.usage.details.cache_write_tokens', 'input_token_details', 'cache_creation'],
  ['gen_ai.usage.text.input_tokens', 'input_token_details', 'text'],
  ['gen_ai.usage.image.input_tokens', 'input_token_details', 'image'],
  ['gen_ai.usage.audio.input_tokens', 'input_token_details', 'audio'],
  ['gen_ai.usage.video.input_tokens', 'input_token_details', 'video'],
  ['gen_ai.usage.reasoning.output_tokens', 'output_token_details', 'reasoning'],
  ['gen_ai.usage.reasoning_tokens', 'output_token_details', 'reasoning'],
  ['gen_ai.usage.output_tokens.reasoning', 'output_token_details', 'reasoning'],
  ['gen_ai.usage.details.reasoning_tokens', 'output_token_details', 'reasoning'],
  ['gen_ai.usage.text.output_tokens', 'output_token_details', 'text'],
  ['gen_ai.usage.audio.output_tokens', 'output_token_details', 'audio'],
])('%s is counted in %s as %s', (attribute, details, key) => {
  const run = mapped({ 'gen_ai.operation.name': 'chat', [attribute]: 4 });
  expect(run.outputs).toEqual({ usage_metadata: { [details]: { [key]: 4 } } });
});

test('names of older versions are read if the current names are missing', () => {
  const run = mapped({
    'gen_ai.operation.name': 'chat',
    'gen_ai.system': 'openai',
    'gen_ai.response.model': 'gpt-4-0613',
    'gen_ai.usage.prompt_tokens': '3',
    'gen_ai.usage.completion_tokens': 2,
  });
  expect(run.outputs).toEqual({ usage_metadata: { input_tokens: 3, output_tokens: 2, total_tokens: 5 } });
  expect(run.metadata).toMatchObject({ ls_provider: 'openai', ls_model_name: 'gpt-4-0613' });
});
