// After https://ai-sdk.dev/docs/ai-sdk-core/telemetry#collected-data, and the sources of `ai` 4 to 6 and `@ai-sdk/otel`.
import * as ai from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { wrapAISDK } from '#src/ai.ts';
import type { Attributes } from '#src/otel/conventions/values.ts';
import type { SpanLike } from '#src/otel.ts';
import type { RunRecorder } from '#src/testing.ts';
import { expectFields, expectRun, flat, mapped, spanTest } from './mapped.ts';
import { runNamed, setUp } from './set-up.ts';

const STEP = 'ai.generateText.doGenerate';
const testSpan = spanTest('ai.operationId');
const model = (attributes: Attributes) => mapped({ 'ai.operationId': STEP, ...attributes });

const IMAGE = Buffer.alloc(48, 137);
const IMAGE_BASE64 = IMAGE.toString('base64');
const PNG = { type: 'image_url', image_url: { url: `data:image/png;base64,${IMAGE_BASE64}` } };
const CALL = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Cork"}' } };
const rain = [{ role: 'user', content: [{ type: 'text', text: 'Rain?' }] }];
const rainAsked = [{ role: 'user', content: 'Rain?' }];

test('a model call has its messages, answer, tokens, model and settings', () => {
  expectFields([
    ['', 'llm', 'runType'],
    ['ai.operationId', STEP, 'metadata/ai.operationId'],
    ['', 'chat', 'metadata/ls_model_type'],
    ['operation.name', 'ai.generateText.doGenerate forecast'],
    ['resource.name', 'forecast'],
    ['ai.telemetry.functionId', 'forecast', 'metadata/function_id'],
    ['ai.model.provider', 'openai.chat', 'metadata/ls_provider', 'openai'],
    ['ai.model.id', 'gpt', 'metadata/ls_model_name params/model'],
    ['ai.settings.maxOutputTokens', 100],
    ['ai.settings.temperature', 0.5],
    ['ai.settings.topP', 0.9],
    ['ai.settings.topK', 4],
    ['ai.settings.frequencyPenalty', 0.1],
    ['ai.settings.presencePenalty', 0.2],
    ['ai.settings.seed', 7, 'params/seed'],
    ['ai.settings.stopSequences', ['END']],
    ['ai.settings.maxRetries', 2, 'params/maxRetries'],
    ['ai.request.headers.authorization', 'Bearer hush'],
    ['ai.prompt.messages', JSON.stringify(rain), 'inputs/messages', rainAsked],
    [
      'ai.prompt.tools',
      ['{"type":"function","name":"weather"}'],
      'params/tools',
      [{ type: 'function', name: 'weather' }],
    ],
    ['ai.prompt.toolChoice', '{"type":"auto"}', 'params/tool_choice', { type: 'auto' }],
    ['gen_ai.system', 'openai.chat'],
    ['gen_ai.request.model', 'gpt'],
    // `prepareStep` has changed the temperature of this step.
    ['gen_ai.request.temperature', 0.25, 'params/temperature metadata/ls_temperature'],
    ['gen_ai.request.max_tokens', 100, 'params/max_tokens metadata/ls_max_tokens'],
    ['gen_ai.request.top_p', 0.9, 'params/top_p'],
    ['gen_ai.request.top_k', 4, 'params/top_k'],
    ['gen_ai.request.frequency_penalty', 0.1, 'params/frequency_penalty'],
    ['gen_ai.request.presence_penalty', 0.2, 'params/presence_penalty'],
    ['gen_ai.request.stop_sequences', ['END'], 'params/stop metadata/ls_stop'],
    ['ai.response.finishReason', 'stop', 'metadata/finish_reasons', ['stop']],
    ['ai.response.text', 'It rains.'],
    ['', [{ role: 'assistant', content: 'It rains.', finish_reason: 'stop' }], 'outputs/messages'],
    ['ai.response.id', 'chatcmpl-1', 'metadata/response_id'],
    ['ai.response.model', 'gpt-2026', 'metadata/response_model'],
    ['ai.usage.inputTokens', 20, 'usage/input_tokens'],
    ['ai.usage.outputTokens', 9, 'usage/output_tokens'],
    ['ai.usage.totalTokens', 29, 'usage/total_tokens'],
    ['gen_ai.response.finish_reasons', ['stop']],
    ['gen_ai.response.id', 'chatcmpl-1'],
    ['gen_ai.response.model', 'gpt-2026'],
    ['gen_ai.usage.input_tokens', 20],
    ['gen_ai.usage.output_tokens', 9],
  ]);
});

