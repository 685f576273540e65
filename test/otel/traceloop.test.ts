// Meaning of the attributes: https://www.traceloop.com/docs/openllmetry/contributing/semantic-conventions and
// https://github.com/traceloop/openllmetry-js/blob/main/packages/ai-semantic-conventions/src/SemanticAttributes.ts
import { describe, expect, test } from 'vitest';
import type { Attributes } from '#src/otel/conventions/values.ts';
import { expectFields, expectRun, mapped, spanTest } from './mapped.ts';

const testSpan = spanTest('traceloop.span.kind');
const messages = (...roles: string[]) => ({ messages: roles.map((role) => ({ role })) });

testSpan('a task has the name of its entity', 'task', 'chain', [
  ['traceloop.entity.name', 'plan', 'name'],
  ['traceloop.entity.path', 'outer.plan', 'metadata/traceloop.entity.path'],
  ['traceloop.entity.version', 2, 'metadata/traceloop.entity.version'],
  ['traceloop.workflow.name', 'trip', 'metadata/traceloop.workflow.name'],
]);

testSpan('a workflow without the name of its entity has the name of the workflow', 'workflow', 'chain', [
  ['traceloop.workflow.name', 'trip', 'name'],
]);

testSpan('a task without the name of its entity has the name of its span', 'task', 'chain', [
  ['traceloop.workflow.name', 'trip', 'metadata/traceloop.workflow.name'],
]);

// The operation of the GenAI conventions takes precedence over the span kind.
testSpan('a task that executes a tool is a tool', 'task', 'tool', [
  ['gen_ai.operation.name', 'execute_tool', 'metadata/gen_ai.operation.name'],
  ['traceloop.entity.name', 'Weather', 'name'],
]);

testSpan('a guard has the name, the input and the output of the guardrail', 'task', 'chain', [
  ['gen_ai.operation.name', 'guard', 'metadata/gen_ai.operation.name'],
  ['gen_ai.guardrail.name', 'toxicity', 'name'],
  ['gen_ai.guardrail.input', '{"text":"hello"}', 'inputs', { text: 'hello' }],
  ['gen_ai.guardrail.output', '{"is_safe":true}', 'outputs', { is_safe: true }],
  ['gen_ai.guardrail.status', 'PASSED', 'metadata/gen_ai.guardrail.status'],
]);

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
    ['messages', '[{"role":"user"}]', messages('user')],
    ['text', '"hello"', { input: 'hello' }],
    ['a number', '5', { input: 5 }],
    ['truncated JSON', '{"args":["O', { input: '{"args":["O' }],
  ])('%s becomes inputs', (_, value, inputs) => {
    expectRun(mapped({ 'traceloop.entity.input': value }), { inputs, metadata: {} });
  });

  test.each<[string, unknown]>([
    ['{"rain":true}', { rain: true }],
    ['[1]', { output: [1] }],
    ['"wet"', { output: 'wet' }],
    ['12.5', { output: 12.5 }],
    ['false', { output: false }],
    ['null', { output: null }],
    ['wet', { output: 'wet' }],
  ])('%s becomes outputs', (value, outputs) => {
    expectRun(mapped({ 'traceloop.entity.output': value }), { outputs, metadata: {} });
  });
});

