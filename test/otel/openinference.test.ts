// https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
import { describe, expect, test } from 'vitest';
import type { Attributes } from '#src/otel/conventions/values.ts';
import { expectFields, expectRun, flat, mapped, spanTest } from './mapped.ts';

const testSpan = spanTest('openinference.span.kind');
const llm = (attributes: Attributes) => mapped({ 'openinference.span.kind': 'LLM', ...attributes });
const text = { type: 'text', text: 'a' };
const HOST = 'https://a.example/b.png';
const at = (url: string) => ({ type: 'image_url', image_url: { url } });

// As @arizeai/openinference-instrumentation-openai sets them, in its order.
testSpan('a chat call has its messages, tokens, costs, model and parameters', 'LLM', 'llm', [
  ['llm.model_name', 'gpt-4o-2024-08-06', 'metadata/response_model'],
  ['input.value', '{"model":"gpt-4o","messages":[]}'],
  ['input.mime_type', 'application/json'],
  ['llm.invocation_parameters', '{"model":"gpt-4o","temperature":0.5,"max_tokens":64,"stop":["x"]}'],
  ['', 'gpt-4o', 'params/model metadata/ls_model_name'],
  ['', 0.5, 'params/temperature metadata/ls_temperature'],
  ['', 64, 'params/max_tokens metadata/ls_max_tokens'],
  ['', ['x'], 'params/stop metadata/ls_stop'],
  ['llm.system', 'openai', 'metadata/llm.system'],
  ['llm.provider', 'azure', 'metadata/ls_provider'],
  [
    'llm.input_messages',
    [
      { message: { role: 'system', content: 'Be brief.' } },
      {
        message: {
          role: 'user',
          contents: [
            { message_content: text },
            { message_content: { type: 'image', image: { image: { url: HOST } } } },
          ],
        },
      },
      { message: { role: 'tool', tool_call_id: 'call_0', content: '12 C' } },
    ],
    'inputs/messages',
    [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [text, at(HOST)] },
      { role: 'tool', tool_call_id: 'call_0', content: '12 C' },
    ],
  ],
  ['llm.tools.0.tool.json_schema', '{"type":"function","name":"weather"}'],
  ['', [{ type: 'function', name: 'weather' }], 'params/tools'],
  ['output.value', '{"id":"x"}'],
  ['output.mime_type', 'application/json'],
  ['llm.output_messages.0.message.role', 'assistant', 'outputs/messages/0/role'],
  ['llm.output_messages.0.message.tool_calls.0.tool_call.id', 'c1', 'outputs/messages/0/tool_calls/0/id'],
  ['llm.output_messages.0.message.tool_calls.0.tool_call.function.name', 'weather'],
  ['llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments', '{"city":"Oslo"}'],
  ['', 'function', 'outputs/messages/0/tool_calls/0/type'],
  ['', { name: 'weather', arguments: '{"city":"Oslo"}' }, 'outputs/messages/0/tool_calls/0/function'],
  ['llm.token_count.prompt', 20, 'usage/input_tokens'],
  ['llm.token_count.completion', 7, 'usage/output_tokens'],
  ['llm.token_count.total', 27, 'usage/total_tokens'],
  ['llm.token_count.prompt_details.cache_read', 16, 'usage/input_token_details/cache_read'],
  ['llm.token_count.prompt_details.cache_write', 2, 'usage/input_token_details/cache_creation'],
  ['llm.token_count.completion_details.reasoning', 5, 'usage/output_token_details/reasoning'],
  ['llm.cost.prompt', 0.002, 'usage/input_cost'],
  ['llm.cost.completion', 0.008, 'usage/output_cost'],
  ['llm.cost.total', 0.01, 'usage/total_cost'],
  ['llm.cost.prompt_details.input', 0.0005, 'usage/input_cost_details/input'],
  ['llm.cost.prompt_details.cache_read', 0.001, 'usage/input_cost_details/cache_read'],
  ['llm.cost.prompt_details.cache_write', 0.0003, 'usage/input_cost_details/cache_creation'],
  ['llm.cost.prompt_details.audio', 0.0002, 'usage/input_cost_details/audio'],
  ['llm.cost.completion_details.output', 0.005, 'usage/output_cost_details/output'],
  ['llm.cost.completion_details.reasoning', 0.002, 'usage/output_cost_details/reasoning'],
  ['llm.cost.completion_details.audio', 0.001, 'usage/output_cost_details/audio'],
  ['llm.finish_reason', 'tool_calls', 'outputs/messages/0/finish_reason'],
  ['', ['tool_calls'], 'metadata/finish_reasons'],
]);

