import { describe, expect, test } from 'vitest';
import type { Attributes } from '#src/otel/conventions/values.ts';
import { expectFields, expectRun, mapped, spanTest } from './mapped.ts';

const testSpan = spanTest('gen_ai.operation.name');
const a = { type: 'text', content: 'a' };
const brief = { role: 'system', content: 'Be brief.' };
const inputs = (messages: unknown, more: Attributes = {}) =>
  mapped({ 'gen_ai.input.messages': messages, ...more }).inputs?.messages;

// After the example in open-telemetry/semantic-conventions-genai, docs/gen-ai/non-normative/examples-llm-calls.md
testSpan('a chat call has its messages, tokens, model and parameters', 'chat', 'llm', [
  ['gen_ai.provider.name', 'openai', 'metadata/ls_provider'],
  ['gen_ai.conversation.compacted', true, 'metadata/conversation_compacted'],
  ['gen_ai.prompt.name', 'forecast', 'metadata/prompt_name'],
  ['gen_ai.prompt.version', 'v2', 'metadata/prompt_version'],
  ['gen_ai.prompt.variable.city', 'Paris', 'inputs/prompt_variables/city'],
  ['gen_ai.conversation.id', 'conv_1', 'metadata/thread_id metadata/gen_ai.conversation.id'],
  ['gen_ai.request.model', 'gpt-4', 'metadata/ls_model_name params/model'],
  ['', 'chat', 'metadata/ls_model_type'],
  ['gen_ai.request.max_tokens', 200, 'params/max_tokens metadata/ls_max_tokens'],
  ['gen_ai.request.top_p', 1, 'params/top_p'],
  ['gen_ai.request.temperature', 0, 'params/temperature metadata/ls_temperature'],
  ['gen_ai.request.stop_sequences', ['END'], 'params/stop metadata/ls_stop'],
  ['gen_ai.request.choice.count', 2, 'params/n'],
  ['gen_ai.request.reasoning.level', 'high', 'params/reasoning_effort'],
  ['gen_ai.request.frequency_penalty', 0.5, 'params/frequency_penalty'],
  ['gen_ai.request.presence_penalty', 0.25, 'params/presence_penalty'],
  ['gen_ai.request.top_k', 5, 'params/top_k'],
  ['gen_ai.request.seed', 7, 'params/seed'],
  ['gen_ai.request.stream', true, 'params/stream'],
  ['gen_ai.request.stream_cursor', '42', 'params/stream_cursor'],
  ['gen_ai.request.previous_response.id', 'resp_0', 'params/previous_response_id'],
  ['gen_ai.request.encoding_formats', ['float'], 'params/encoding_formats'],
  ['gen_ai.output.type', 'json', 'params/output_type'],
  ['gen_ai.openai.request.service_tier', 'auto', 'params/service_tier'],
  ['openai.request.logprobs', 3, 'params/logprobs'],
  ['gen_ai.tool.definitions', '[{"type":"function","name":"weather"}]'],
  ['', [{ type: 'function', name: 'weather' }], 'params/tools'],
  ['gen_ai.response.id', 'chatcmpl-1', 'metadata/response_id'],
  ['gen_ai.response.status', 'completed', 'metadata/response_status'],
  ['gen_ai.response.model', 'gpt-4-0613', 'metadata/response_model'],
  ['gen_ai.response.finish_reasons', ['stop', 'tool_call'], 'metadata/finish_reasons'],
  ['gen_ai.usage.input_tokens', 97, 'usage/input_tokens'],
  ['gen_ai.usage.output_tokens', 52, 'usage/output_tokens'],
  ['', 149, 'usage/total_tokens'],
  ['gen_ai.usage.cache_read.input_tokens', 50, 'usage/input_token_details/cache_read'],
  ['gen_ai.usage.cache_creation.input_tokens', 3, 'usage/input_token_details/cache_creation'],
  ['gen_ai.usage.text.input_tokens', 20, 'usage/input_token_details/text'],
  ['gen_ai.usage.image.input_tokens', 8, 'usage/input_token_details/image'],
  ['gen_ai.usage.audio.input_tokens', 9, 'usage/input_token_details/audio'],
  ['gen_ai.usage.video.input_tokens', 10, 'usage/input_token_details/video'],
  ['gen_ai.usage.text.cache_read.input_tokens', 15, 'usage/input_token_details/text_cache_read'],
  ['gen_ai.usage.image.cache_read.input_tokens', 5, 'usage/input_token_details/image_cache_read'],
  ['gen_ai.usage.audio.cache_read.input_tokens', 4, 'usage/input_token_details/audio_cache_read'],
  ['gen_ai.usage.reasoning.output_tokens', 12, 'usage/output_token_details/reasoning'],
  ['gen_ai.usage.text.output_tokens', 30, 'usage/output_token_details/text'],
  ['gen_ai.usage.image.output_tokens', 6, 'usage/output_token_details/image'],
  ['gen_ai.usage.audio.output_tokens', 11, 'usage/output_token_details/audio'],
  ['gen_ai.system_instructions', '[{"type":"text","content":"Be brief."}]', 'inputs/messages/0', brief],
  [
    'gen_ai.input.messages',
    JSON.stringify([
      { role: 'user', parts: [{ type: 'text', content: 'Weather in Paris?' }] },
      { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', name: 'weather', arguments: { city: 'Paris' } }] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', result: 'rainy' }] },
    ]),
  ],
  ['', { role: 'user', content: 'Weather in Paris?' }, 'inputs/messages/1'],
  ['', 'assistant', 'inputs/messages/2/role'],
  ['', { name: 'weather', arguments: '{"city":"Paris"}' }, 'inputs/messages/2/tool_calls/0/function'],
  ['', 'function', 'inputs/messages/2/tool_calls/0/type'],
  ['', 'c1', 'inputs/messages/2/tool_calls/0/id'],
  ['', { role: 'tool', tool_call_id: 'c1', content: 'rainy' }, 'inputs/messages/3'],
  [
    'gen_ai.output.messages',
    JSON.stringify([
      { role: 'assistant', parts: [{ type: 'text', content: 'It rains.' }], finish_reason: 'stop' },
      { role: 'assistant', parts: [{ type: 'reasoning', content: 'hm' }, a] },
    ]),
  ],
  ['', { role: 'assistant', content: 'It rains.', finish_reason: 'stop' }, 'outputs/messages/0'],
  ['', 'assistant', 'outputs/messages/1/role'],
  [
    '',
    [
      { type: 'reasoning', reasoning: 'hm' },
      { type: 'text', text: 'a' },
    ],
    'outputs/messages/1/content',
  ],
  ['', 'tool_call', 'outputs/messages/1/finish_reason'],
  ['server.address', 'api.openai.com', 'metadata/server.address'],
]);