testSpan('a function has its function id as its name', 'ai.generateText', 'chain', [
  ['ai.telemetry.functionId', 'forecast', 'name metadata/function_id'],
  ['ai.toolCall.name', 'weather', 'metadata/ai.toolCall.name'],
]);

testSpan('a function has the name and the project of its metadata', 'ai.streamText', 'chain', [
  ['ai.telemetry.functionId', 'forecast', 'metadata/function_id'],
  ['ai.telemetry.metadata.ls_run_name', 'mine', 'name metadata/ls_run_name'],
  ['ai.telemetry.metadata.ls_project_name', 'shop', 'project metadata/ls_project_name'],
]);

testSpan('a model call has the name of its span', 'ai.transcribe', 'llm', [
  ['ai.telemetry.functionId', 'forecast', 'metadata/function_id'],
]);

testSpan('a tool has its name, arguments and result', 'ai.toolCall', 'tool', [
  ['ai.telemetry.functionId', 'forecast', 'metadata/function_id'],
  ['ai.toolCall.name', 'weather', 'name'],
  ['ai.toolCall.id', 'c1', 'metadata/tool_call_id'],
  ['ai.toolCall.args', '{"city":"Cork"}', 'inputs', { city: 'Cork' }],
  ['ai.toolCall.result', '{"rain":true}', 'outputs', { rain: true }],
]);

testSpan('a dynamic tool has JSON text inside JSON text as arguments', 'ai.toolCall', 'tool', [
  ['ai.toolCall.args', '"{\\"city\\":\\"Cork\\"}"', 'inputs', { city: 'Cork' }],
  ['ai.toolCall.result', '12', 'outputs', { output: 12 }],
]);

testSpan('a tool of version 7 has its input and output', 'ai.toolCall', 'tool', [
  ['ai.toolCall.input', '{"a":1}', 'inputs', { a: 1 }],
  ['ai.toolCall.output', '"b"', 'outputs', { output: 'b' }],
]);

testSpan('an embedding has its value and the length of its vector', 'ai.embed', 'chain', [
  ['ai.value', '"a"', 'inputs/value', 'a'],
  ['ai.embedding', '[0.5,0.25,1]', 'outputs/embeddings', [{ dimensions: 3 }]],
]);

testSpan('embeddings have their values and the lengths of their vectors', 'ai.embedMany.doEmbed', 'embedding', [
  ['', 'embedding', 'metadata/ls_model_type'],
  ['ai.values', ['"a"', '"b"'], 'inputs/values', ['a', 'b']],
  ['ai.embeddings', ['[0.5]', '[ ]'], 'outputs/embeddings', [{ dimensions: 1 }, { dimensions: 0 }]],
  ['ai.usage.tokens', 4, 'usage/input_tokens usage/total_tokens'],
]);

testSpan('vectors are not in the metadata if another attribute sets the outputs', 'ai.embed', 'chain', [
  ['runspan.outputs', '{"a":1}', 'outputs', { a: 1 }],
  ['ai.embedding', '[0.25]'],
]);

testSpan('a ranking has its documents and scores', 'ai.rerank.doRerank', 'retriever', [
  ['ai.documents', ['"a cat"', '{"text":"a dog"}'], 'inputs/documents', ['a cat', { text: 'a dog' }]],
  ['ai.ranking.type', 'text', 'metadata/ai.ranking.type'],
  ['ai.ranking', ['{"index":1,"score":0.9}'], 'outputs/ranking', [{ index: 1, score: 0.9 }]],
]);

testSpan('the schema of an object becomes the response format', 'ai.generateObject', 'chain', [
  ['ai.schema', '{"type":"object"}', 'params/response_format/schema', { type: 'object' }],
  ['ai.schema.name', 'report', 'params/response_format/name'],
  ['ai.schema.description', 'The weather.', 'params/response_format/description'],
  ['ai.settings.output', 'object', 'params/response_format/type'],
  ['ai.settings.mode', 'json', 'params/mode'],
]);