describe('the content of a message', () => {
  const messageOf = (message: object) => llm(flat('llm.output_messages.0.message', message)).outputs.messages[0];
  const sound = { url: 'https://a.example/b.mp3', mime_type: 'audio/mpeg' };
  const encrypted = { id: 'rs_1', encrypted_content: 'gAAA' };

  test.each<[string, object, object]>([
    ['text', text, text],
    ['text with a signature', { ...text, id: 'i', signature: 's' }, { ...text, id: 'i', signature: 's' }],
    [
      'an image',
      { type: 'image', image: { image: { url: 'data:image/png;base64,iV' } } },
      at('data:image/png;base64,iV'),
    ],
    ['a redacted image', { type: 'image', image: { image: { url: '__REDACTED__' } } }, at('__REDACTED__')],
    ['audio', { type: 'audio', audio: { audio: sound } }, { type: 'audio', audio: sound }],
    [
      'a transcript',
      { type: 'audio', audio: { audio: { transcript: 'Hi' } } },
      { type: 'audio', audio: { transcript: 'Hi' } },
    ],
    ['a video', { type: 'video', video: { video: { url: 'gs://a' } } }, { type: 'video', video: { url: 'gs://a' } }],
    [
      'signed reasoning',
      { type: 'reasoning', text: 'Hm.', signature: 'EuYB' },
      { type: 'reasoning', reasoning: 'Hm.', signature: 'EuYB' },
    ],
    ['withheld reasoning', { type: 'reasoning', data: 'EmwK' }, { type: 'reasoning', data: 'EmwK' }],
    [
      'encrypted reasoning',
      { type: 'reasoning', text: 'Hm.', ...encrypted },
      { type: 'reasoning', reasoning: 'Hm.', ...encrypted },
    ],
    ['a part of unknown type', { type: 'smell', text: 'a', strength: 2 }, { type: 'smell', text: 'a', strength: 2 }],
  ])('has %s', (_, content, block) => {
    expect(messageOf({ contents: [{ message_content: content }] })).toEqual({ content: [block] });
  });

  test('has tool calls in order between other parts', () => {
    const call = { id: 'c1', function: { name: 'weather', arguments: '{"city":"Cork"}' }, reasoning_signature: 'CiQB' };
    const contents = [{ message_content: text }, { message_content: { type: 'tool_use' }, tool_call: call }];
    const used = { type: 'tool_use', id: 'c1', name: 'weather', input: { city: 'Cork' }, reasoning_signature: 'CiQB' };
    expect(messageOf({ role: 'assistant', contents })).toEqual({ role: 'assistant', content: [text, used] });
  });

  test.each([
    ['next to other parts', 'And?', ['And?', 'a']],
    ['that repeats a part', 'a', ['a']],
    ['that is empty', '', ['a']],
  ])('has text %s', (_, content, texts) => {
    const message = messageOf({ content, contents: [{ message_content: text }] });
    expect(message).toEqual({ content: texts.map((words) => ({ type: 'text', text: words })) });
  });

  test('has a name, a function call and the signature of a tool call', () => {
    const call = { function: { name: 'add' }, reasoning_signature: 'CiQB' };
    const called = { function_call_name: 'multiply', function_call_arguments_json: '{"x":2}' };
    expect(messageOf({ name: 'adder', tool_calls: [{ tool_call: call }], ...called })).toEqual({
      name: 'adder',
      tool_calls: [{ type: 'function', ...call }],
      function_call: { name: 'multiply', arguments: '{"x":2}' },
    });
  });

  test('has no finish reason if there are several output messages', () => {
    const messages = flat('llm.output_messages', [{ message: { content: 'a' } }, { message: { content: 'b' } }]);
    expectRun(llm({ ...messages, 'llm.finish_reason': 'stop' }), {
      outputs: { messages: [{ content: 'a' }, { content: 'b' }] },
      metadata: { finish_reasons: ['stop'] },
    });
  });
});