testSpan('names of older versions are read if the current names are missing', 'completion', 'llm', [
  ['', 'llm', 'metadata/ls_model_type'],
  ['gen_ai.system', 'openai', 'metadata/ls_provider'],
  ['gen_ai.response.model', 'gpt-4-0613', 'metadata/ls_model_name metadata/response_model'],
  ['gen_ai.usage.prompt_tokens', '3', 'usage/input_tokens', 3],
  ['gen_ai.usage.completion_tokens', 2, 'usage/output_tokens'],
  ['', 5, 'usage/total_tokens'],
  ['gen_ai.usage.cache_read_input_tokens', 1, 'usage/input_token_details/cache_read'],
  ['gen_ai.usage.cache_creation_input_tokens', 2, 'usage/input_token_details/cache_creation'],
  ['gen_ai.usage.output_tokens.reasoning', 1, 'usage/output_token_details/reasoning'],
]);

testSpan('token details of other packages are counted', 'chat', 'llm', [
  ['', 'chat', 'metadata/ls_model_type'],
  ['gen_ai.usage.details.cache_read_tokens', 1, 'usage/input_token_details/cache_read'],
  ['gen_ai.usage.details.cache_write_tokens', 2, 'usage/input_token_details/cache_creation'],
  ['gen_ai.usage.details.reasoning_tokens', 3, 'usage/output_token_details/reasoning'],
]);

// The step has the model and the usage of the calls inside it.
testSpan('an agent step with a model is a chain without usage', 'agent_step', 'chain', [
  ['gen_ai.request.model', 'm', 'metadata/ls_model_name params/model'],
  ['gen_ai.usage.input_tokens', 3, 'metadata/gen_ai.usage.input_tokens'],
]);

test('a span with a model and no operation is an llm run', () => {
  expect(mapped({ 'gen_ai.request.model': 'm' }).runType).toBe('llm');
});

test.each([
  ['execute_tool', 'gen_ai.tool.name'],
  ['create_agent', 'gen_ai.agent.name'],
  ['invoke_agent', 'gen_ai.agent.name'],
  ['invoke_workflow', 'gen_ai.workflow.name'],
  ['invoke_workflow', 'gen_ai.agent.name'],
  ['guard', 'gen_ai.guardrail.name'],
])('the operation %s has its name in %s', (operation, attribute) => {
  expect(mapped({ 'gen_ai.operation.name': operation, [attribute]: 'own' }).name).toBe('own');
});