// The model calls inside the function have the same tokens.
testSpan('a function has its answer and no usage', 'ai.generateText', 'chain', [
  ['ai.request.headers.authorization', 'Bearer hush'],
  ['ai.response.text', 'Rain.', 'outputs/messages', [{ role: 'assistant', content: 'Rain.' }]],
  ['ai.usage.inputTokens', 40, 'metadata/ai.usage.inputTokens'],
]);

test.each<[string, unknown, string, unknown]>([
  ['ai.prompt', '{"system":"Be brief.","prompt":"Rain?"}', 'inputs', { system: 'Be brief.', prompt: 'Rain?' }],
  ['ai.prompt', JSON.stringify({ messages: rain }), 'inputs', { messages: rainAsked }],
  ['ai.prompt', JSON.stringify({ prompt: rain }), 'inputs', { prompt: rainAsked }],
  ['ai.prompt.messages', '[{"role"', 'metadata/ai.prompt.messages', '[{"role"'],
  ['ai.response.object', '{"rain":true}', 'outputs', { rain: true }],
  ['ai.result.object', '{"rain":true}', 'outputs', { rain: true }],
  ['ai.response.object', '["a","b"]', 'outputs', { output: ['a', 'b'] }],
  ['ai.response.object', '"sunny"', 'outputs', { output: 'sunny' }],
  ['ai.embeddings', [0.5, 0.25], 'outputs', { embeddings: [{ dimensions: 2 }] }],
])('of a function, %s with the value %j sets %s', (name, value, path, field) => {
  const kind = 'ai.generateObject';
  expectFields([
    ['ai.operationId', kind, 'metadata/ai.operationId'],
    ['', 'chain', 'runType'],
    [name, value, path, field],
  ]);
});

test('messages and vectors may be structured values instead of JSON text', () => {
  expect(model({ 'ai.prompt.messages': rain }).inputs).toEqual({ messages: rainAsked });
  const vectors = model({ 'ai.embeddings': [[0.5, 0.25], [1]] }).outputs;
  expect(vectors).toEqual({ embeddings: [{ dimensions: 2 }, { dimensions: 1 }] });
});

