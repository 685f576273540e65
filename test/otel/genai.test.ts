import { describe, expect, test } from 'vitest';
import { mapSpan } from '../../src/otel/mapping.ts';
import type { Attributes } from '../../src/otel/values.ts';

/** What a span with these attributes comes to, as JSON has it. */
function mapped(attributes: Attributes) {
  const { inputs, outputs, metadata, ...rest } = mapSpan(attributes, { hideInputs: false, hideOutputs: false });
  return JSON.parse(
    JSON.stringify({
      ...rest,
      inputs: inputs?.payload?.fields,
      outputs: outputs?.fields,
      metadata: Object.fromEntries(metadata),
    }),
  );
}

test.each([
  ['chat', 'llm'],
  ['generate_content', 'llm'],
  ['text_completion', 'llm'],
  ['fetch_response', 'llm'],
  ['embeddings', 'embedding'],
  ['retrieval', 'retriever'],
  ['rerank', 'retriever'],
  ['search_memory', 'retriever'],
  ['execute_tool', 'tool'],
  ['create_agent', 'chain'],
  ['invoke_agent', 'chain'],
  ['invoke_workflow', 'chain'],
  ['plan', 'chain'],
  ['something new', 'chain'],
])('the operation %s makes a run of type %s', (operation, runType) => {
  expect(mapped({ 'gen_ai.operation.name': operation }).runType).toBe(runType);
});

test('a model without an operation makes an llm run', () => {
  expect(mapped({ 'gen_ai.request.model': 'm' }).runType).toBe('llm');
});

test('a call of a chat model has its messages, tokens, model and parameters', () => {
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

  test('keep parts of types that are not known, and messages that have none', () => {
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

  test('take the answer of a tool from either name', () => {
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

  test('begin with instructions that are plain text', () => {
    const messages = [{ role: 'user', parts: [{ type: 'text', content: 'a' }] }];
    expect(inputs(messages, { 'gen_ai.system_instructions': 'Be brief.' }).messages[0]).toEqual({
      role: 'system',
      content: 'Be brief.',
    });
  });

  test('that are none stay in the metadata', () => {
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

test('an agent is called by its own name', () => {
  expect(mapped({ 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'planner' }).name).toBe('planner');
});

test('names of older versions are read where the present ones are missing', () => {
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