test('a workflow has its own name rather than that of an agent', () => {
  const attributes = { 'gen_ai.agent.name': 'agent', 'gen_ai.workflow.name': 'own' };
  expect(mapped({ 'gen_ai.operation.name': 'invoke_workflow', ...attributes }).name).toBe('own');
});

test('the source of a skill has no credentials', () => {
  const { metadata } = mapped({ 'gen_ai.skill.source.uri': 'https://ann:pw@skills.example/review' });
  expect(metadata).toEqual({ 'gen_ai.skill.source.uri': 'https://skills.example/review' });
});

const twoAnswers = ['a', 'b'].map((content) => ({ role: 'assistant', content }));

// The first form is Mastra's.
test.each([[['["stop","length"]']], ['["stop","length"]'], [['stop', 'length']]])(
  'the finish reasons %j are a list, and each message has its own',
  (reasons) => {
    const attributes = { 'gen_ai.operation.name': 'chat', 'gen_ai.output.messages': twoAnswers };
    const { metadata, outputs } = mapped({ ...attributes, 'gen_ai.response.finish_reasons': reasons });
    expect(metadata.finish_reasons).toEqual(['stop', 'length']);
    expect(outputs.messages).toMatchObject([{ finish_reason: 'stop' }, { finish_reason: 'length' }]);
  },
);

test('an unknown finish reason does not move the others', () => {
  const attributes = { 'gen_ai.output.messages': twoAnswers, 'gen_ai.response.finish_reasons': [null, 'length'] };
  expect(mapped(attributes).outputs.messages).toMatchObject([{}, { finish_reason: 'length' }]);
});

testSpan('a tool has its name, arguments and result', 'execute_tool', 'tool', [
  ['gen_ai.tool.name', 'weather', 'name'],
  ['gen_ai.tool.call.id', 'c1', 'metadata/tool_call_id'],
  ['gen_ai.tool.call.arguments', '{"city":"Oslo"}', 'inputs', { city: 'Oslo' }],
  ['gen_ai.tool.call.result', 'cold', 'outputs', { output: 'cold' }],
]);

const found = (page_content: string, metadata: object) => ({ page_content, type: 'Document', metadata });

testSpan('a retrieval has its query and documents', 'retrieval', 'retriever', [
  ['gen_ai.retrieval.query.text', 'cats', 'inputs/query'],
  ['gen_ai.retrieval.documents', '[{"id":"d1","score":0.5,"content":"A cat."},{"id":"d2"}]'],
  ['', [found('A cat.', { id: 'd1', score: 0.5 }), found('', { id: 'd2' })], 'outputs/documents'],
]);

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
  const documents = [
    found('Likes tea.', { id: 'mem_1', score: 0.5 }),
    found('{"preference":"vegetarian"}', { source: 'profile' }),
  ];
  const metadata = { 'gen_ai.memory.store.id': 'ms_1' };
  expectRun(run, { inputs: { query: 'diet' }, outputs: { documents }, metadata });
});

testSpan('records written to the memory are inputs', 'create_memory', 'tool', [
  ['gen_ai.memory.records', '[{"content":"Likes tea."}]', 'inputs/records', [{ content: 'Likes tea.' }]],
]);