describe('messages', () => {
  const messages = (...given: object[]) => model({ 'ai.prompt.messages': JSON.stringify(given) }).inputs.messages;

  test('with text content keep their fields', () => {
    const message = { role: 'system', content: 'Be brief.', providerOptions: { a: 1 } };
    expect(messages(message)).toEqual([message]);
  });

  test('have tool calls, and each tool result becomes its own message', () => {
    const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'weather' };
    const result = { type: 'tool-result', toolCallId: 'c1', toolName: 'weather' };
    const denied = { type: 'execution-denied', reason: 'no' };
    const outputs = [{ type: 'text', value: 'rain' }, { type: 'json', value: { rain: true } }, denied];
    const answer = (content: unknown) => ({ role: 'tool', tool_call_id: 'c1', name: 'weather', content });
    const withoutArguments = { id: 'c1', type: 'function', function: { name: 'weather' } };
    const byProvider = { ...result, output: { type: 'text', value: 'by the provider' } };
    const wait = { type: 'text', text: 'Wait.' };
    expect(
      messages(
        { role: 'assistant', content: [wait, { ...call, args: { city: 'Cork' } }] },
        { role: 'tool', content: [{ ...result, result: 'rain' }] },
        { role: 'assistant', content: [{ ...call, input: '{"city":"Cork"}' }] },
        { role: 'tool', content: outputs.map((output) => ({ ...result, output })) },
        { role: 'assistant', content: [call, byProvider] },
      ),
    ).toEqual([
      { role: 'assistant', content: 'Wait.', tool_calls: [CALL] },
      answer('rain'),
      { role: 'assistant', tool_calls: [CALL] },
      ...['rain', { rain: true }, denied].map(answer),
      { role: 'assistant', tool_calls: [withoutArguments] },
      answer('by the provider'),
    ]);
  });

  const png = { type: 'file', mediaType: 'image/png' };
  const pdf = { type: 'file', mediaType: 'application/pdf', filename: 'a.pdf' };
  const pdfBlock = { type: 'file', media_type: 'application/pdf', filename: 'a.pdf' };
  const imageAt = { type: 'image_url', image_url: { url: 'https://a.example/b' } };
  test.each<[string, object, unknown]>([
    ['reasoning', { type: 'reasoning', text: 'hm' }, { type: 'reasoning', reasoning: 'hm' }],
    ['an image (4)', { type: 'image', image: IMAGE_BASE64, mimeType: 'image/png' }, PNG],
    ['an image URL', { type: 'image', image: 'https://a.example/b' }, imageAt],
    ['an image as a file (5)', { ...png, data: IMAGE_BASE64 }, PNG],
    ['the bytes of a buffer', { type: 'image', image: IMAGE.toJSON(), mediaType: 'image/png' }, PNG],
    ['the bytes of an array', { ...png, data: { ...IMAGE } }, PNG],
    ['typed data (7)', { ...png, data: { type: 'data', data: IMAGE_BASE64 } }, PNG],
    ['a typed URL (7)', { ...png, data: { type: 'url', url: 'https://a.example/b' } }, imageAt],
    [
      'another file',
      { ...pdf, data: IMAGE_BASE64 },
      { ...pdfBlock, data: `data:application/pdf;base64,${IMAGE_BASE64}` },
    ],
    ...['gs://b/x.pdf', 'file-abc', `file-${'a'.repeat(60)}`, 'report', 'A'.repeat(47)].map(
      (data): [string, object, unknown] => [`the unchanged text ${data}`, { ...pdf, data }, { ...pdfBlock, data }],
    ),
    [
      'base64 of 48 characters',
      { ...pdf, data: 'A'.repeat(48) },
      { ...pdfBlock, data: `data:application/pdf;base64,${'A'.repeat(48)}` },
    ],
    ['an object of numbers', { ...pdf, data: { page: 3 } }, { ...pdfBlock, data: { page: 3 } }],
    [
      'a file stored by the provider',
      { ...pdf, data: { openai: 'file-1' } },
      { ...pdfBlock, data: { openai: 'file-1' } },
    ],
    ['a part of unknown type', { type: 'source', url: 'b' }, { type: 'source', url: 'b' }],
  ])('have %s', (_, part, expected) => {
    expect(messages({ role: 'user', content: [{ type: 'text', text: 'See:' }, part] })[0].content[1]).toEqual(expected);
  });
});

test('a model call has the same messages and tokens as with wrapped functions', async () => {
  const weather = ai.tool({ inputSchema: z.object({ city: z.string() }), execute: async () => ({ rain: true }) });
  const usage = { inputTokens: { total: 20, cacheRead: 8 }, outputTokens: { total: 9, reasoning: 3 } };
  const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input: '{"city":"Cork"}' };
  const words = [
    { type: 'reasoning', text: 'Hm.' },
    { type: 'text', text: 'I look.' },
  ];
  const answers = [
    { content: [...words, call], finishReason: { unified: 'tool-calls' }, usage, warnings: [] },
    { content: [{ type: 'text', text: 'Rain.' }], finishReason: { unified: 'stop' }, usage, warnings: [] },
  ] as never;
  const content = [
    { type: 'text', text: 'Rain?' },
    { type: 'image', image: IMAGE, mediaType: 'image/png' },
    { type: 'file', data: IMAGE_BASE64, mediaType: 'application/pdf' },
  ] as const;
  const options = () => ({
    model: new MockLanguageModelV3({ doGenerate: answers }),
    tools: { weather },
    stopWhen: ai.stepCountIs(3),
    messages: [{ role: 'user' as const, content: [...content] }],
  });
  const modelCalls = ({ runs }: RunRecorder) =>
    runs.filter((run) => run.run_type === 'llm').map(({ inputs, outputs }) => ({ inputs, outputs }));

  const { tracer, recorder } = setUp();
  await wrapAISDK(ai).generateText(options());
  const wrapped = modelCalls(recorder);
  recorder.clear();
  await ai.generateText({ ...options(), experimental_telemetry: { isEnabled: true, tracer } });
  expect(wrapped).toHaveLength(2);
  expect(modelCalls(recorder)).toEqual(wrapped);
});