describe('a model call', () => {
  const text = { type: 'text', text: 'What is this?' };
  const image = { type: 'image_url', image_url: { url: 'https://a.example/b.png' } };
  const call = (name: string, args: string) => ({ type: 'function', function: { name, arguments: args } });

  // As the instrumentations up to 0.22 and those of Python set the attributes.
  test('has its messages, tools, tokens and parameters', () => {
    expectFields([
      ['', 'llm', 'runType'],
      ['gen_ai.system', 'OpenAI', 'metadata/ls_provider'],
      ['llm.request.type', 'chat', 'metadata/llm.request.type metadata/ls_model_type'],
      ['gen_ai.request.model', 'gpt-4o', 'params/model metadata/ls_model_name'],
      ['gen_ai.request.temperature', 0.5, 'params/temperature metadata/ls_temperature'],
      ['gen_ai.request.max_tokens', 64, 'params/max_tokens metadata/ls_max_tokens'],
      ['gen_ai.request.top_p', 0.9, 'params/top_p'],
      ['llm.top_k', 5, 'params/top_k'],
      ['llm.frequency_penalty', 0.1, 'params/frequency_penalty'],
      ['llm.presence_penalty', 0.2, 'params/presence_penalty'],
      ['llm.request.repetition_penalty', 1.1, 'params/repetition_penalty'],
      ['llm.chat.stop_sequences', ['x'], 'params/stop metadata/ls_stop'],
      ['llm.is_streaming', true, 'params/stream'],
      ['llm.user', 'u1', 'metadata/user_id'],
      ['llm.headers', '{"authorization":"Bearer k"}'],
      [
        'gen_ai.prompt',
        [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: JSON.stringify([text, image]) },
          { role: 'assistant', tool_calls: [{ id: 'call_0', name: 'weather', arguments: '{"city":"Oslo"}' }] },
          { role: 'tool', tool_call_id: 'call_0', content: '[12]' },
        ],
        'inputs/messages',
        [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: [text, image] },
          { role: 'assistant', tool_calls: [{ id: 'call_0', ...call('weather', '{"city":"Oslo"}') }] },
          { role: 'tool', tool_call_id: 'call_0', content: '[12]' },
        ],
      ],
      ['llm.request.functions.0.name', 'weather', 'params/tools/0/function/name'],
      ['llm.request.functions.0.description', 'The weather.', 'params/tools/0/function/description'],
      ['llm.request.functions.0.parameters', '{"type":"object"}'],
      ['', { type: 'object' }, 'params/tools/0/function/parameters'],
      ['llm.request.functions.1.name', 'clock', 'params/tools/1/function/name'],
      ['llm.request.functions.1.arguments', '{"type":"string"}'],
      ['', { type: 'string' }, 'params/tools/1/function/parameters'],
      ['', 'function', 'params/tools/0/type params/tools/1/type'],
      ['gen_ai.response.model', 'gpt-4o-2024-08-06', 'metadata/response_model'],
      ['gen_ai.completion.0.finish_reason', 'tool_calls', 'outputs/messages/0/finish_reason'],
      ['', ['tool_calls'], 'metadata/finish_reasons'],
      ['gen_ai.completion.0.role', 'assistant', 'outputs/messages/0/role'],
      ['gen_ai.completion.0.content', '', 'outputs/messages/0/content'],
      ['gen_ai.completion.0.tool_calls.0.name', 'weather'],
      ['gen_ai.completion.0.tool_calls.0.arguments', '{"city":"Rome"}'],
      ['', [call('weather', '{"city":"Rome"}')], 'outputs/messages/0/tool_calls'],
      ['gen_ai.completion.0.function_call.name', 'clock', 'outputs/messages/0/function_call/name'],
      ['gen_ai.completion.0.function_call.arguments', '{}', 'outputs/messages/0/function_call/arguments'],
      ['gen_ai.usage.prompt_tokens', 20, 'usage/input_tokens'],
      ['gen_ai.usage.completion_tokens', 7, 'usage/output_tokens'],
      ['llm.usage.total_tokens', 27, 'usage/total_tokens'],
      ['gen_ai.usage.cache_read_input_tokens', 16, 'usage/input_token_details/cache_read'],
      ['gen_ai.usage.cache_creation_input_tokens', 2, 'usage/input_token_details/cache_creation'],
      ['gen_ai.usage.reasoning_tokens', 5, 'usage/output_token_details/reasoning'],
    ]);
  });

  test.each<[string, Attributes, object]>([
    ['nested messages', { 'gen_ai.prompt.0.message.role': 'user' }, messages('user')],
    ['indexes with gaps', { 'gen_ai.prompt.10.role': 'b', 'gen_ai.prompt.2.role': 'a' }, messages('a', 'b')],
    [
      'messages of the GenAI conventions',
      { 'gen_ai.input.messages': '[{"role":"user"}]', 'gen_ai.prompt.0.role': 'old' },
      messages('user'),
    ],
  ])('has its messages from %s', (_, attributes, inputs) => {
    expectRun(mapped(attributes), { inputs });
  });

  test.each(['llm.response.finish_reason', 'llm.response.stop_reason'])('has a finish reason from %s', (name) => {
    expect(mapped({ [name]: 'stop' }).metadata).toEqual({ finish_reasons: ['stop'] });
  });
});