testSpan('the models of the request and of the response are separate fields', 'LLM', 'llm', [
  ['llm.model_name', 'opus-4'],
  ['llm.request.model_name', 'opus-5', 'metadata/ls_model_name'],
  ['llm.response.model_name', 'opus-4', 'metadata/response_model'],
  ['llm.system', 'anthropic', 'metadata/ls_provider'],
]);

test.each<[string, Attributes]>([
  ['nothing else', {}],
  ['parameters that have the same model', { 'llm.invocation_parameters': '{"model":"gpt-4o"}' }],
  ['the same model in the request', { 'llm.request.model_name': 'gpt-4o' }],
])('a model is not the response model with %s', (_, attributes) => {
  const { metadata } = llm({ 'llm.model_name': 'gpt-4o', ...attributes });
  expect(metadata.ls_model_name).toBe('gpt-4o');
  expect(Object.keys(metadata)).not.toEqual(expect.arrayContaining([expect.stringMatching(/^(response_|llm\.)model/)]));
});

testSpan('tools without a schema have their name and description', 'LLM', 'llm', [
  ['llm.tools.0.tool.name', 'weather'],
  ['llm.tools.0.tool.description', 'Tells it.'],
  ['llm.tools.1.tool.json_schema', '{"name":"add"}'],
  ['llm.tools.1.tool.name', 'add'],
  [
    '',
    [{ type: 'function', function: { name: 'weather', description: 'Tells it.' } }, { name: 'add' }],
    'params/tools',
  ],
]);

testSpan('tools that the parameters contain too are recorded once', 'LLM', 'llm', [
  ['llm.invocation_parameters', '{"temperature":1,"tools":[{"name":"add"}]}'],
  ['', 1, 'params/temperature metadata/ls_temperature'],
  ['llm.tools.0.tool.json_schema', '{"name":"add"}', 'params/tools', [{ name: 'add' }]],
]);

testSpan('redacted parameters stay in the metadata', 'LLM', 'llm', [
  ['llm.invocation_parameters', '__REDACTED__', 'metadata/llm.invocation_parameters'],
]);