const calls = (key: string) => JSON.stringify([{ toolCallId: 'c1', toolName: 'weather', [key]: '{"city":"Cork"}' }]);

test.each([
  ['text', { 'ai.response.text': 'Rain.' }, { content: 'Rain.' }],
  ['text (3)', { 'ai.result.text': 'Rain.', 'ai.finishReason': 'stop' }, { content: 'Rain.', finish_reason: 'stop' }],
  ['no text', { 'ai.response.text': '', 'ai.response.finishReason': 'other' }, { finish_reason: 'other' }],
  ['reasoning', { 'ai.response.reasoning': 'hm' }, { reasoning: 'hm' }],
  ['tool calls (3)', { 'ai.result.toolCalls': calls('args') }, { tool_calls: [CALL] }],
  ['tool calls (4)', { 'ai.response.toolCalls': calls('args') }, { tool_calls: [CALL] }],
  ['tool calls (5)', { 'ai.response.toolCalls': calls('input') }, { tool_calls: [CALL] }],
  [
    'files',
    { 'ai.response.files': `[{"type":"file","mediaType":"image/png","data":"${IMAGE_BASE64}"}]` },
    { files: [PNG] },
  ],
  ['the text of an object', { 'ai.response.object': '{"rain":true}' }, { content: '{"rain":true}' }],
])('the answer of a model has %s', (_, attributes, expected) => {
  const run = model(attributes);
  expect(run.outputs).toEqual({ messages: [{ role: 'assistant', ...expected }] });
  expect(Object.keys(run.metadata).filter((key) => key in attributes)).toEqual([]);
});

const V4 = { promptTokens: 20, completionTokens: 9 };
const V5 = { inputTokens: 20, outputTokens: 9 };
const V6 = { inputTokens: 100, outputTokens: 9, inputTokenDetails: { noCacheTokens: 20, cacheReadTokens: 50 } };
const details6 = { noCacheTokens: 5, cacheReadTokens: 8, cacheWriteTokens: 7 };
const reasoning6 = { reasoningTokens: 3, outputTokenDetails: { reasoningTokens: 3 } };

/** Provider metadata of versions 4 and 5. */
const OPENAI4 = { openai: { reasoningTokens: 3, cachedPromptTokens: 8 } };
const ANTHROPIC4 = { anthropic: { cacheCreationInputTokens: 30, cacheReadInputTokens: 50 } };
const counted = { input_tokens: 20, output_tokens: 9, cache_read_input_tokens: 50, cache_creation_input_tokens: 30 };
const ANTHROPIC5 = { anthropic: { cacheCreationInputTokens: 30, usage: counted } };

type Counts = [input: number | null, output: number, total: number | null, ...details: (object | null)[]];
const OF_ANTHROPIC: Counts = [100, 9, 109, { cache_read: 50, cache_creation: 30 }, null];
const OF_OPENAI: Counts = [20, 9, 29, { cache_read: 8 }, { reasoning: 3 }];

test.each<[string, object, Counts, (object | string)?]>([
  ['version 4', V4, OF_OPENAI, OPENAI4],
  ['version 5', { ...V5, reasoningTokens: 3, cachedInputTokens: 8 }, OF_OPENAI],
  ['a total', { ...V5, totalTokens: 30 }, [20, 9, 30, null, null]],
  [
    'version 6',
    { ...V5, inputTokenDetails: details6, cachedInputTokens: 8, ...reasoning6 },
    [20, 9, 29, { cache_read: 8, cache_creation: 7 }, { reasoning: 3 }],
  ],
  ['Anthropic in 4, without cached tokens in the input', V4, OF_ANTHROPIC, ANTHROPIC4],
  ['Anthropic in 5', { ...V5, totalTokens: 29, cachedInputTokens: 50 }, OF_ANTHROPIC, ANTHROPIC5],
  ['Anthropic in 6, with cached tokens in the input', V6, OF_ANTHROPIC, ANTHROPIC5],
  ['an object of Anthropic in 6, with the names of 4', { ...V4, promptTokens: 100 }, OF_ANTHROPIC, ANTHROPIC5],
  ['invalid values', { ...V4, promptTokens: Number.NaN }, [null, 9, null, null, null], '{"op'],
])('tokens are counted with %s', (_, usage, expected, providers = {}) => {
  const metadata = typeof providers === 'string' ? providers : JSON.stringify(providers);
  const { outputs } = model({ ...flat('ai.usage', usage), 'ai.response.providerMetadata': metadata });
  const names = ['input_tokens', 'output_tokens', 'total_tokens', 'input_token_details', 'output_token_details'];
  expect(names.map((name) => outputs.usage_metadata[name] ?? null)).toEqual(expected);
});