describe('messages', () => {
  const call = { type: 'tool_call', id: 'fc_1', call_id: 'c1', name: 'f', arguments: '{}' };
  const response = { type: 'tool_call_response', call_id: 'c1', response: 'wet', server: 's' };
  const responses = [
    { type: 'tool_call_response', id: '1', response: { temperature: 12 } },
    { type: 'tool_call_response', id: '2', result: 'cold' },
  ];
  const calls = [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }];

  test.each<[string, object[], object[]]>([
    ['may be structured values', [{ role: 'user', parts: [a] }], [{ role: 'user', content: 'a' }]],
    ['may have no parts', [{ role: 'user', content: 'b', name: 'ann' }], [{ role: 'user', content: 'b', name: 'ann' }]],
    [
      'prefer `call_id` as the id of a tool call, because its response has this id',
      [
        { role: 'assistant', parts: [call] },
        { role: 'user', parts: [response] },
      ],
      [
        { role: 'assistant', tool_calls: calls },
        { role: 'tool', tool_call_id: 'c1', content: 'wet', server: 's' },
      ],
    ],
    [
      'read a tool result from `response` or `result`',
      [{ role: 'tool', parts: responses }],
      [
        { role: 'tool', tool_call_id: '1', content: { temperature: 12 } },
        { role: 'tool', tool_call_id: '2', content: 'cold' },
      ],
    ],
  ])('%s', (_, messages, expected) => {
    expect(inputs(messages)).toEqual(expected);
  });

  // https://github.com/open-telemetry/semantic-conventions-genai/blob/main/model/gen-ai/gen-ai-input-messages.json
  const image = { type: 'blob', modality: 'image', mime_type: 'image/png', content: 'AAAA' };
  const audio = { type: 'blob', modality: 'audio', mime_type: 'audio/wav', transcript: 'hi' };
  const document = { type: 'blob', modality: 'document', mime_type: null };
  const imageAt = (url: string) => ({ type: 'image_url', image_url: { url } });
  const HOST = 'https://a.example/b.png';
  const unchanged = [
    { type: 'uri', modality: 'video', uri: 'gs://a/b.mp4' },
    { type: 'file', modality: 'image', file_id: 'f1' },
    { type: 'server_tool_call', id: 's1', name: 'search', server_tool_call: { type: 'web_search', query: 'q' } },
    { type: 'server_tool_call_response', id: 's1', server_tool_call_response: { type: 'web_search', hits: 2 } },
    { type: 'compaction', id: 'k1', content: 'so far' },
    { type: 'something new', content: 'a' },
  ];
  test.each<[object, object]>([
    [
      { ...a, extra: 1 },
      { type: 'text', text: 'a', extra: 1 },
    ],
    [
      { type: 'reasoning', content: 'hm' },
      { type: 'reasoning', reasoning: 'hm' },
    ],
    // From packages that do not follow the schema.
    [
      { type: 'reasoning', text: 'hm' },
      { type: 'reasoning', reasoning: 'hm' },
    ],
    [image, imageAt('data:image/png;base64,AAAA')],
    [
      { ...audio, content: 'AAAA' },
      { ...audio, content: 'data:audio/wav;base64,AAAA' },
    ],
    [
      { ...document, content: 'AAAA' },
      { ...document, content: 'data:application/octet-stream;base64,AAAA' },
    ],
    [{ type: 'uri', modality: 'image', uri: HOST }, imageAt(HOST)],
    ...unchanged.map((part): [object, object] => [part, part]),
  ])('have the part %j', (part, block) => {
    const content = [{ type: 'text', text: 'a' }, block];
    expect(inputs([{ role: 'user', parts: [a, part] }])).toEqual([{ role: 'user', content }]);
  });

  test('start with the system instructions, unless these repeat the first message', () => {
    const instructions = [{ type: 'text', content: 'Be brief.' }];
    const user = { role: 'user', content: 'a' };
    const withSystem = [{ role: 'system', parts: instructions }, user];
    expect(inputs([user], { 'gen_ai.system_instructions': 'Be brief.' })).toEqual([brief, user]);
    for (const given of ['Be brief.', instructions])
      expect(inputs(withSystem, { 'gen_ai.system_instructions': given })).toEqual([brief, user]);
    expect(inputs(withSystem, { 'gen_ai.system_instructions': 'Be kind.' })).toHaveLength(3);
  });

  test('that are invalid stay in the metadata', () => {
    expectFields([
      ['', 'chain', 'runType'],
      ['gen_ai.input.messages', '[{"role"', 'metadata/gen_ai.input.messages'],
    ]);
  });
});

describe('a prompt and a completion of the first versions', () => {
  test.each<[string, string, object, object]>([
    ['messages', '[{"role":"user"}]', { messages: [{ role: 'user' }] }, { messages: [{ role: 'user' }] }],
    ['an object', '{"question":"a"}', { question: 'a' }, { question: 'a' }],
    ['plain text', 'a', { input: 'a' }, { output: 'a' }],
    ['invalid JSON', '[{"role"', { input: '[{"role"' }, { output: '[{"role"' }],
  ])('may be %s', (_, text, inputsOfRun, outputs) => {
    expectRun(mapped({ 'gen_ai.prompt': text, 'gen_ai.completion': text }), {
      inputs: inputsOfRun,
      outputs,
      metadata: {},
    });
  });

  test('are ignored if the current attributes are set', () => {
    const messages = [{ role: 'user', content: 'a' }];
    const current = { 'gen_ai.input.messages': messages, 'gen_ai.output.messages': messages };
    const run = mapped({ ...current, 'gen_ai.prompt': 'b', 'gen_ai.completion': 'd' });
    expectRun(run, { inputs: { messages }, outputs: { messages }, metadata: {} });
  });
});