describe('payloads', () => {
  const typed = (value: string, type: string) => ({ 'input.value': value, 'input.mime_type': type });

  test.each<[string, Attributes, object]>([
    ['an object of JSON', typed('{"q":1}', 'application/json'), { q: 1 }],
    ['a number of JSON', typed('1', 'application/json'), { input: 1 }],
    ['invalid JSON', typed('{"q', 'application/json'), { input: '{"q' }],
    ['text that looks like JSON', typed('{"q":1}', 'text/plain'), { input: '{"q":1}' }],
    ['JSON without a type', { 'input.value': ' {"q":1}' }, { q: 1 }],
    ['text without a type', { 'input.value': '12 monkeys' }, { input: '12 monkeys' }],
    ['messages', { 'input.value': '[{"role":"user"}]' }, { messages: [{ role: 'user' }] }],
    ['a list', { 'input.value': '[1,2]' }, { input: [1, 2] }],
    ['redacted text', { 'input.value': '__REDACTED__' }, { input: '__REDACTED__' }],
    ['prompts', { 'llm.prompts.0.prompt.text': 'a', 'llm.prompts.1.prompt.text': 'b' }, { prompts: ['a', 'b'] }],
    ['prompts of earlier versions', { 'llm.prompts': ['a', 'b'] }, { prompts: ['a', 'b'] }],
    ['text with pictures', { 'input.value': 'a', 'input.images.0.image.url': HOST }, { input: 'a', images: [HOST] }],
    ['JSON with a picture', { 'input.value': '{"a":1}', 'image.url': HOST }, { a: 1, image: { url: HOST } }],
    ['a query', { 'reranker.query': 'q', 'reranker.top_k': 3 }, { query: 'q', top_k: 3 }],
    ['arguments of a tool', { 'tool.parameters': '{"city":"Oslo"}' }, { city: 'Oslo' }],
    ['variables of a prompt', { 'llm.prompt_template.variables': '{"name":"Ann"}' }, { name: 'Ann' }],
  ])('%s becomes inputs', (_, attributes, inputs) => {
    expectRun(llm(attributes), { inputs, metadata: {} });
  });

  testSpan('speech and pictures become inputs and outputs', 'LLM', 'llm', [
    ['input.audio.url', 'gs://a', 'inputs/audio/url'],
    ['input.audio.mime_type', 'audio/wav', 'inputs/audio/mime_type'],
    ['input.audio.transcript', 'Hi', 'inputs/audio/transcript'],
    ['output.audio.url', 'gs://b', 'outputs/audio/url'],
    ['output.audio.mime_type', 'audio/mpeg', 'outputs/audio/mime_type'],
    ['output.audio.transcript', 'Ho', 'outputs/audio/transcript'],
    ['output.images.0.image.url', HOST, 'outputs/images', [HOST]],
  ]);

  testSpan('media without a side become inputs', 'LLM', 'llm', [
    ['image.url', HOST, 'inputs/image/url'],
    ['video.url', 'gs://b', 'inputs/video/url'],
    ['audio.url', 'gs://a', 'inputs/audio/url'],
    ['audio.transcript', 'Hi', 'inputs/audio/transcript'],
  ]);

  testSpan('the definition of a tool stays in the metadata beside its arguments', 'TOOL', 'tool', [
    ['input.value', '{"city":"Oslo"}', 'inputs', { city: 'Oslo' }],
    ['tool.parameters', '{"city":"string"}', 'metadata/tool.parameters'],
  ]);

  testSpan('completions and function calls become outputs', 'LLM', 'llm', [
    ['llm.choices.0.completion.text', 'a', 'outputs/choices', [{ text: 'a' }]],
    ['llm.function_call', '{"name":"f"}', 'outputs/function_call', { name: 'f' }],
  ]);

  const found = (page_content: string, metadata = {}) => ({ page_content, type: 'Document', metadata });

  testSpan('documents of a reranker become inputs and outputs', 'RERANKER', 'retriever', [
    ['reranker.query', 'cats', 'inputs/query'],
    ['reranker.top_k', 1, 'inputs/top_k'],
    ['reranker.model_name', 'cross-encoder', 'metadata/ls_model_name'],
    ['reranker.input_documents', [{ document: { content: 'A dog.' } }, { document: { content: 'A cat.' } }]],
    ['', [found('A dog.'), found('A cat.')], 'inputs/documents'],
    ['reranker.output_documents', [{ document: { content: 'A cat.', score: 0.9 } }]],
    ['', [found('A cat.', { score: 0.9 })], 'outputs/documents'],
  ]);

  testSpan('retrieved documents become outputs', 'RETRIEVER', 'retriever', [
    ['input.value', 'cats', 'inputs/input'],
    ['output.value', '{"documents":[]}'],
    ['retrieval.documents.0.document.id', 'd1'],
    ['retrieval.documents.0.document.content', 'A cat.'],
    ['retrieval.documents.0.document.score', 0.5],
    ['retrieval.documents.0.document.metadata', '{"page":3}'],
    ['retrieval.documents.1.document.content', 'Two cats.'],
    ['', [found('A cat.', { page: 3, id: 'd1', score: 0.5 }), found('Two cats.')], 'outputs/documents'],
  ]);

  testSpan('a prompt has its variables, its template and its result', 'PROMPT', 'prompt', [
    ['llm.prompt_template.template', 'Hello {name}', 'metadata/template'],
    ['llm.prompt_template.version', 'v1', 'metadata/template_version'],
    ['llm.prompt_template.variables', '{"name":"Ann"}', 'inputs', { name: 'Ann' }],
    ['input.value', '{"name":"Ann","unused":1}'],
    ['output.value', 'Hello Ann', 'outputs/output'],
    ['prompt.vendor', 'langsmith', 'metadata/prompt.vendor'],
    ['prompt.id', '7', 'metadata/prompt.id'],
  ]);

  testSpan('embeddings are recorded as their texts and lengths', 'EMBEDDING', 'embedding', [
    ['embedding.model_name', 'small', 'metadata/ls_model_name'],
    ['input.value', 'a'],
    ['embedding.embeddings.0.embedding.text', 'a', 'inputs/texts', ['a']],
    ['embedding.embeddings.0.embedding.vector', [0.1, 0.2, 0.3], 'outputs/embeddings', [{ dimensions: 3 }]],
    ['llm.token_count.prompt', 1, 'usage/input_tokens'],
  ]);

  test.each<[string, unknown, object]>([
    ['redacted', '__REDACTED__', { vector: '__REDACTED__' }],
    ['JSON', '[0.125,0.25]', { dimensions: 2 }],
    ['base64', 'AAAAPgAAgD4=', {}],
  ])('a vector that is %s is recorded without its values', (_, vector, embedding) => {
    const run = llm({ 'embedding.embeddings.0.embedding.vector': vector, 'embedding.vector': [0.125] });
    expectRun(run, { outputs: { embeddings: [embedding] }, metadata: {} });
  });

  // An agent repeats the messages of one of its model calls.
  testSpan('an agent has its name and its own input', 'AGENT', 'chain', [
    ['agent.name', 'planner', 'name'],
    ['input.value', 'Rain?', 'inputs/input'],
    ['llm.input_messages', [{ message: { role: 'system', content: 'Be brief.' } }]],
  ]);
});