describe('metadata of a call', () => {
  test.each(['ai.telemetry.metadata', 'ai.settings.context'])(
    'in %s becomes metadata and tags of the run',
    (prefix) => {
      const ids = { userId: 'ann', sessionId: 's1', conversationId: 'c1' };
      const attributes = { ...flat(prefix, { tier: 'gold', a: { b: 1 }, ...ids }), [`${prefix}.tags`]: ['a', 'b'] };
      expectRun(mapped({ 'ai.operationId': 'ai.generateText', ...attributes }), {
        tags: ['a', 'b'],
        metadata: { tier: 'gold', 'a.b': 1, user_id: 'ann', thread_id: 's1', ...ids },
      });
    },
  );

  test('does not replace fields of the call, and may have the name of a prototype', () => {
    const own = { 'ai.telemetry.metadata.ls_model_name': 'mine', 'ai.telemetry.metadata.__proto__': 'x' };
    const { metadata } = model({ 'ai.model.id': 'gpt', ...own });
    expect(metadata.ls_model_name).toBe('gpt');
    expect(Object.entries(metadata)).toContainEqual(['__proto__', 'x']);
  });
});

describe('beside the GenAI conventions (7)', () => {
  const testCall = spanTest('gen_ai.operation.name');

  testCall('attributes of the AI SDK add details', 'chat', 'llm', [
    ['', 'chat', 'metadata/ls_model_type'],
    ['gen_ai.usage.input_tokens', 20, 'usage/input_tokens'],
    ['gen_ai.usage.output_tokens', 9, 'usage/output_tokens'],
    ['', 29, 'usage/total_tokens'],
    ['ai.usage.outputTokenDetails.reasoningTokens', 3, 'usage/output_token_details/reasoning'],
    ['gen_ai.client.operation.time_to_first_chunk', 0.5, 'metadata/gen_ai.client.operation.time_to_first_chunk'],
    ['', [{ name: 'new_token', time: '1970-01-01T00:00:01.500000Z' }], 'events'],
    ['ai.prompt.toolChoice', '{"type":"auto"}', 'params/tool_choice', { type: 'auto' }],
    ['ai.schema', '{"type":"object"}', 'params/response_format/schema', { type: 'object' }],
    ['ai.settings.context.userId', 'ann', 'metadata/user_id metadata/userId'],
    ['ai.settings.context.threadId', 't1', 'metadata/thread_id metadata/threadId'],
    ['ai.settings.context.tags', ['a'], 'tags'],
    ['ai.request.headers.authorization', 'Bearer hush'],
  ]);

  testCall('embeddings have their values', 'embeddings', 'embedding', [
    ['', 'embedding', 'metadata/ls_model_type'],
    ['ai.values', ['"a"'], 'inputs/values', ['a']],
    ['ai.embeddings', ['[1,2]'], 'outputs/embeddings', [{ dimensions: 2 }]],
  ]);

  testCall('rankings have their values', 'rerank', 'retriever', [
    ['ai.documents', ['"a"'], 'inputs/documents', ['a']],
    ['ai.ranking', ['{"index":0}'], 'outputs/ranking', [{ index: 0 }]],
  ]);

  testCall('speech has its messages only', 'ai.generateSpeech', 'chain', [
    ['gen_ai.input.messages', '[{"role":"user"}]', 'inputs/messages', [{ role: 'user' }]],
    ['ai.request.text', 'Hello.'],
  ]);
});