describe('association properties', () => {
  const properties = 'traceloop.association.properties';

  testSpan('become metadata under their own names', 'task', 'chain', [
    [`${properties}.user_id`, 'u1', 'metadata/user_id'],
    [`${properties}.session_id`, 's1', 'metadata/session_id metadata/thread_id'],
    [`${properties}.plan.tier`, 'gold', 'metadata/plan.tier'],
  ]);

  testSpan('name the conversation and the user', 'task', 'chain', [
    [`${properties}.chat_id`, 'c1', 'metadata/chat_id metadata/thread_id'],
    [`${properties}.userId`, 'u1', 'metadata/userId metadata/user_id'],
  ]);

  testSpan('do not replace fields of the run', 'task', 'chain', [
    ['gen_ai.request.model', 'm', 'metadata/ls_model_name params/model'],
    [`${properties}.ls_model_name`, 'other'],
    [`${properties}.thread_id`, 't1', 'metadata/thread_id'],
    [`${properties}.session_id`, 's1', 'metadata/session_id'],
  ]);

  test('may have the name of a prototype', () => {
    const { metadata } = mapped({ [`${properties}.__proto__`]: 'x' });
    expect(Object.entries(metadata)).toEqual([['__proto__', 'x']]);
    expect(mapped({ [properties]: 'x' }).metadata).toEqual({ [properties]: 'x' });
  });
});

describe('a vector database', () => {
  const document = (metadata: object) => ({ page_content: '', type: 'Document', metadata });

  test('is a retriever with its matches as documents if it is searched', () => {
    expectFields([
      ['', 'retriever', 'runType'],
      ['db.system', 'Pinecone', 'metadata/db.system'],
      ['db.vector.table_name', 'pages', 'inputs/collection'],
      ['db.vector.query.top_k', 2, 'inputs/top_k'],
      ['db.vector.query.id', 'q1', 'inputs/id'],
      ['db.vector.query.metadata_filter', '{"lang":"en"}', 'inputs/filter', { lang: 'en' }],
      ['db.vector.query.include_metadata', true, 'inputs/include_metadata'],
      ['db.vector.query.include_values', false, 'inputs/include_values'],
      ['db.vector.query.embeddings.vector', [0.125, 0.25, 0.5], 'inputs/embeddings', [{ dimensions: 3 }]],
      ['db.vector.query.result.namespace', 'ns', 'metadata/db.vector.query.result.namespace'],
      ['db.vector.query.result.matches_length', 2, 'metadata/db.vector.query.result.matches_length'],
      ['db.vector.query.result.0.id', 'a'],
      ['db.vector.query.result.0.score', 0.75],
      ['db.vector.query.result.0.values', '[0.375,0.625]'],
      ['db.vector.query.result.0.sparse.indices', [1]],
      ['db.vector.query.result.0.metadata', '{"page":3}'],
      ['', document({ dimensions: 2, page: 3, id: 'a', score: 0.75 }), 'outputs/documents/0'],
      ['db.vector.query.result.1.id', 'b', 'outputs/documents/1', document({ id: 'b' })],
    ]);
  });

  test.each<[string, string, Attributes, object | undefined]>([
    ['retriever', 'only the number of matches is known', { 'query.result.matches_length': 0 }, undefined],
    ['retriever', 'vectors are read by their ids', { 'get.selector': '[1,2]', 'get.count': 2 }, { ids: [1, 2] }],
    ['chain', 'vectors are added', { table_name: 'pages', 'add.count': 2 }, { collection: 'pages' }],
  ])('is a %s if %s', (runType, _, fields, inputs) => {
    const attributes = Object.entries(fields).map(([name, value]) => [`db.vector.${name}`, value]);
    expectRun(mapped({ 'db.system': 'Qdrant', ...Object.fromEntries(attributes) }), { runType, inputs });
  });
});