testSpan('a tool has its name', 'TOOL', 'tool', [
  ['tool.name', 'weather', 'name'],
  ['tool.id', 'call_1', 'metadata/tool_call_id'],
  ['tag.tags', 'a', 'tags', ['a']],
]);

testSpan('a model call has the name of its span', 'LLM', 'llm', [
  ['tool.name', 'weather', 'metadata/tool.name'],
  ['tag.tags', '["a","b"]', 'tags', ['a', 'b']],
]);

// The token counts of a chain repeat those of its children.
testSpan('a chain has its session, user, tags and metadata, but no usage', 'CHAIN', 'chain', [
  ['session.id', 's1', 'metadata/thread_id metadata/session_id'],
  ['user.id', 'u1', 'metadata/user_id'],
  ['tag.tags', ['a', 'b'], 'tags'],
  ['metadata', '{"topic":"cats","user_id":"other"}', 'metadata/topic', 'cats'],
  ['llm.token_count.prompt', 20, 'metadata/llm.token_count.prompt'],
]);

testSpan('graph nodes and evaluations stay in the metadata', 'EVALUATOR', 'chain', [
  ['graph.node.id', 'search_0', 'metadata/graph.node.id'],
  ['graph.node.parent_id', 'router_0', 'metadata/graph.node.parent_id'],
  ['evaluations.0.evaluation.score', 0.95, 'metadata/evaluations.0.evaluation.score'],
]);

// openinference-vercel, for example, sets attributes of ended spans to undefined.
test('attributes with the value undefined are ignored', () => {
  expectFields([
    ['openinference.span.kind', 'CHAIN', 'metadata/openinference.span.kind'],
    ['', 'chain', 'runType'],
    ['llm.input_messages.0.message.role', 'user', 'inputs/messages', [{ role: 'user', content: 'Rain?' }]],
    ['llm.input_messages.0.message.content', 'Rain?'],
    ['llm.input_messages.0.message.tool_calls.0.tool_call.function.name', undefined],
    ['llm.input_messages.1.message.role', undefined],
    ['input.mime_type', undefined],
    ['team', undefined],
  ]);
});