describe('the time to the first chunk', () => {
  const first = (time: string) => ({ name: 'new_token', time });

  test('becomes an event with microseconds', () => {
    const generated = model({ 'ai.response.msToFirstChunk': 12.5 });
    expect(generated.events).toEqual([first('1970-01-01T00:00:01.012500Z')]);
    const stream = mapped({ 'ai.operationId': 'ai.streamObject.doStream', 'ai.stream.msToFirstChunk': 3 });
    expect(stream.events).toEqual([first('1970-01-01T00:00:01.003000Z')]);
  });

  // Version 7 adds the event at the end of the call.
  test('in an attribute and an event becomes one event', () => {
    const attributes = { 'ai.response.msToFirstChunk': 12.5 };
    const events: SpanLike['events'] = [
      { name: 'ai.stream.firstChunk', time: [1, 90_000_000], attributes },
      { name: 'ai.stream.finish', time: [1, 95_000_000] },
    ];
    expect(mapped({ 'ai.operationId': 'ai.streamText.doStream', ...attributes }, { events }).events).toEqual([
      first('1970-01-01T00:00:01.012500Z'),
      { name: 'ai.stream.finish', time: '1970-01-01T00:00:01.095000Z' },
    ]);
  });
});

// `onAbort` in packages/otel/src of vercel/ai, and streamText of versions 5 and 6, end the spans as they began.
describe('a streamed call without anything of an answer', () => {
  const begun = { 'ai.operationId': 'ai.streamText', 'ai.model.id': 'gpt', 'gen_ai.output.type': 'json' };
  const endReason = (attributes: Attributes, droppedAttributesCount = 0, code = 0) =>
    mapped({ ...begun, ...attributes }, { droppedAttributesCount, status: { code } }).endReason;

  test('is cancelled if no attribute was dropped or renamed, and it has not failed', () => {
    expect([endReason({}), endReason({ 'ai.operationId': 'ai.streamText.doStream' })]).toEqual(
      Array(2).fill('cancelled'),
    );
    expect([endReason({}, 1), endReason({}, 0, 2), endReason({ 'ai.model.id': undefined })]).toEqual(Array(3));
  });

  test.each([
    ...['ai.response.finishReason', 'ai.usage.outputTokens', 'gen_ai.response.finish_reasons', 'ai.result.text'],
    ...['gen_ai.output.messages', 'gen_ai.usage.output_tokens', 'output.value', 'langfuse.observation.output'],
  ])('is not cancelled with %s', (name) => expect(endReason({ [name]: 'stop' })).toBeUndefined());

  // The spans of the others fail if they are aborted.
  test.each(['ai.generateText', 'ai.generateText.doGenerate', 'ai.streamObject', 'ai.toolCall', undefined])(
    'is not cancelled if it is %s',
    (operation) => {
      expect(endReason({ 'ai.operationId': operation, 'gen_ai.operation.name': 'chat' })).toBeUndefined();
    },
  );

  test.each([
    [0, 'answered', undefined],
    [130, 'answered', undefined],
    [0, 'aborted', 'cancelled'],
  ])('of the SDK, with %i entries of metadata, that is %s has the end reason %s', async (entries, end, reason) => {
    const { tracer, recorder } = setUp();
    const controller = new AbortController();
    const usage = { inputTokens: {}, outputTokens: {} };
    const stream = new ReadableStream({
      start(parts) {
        for (const part of ['text-start', 'text-delta', 'text-end'])
          parts.enqueue({ type: part, id: '1', delta: 'Rain.' });
        // As the body of a request does. Some versions of Node wait for it.
        controller.signal.addEventListener('abort', () => parts.error(controller.signal.reason));
        if (end === 'answered') parts.enqueue({ type: 'finish', finishReason: { unified: 'stop' }, usage });
        if (end === 'answered') parts.close();
      },
    });
    const metadata = Object.fromEntries(Array(entries).fill(1).entries());
    const { textStream } = ai.streamText({
      model: new MockLanguageModelV3({ doStream: { stream } }),
      prompt: 'Rain?',
      abortSignal: controller.signal,
      experimental_telemetry: { isEnabled: true, metadata, tracer },
    });
    for await (const _ of textStream) if (end === 'aborted') controller.abort();
    expect(runNamed(recorder, 'ai.streamText').extra?.runspan_end_reason).toBe(reason);
  });
});
