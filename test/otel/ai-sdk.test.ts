// After https://ai-sdk.dev/docs/ai-sdk-core/telemetry#collected-data, and the sources of `ai` 4 to 6 and `@ai-sdk/otel`.
import { describe, expect, test } from 'vitest';
import { aiSdk, aiSdkBesideGenAi } from '../../src/otel/conventions/ai-sdk.ts';
import type { Attributes } from '../../src/otel/conventions/values.ts';
import type { SpanLike } from '../../src/otel.ts';
import { mapped } from './mapped.ts';

const model = (attributes: Attributes) => mapped({ 'ai.operationId': 'ai.generateText.doGenerate', ...attributes });
const around = (attributes: Attributes) => mapped({ 'ai.operationId': 'ai.generateText', ...attributes });

test.each([
  ['chain', 'ai.generateText, ai.streamText, ai.generateObject, ai.streamObject, ai.embed, ai.embedMany'],
  ['chain', 'ai.rerank, ai.workflowAgent.stream, something new'],
  ['llm', 'ai.generateText.doGenerate, ai.streamText.doStream, ai.generateObject.doGenerate'],
  ['llm', 'ai.streamObject.doStream, ai.generateSpeech, ai.transcribe'],
  ['embedding', 'ai.embed.doEmbed, ai.embedMany.doEmbed'],
  ['retriever', 'ai.rerank.doRerank'],
  ['tool', 'ai.toolCall'],
])('a run has the type %s for the operations %s', (runType, kinds) => {
  for (const kind of kinds.split(', '))
    expect([kind, mapped({ 'ai.operationId': kind }).runType]).toEqual([kind, runType]);
});

describe('the name of a run', () => {
  const named = { 'ai.telemetry.functionId': 'forecast', 'ai.toolCall.name': 'weather' };

  test.each([
    ['of a function is its function id', 'ai.generateText', {}, 'forecast'],
    [
      'is `ls_run_name` of the metadata if set',
      'ai.streamText',
      { 'ai.telemetry.metadata.ls_run_name': 'mine' },
      'mine',
    ],
    ['of a model call is the name of its span', 'ai.streamText.doStream', {}, undefined],
    ['of a tool is the name of the tool', 'ai.toolCall', { 'ai.telemetry.metadata.ls_run_name': 'mine' }, 'weather'],
  ])('%s', (_, operation, more, name) => {
    const attributes = { 'ai.operationId': operation, ...named, ...more };
    expect(mapped(attributes).name).toBe(name);
    expect(mapped(attributes).metadata.function_id).toBe('forecast');
  });

  test('and its project: `ls_project_name` of the metadata sets the project', () => {
    const attributes = { 'ai.operationId': 'ai.embed', 'ai.telemetry.metadata.ls_project_name': 'shop' };
    expect(mapped(attributes).project).toBe('shop');
  });
});

test('a model call has its messages, answer, tokens, model and settings', () => {
  const run = model({
    'operation.name': 'ai.generateText.doGenerate forecast',
    'resource.name': 'forecast',
    'ai.telemetry.functionId': 'forecast',
    'ai.model.provider': 'openai.chat',
    'ai.model.id': 'gpt',
    'ai.settings.maxOutputTokens': 100,
    'ai.settings.temperature': 0.5,
    'ai.settings.topP': 0.9,
    'ai.settings.topK': 4,
    'ai.settings.frequencyPenalty': 0.1,
    'ai.settings.presencePenalty': 0.2,
    'ai.settings.seed': 7,
    'ai.settings.stopSequences': ['END'],
    'ai.settings.maxRetries': 2,
    'ai.request.headers.authorization': 'Bearer hush',
    'ai.prompt.messages': '[{"role":"user","content":[{"type":"text","text":"Rain?"}]}]',
    'ai.prompt.tools': ['{"type":"function","name":"weather"}'],
    'ai.prompt.toolChoice': '{"type":"auto"}',
    'gen_ai.system': 'openai.chat',
    'gen_ai.request.model': 'gpt',
    'gen_ai.request.temperature': 0.25,
    'gen_ai.request.max_tokens': 100,
    'gen_ai.request.top_p': 0.9,
    'gen_ai.request.top_k': 4,
    'gen_ai.request.frequency_penalty': 0.1,
    'gen_ai.request.presence_penalty': 0.2,
    'gen_ai.request.stop_sequences': ['END'],
    'ai.response.finishReason': 'stop',
    'ai.response.text': 'It rains.',
    'ai.response.id': 'chatcmpl-1',
    'ai.response.model': 'gpt-2026',
    'ai.usage.inputTokens': 20,
    'ai.usage.outputTokens': 9,
    'ai.usage.totalTokens': 29,
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.response.id': 'chatcmpl-1',
    'gen_ai.response.model': 'gpt-2026',
    'gen_ai.usage.input_tokens': 20,
    'gen_ai.usage.output_tokens': 9,
  });
  const usage = { input_tokens: 20, output_tokens: 9, total_tokens: 29 };
  expect(run.inputs).toEqual({ messages: [{ role: 'user', content: 'Rain?' }] });
  expect(run.outputs).toEqual({
    messages: [{ role: 'assistant', content: 'It rains.', finish_reason: 'stop' }],
    usage_metadata: usage,
  });
  expect(run.metadata).toEqual({
    'ai.operationId': 'ai.generateText.doGenerate',
    'ai.response.id': 'chatcmpl-1',
    function_id: 'forecast',
    ls_provider: 'openai',
    ls_model_name: 'gpt',
    ls_model_type: 'chat',
    response_model: 'gpt-2026',
    finish_reasons: ['stop'],
    // `prepareStep` has changed the temperature of this step.
    ls_temperature: 0.25,
    ls_max_tokens: 100,
    ls_stop: ['END'],
    ls_invocation_params: {
      model: 'gpt',
      temperature: 0.25,
      max_tokens: 100,
      stop: ['END'],
      top_p: 0.9,
      top_k: 4,
      frequency_penalty: 0.1,
      presence_penalty: 0.2,
      seed: 7,
      tools: [{ type: 'function', name: 'weather' }],
      tool_choice: { type: 'auto' },
      maxRetries: 2,
    },
    usage_metadata: usage,
  });
});

describe('messages', () => {
  const messages = (...given: object[]) => model({ 'ai.prompt.messages': JSON.stringify(given) }).inputs.messages;
  const parts = (...content: object[]) => messages({ role: 'user', content })[0].content;

  test('with text content keep their fields', () => {
    expect(messages({ role: 'system', content: 'Be brief.', providerOptions: { a: 1 } })).toEqual([
      { role: 'system', content: 'Be brief.', providerOptions: { a: 1 } },
    ]);
  });

  test('have tool calls, and each tool result becomes its own message', () => {
    const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'weather' };
    const result = { type: 'tool-result', toolCallId: 'c1', toolName: 'weather' };
    const told = (args: unknown) => ({
      id: 'c1',
      type: 'function',
      function: { name: 'weather', arguments: args },
    });
    const answer = (content: unknown) => ({ role: 'tool', tool_call_id: 'c1', name: 'weather', content });
    expect(
      messages(
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'Wait.' },
            { ...call, args: { city: 'Cork' } },
          ],
        },
        { role: 'tool', content: [{ ...result, result: 'rain' }] },
        { role: 'assistant', content: [{ ...call, input: '{"city":"Cork"}' }] },
        {
          role: 'tool',
          content: [
            { ...result, output: { type: 'text', value: 'rain' } },
            { ...result, output: { type: 'json', value: { rain: true } } },
            { ...result, output: { type: 'execution-denied', reason: 'no' } },
          ],
        },
        { role: 'assistant', content: [call, { ...result, output: { type: 'text', value: 'by the provider' } }] },
      ),
    ).toEqual([
      { role: 'assistant', content: 'Wait.', tool_calls: [told('{"city":"Cork"}')] },
      answer('rain'),
      { role: 'assistant', tool_calls: [told('{"city":"Cork"}')] },
      answer('rain'),
      answer({ rain: true }),
      answer({ type: 'execution-denied', reason: 'no' }),
      { role: 'assistant', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather' } }] },
      answer('by the provider'),
    ]);
  });

  const image = (url: string) => ({ type: 'image_url', image_url: { url } });
  test.each([
    ['reasoning', { type: 'reasoning', text: 'hm' }, { type: 'reasoning', reasoning: 'hm' }],
    ['an image (4)', { type: 'image', image: 'iVBO', mimeType: 'image/png' }, image('data:image/png;base64,iVBO')],
    ['an image URL', { type: 'image', image: 'https://a.example/b' }, image('https://a.example/b')],
    [
      'an image as a file (5)',
      { type: 'file', mediaType: 'image/png', data: 'iVBO' },
      image('data:image/png;base64,iVBO'),
    ],
    [
      'bytes of a buffer',
      { type: 'image', image: { type: 'Buffer', data: [137, 80, 78] }, mediaType: 'image/png' },
      image('data:image/png;base64,iVBO'),
    ],
    [
      'bytes of an array',
      { type: 'file', data: { 0: 137, 1: 80, 2: 78 }, mediaType: 'image/png' },
      image('data:image/png;base64,iVBO'),
    ],
    [
      'typed data (7)',
      { type: 'file', data: { type: 'data', data: 'iVBO' }, mediaType: 'image/png' },
      image('data:image/png;base64,iVBO'),
    ],
    [
      'a typed URL (7)',
      { type: 'file', data: { type: 'url', url: 'https://a.example/b' }, mediaType: 'image/png' },
      image('https://a.example/b'),
    ],
    [
      'another file',
      { type: 'file', mediaType: 'application/pdf', filename: 'a.pdf', data: 'JVBE' },
      {
        type: 'file',
        media_type: 'application/pdf',
        filename: 'a.pdf',
        data: 'data:application/pdf;base64,JVBE',
      },
    ],
    [
      'a file stored by the provider',
      { type: 'file', mediaType: 'application/pdf', data: { openai: 'file-1' } },
      { type: 'file', media_type: 'application/pdf', data: { openai: 'file-1' } },
    ],
    ['a part of unknown type', { type: 'source', url: 'b' }, { type: 'source', url: 'b' }],
  ])('have %s', (_, part, expected) => {
    expect(parts({ type: 'text', text: 'See:' }, part)[1]).toEqual(expected);
  });

  test('that are invalid stay in the metadata', () => {
    const run = model({ 'ai.prompt.messages': '[{"role"' });
    expect(run.inputs).toBeUndefined();
    expect(run.metadata['ai.prompt.messages']).toBe('[{"role"');
  });

  test('may be structured values instead of JSON text', () => {
    const given = [{ role: 'user', content: [{ type: 'text', text: 'a' }] }];
    expect(model({ 'ai.prompt.messages': given }).inputs).toEqual({ messages: [{ role: 'user', content: 'a' }] });
  });
});

describe('the prompt of a function', () => {
  test.each([
    ['has text', { system: 'Be brief.', prompt: 'Rain?' }, { system: 'Be brief.', prompt: 'Rain?' }],
    [
      'has messages',
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'Rain?' }] }] },
      { messages: [{ role: 'user', content: 'Rain?' }] },
    ],
    [
      'has messages for a text',
      { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Rain?' }] }] },
      { prompt: [{ role: 'user', content: 'Rain?' }] },
    ],
  ])('%s', (_, prompt, expected) => {
    const { inputs } = mapped({ 'ai.operationId': 'ai.generateText', 'ai.prompt': JSON.stringify(prompt) });
    expect(inputs).toEqual(expected);
  });
});

describe('the answer', () => {
  const calls = (key: string) => JSON.stringify([{ toolCallId: 'c1', toolName: 'weather', [key]: '{"city":"Cork"}' }]);
  const toolCalls = [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Cork"}' } }];

  test.each([
    ['text', { 'ai.response.text': 'Rain.' }, { content: 'Rain.' }],
    [
      'text of version 3',
      { 'ai.result.text': 'Rain.', 'ai.finishReason': 'stop' },
      { content: 'Rain.', finish_reason: 'stop' },
    ],
    ['no text', { 'ai.response.text': '', 'ai.response.finishReason': 'other' }, { finish_reason: 'other' }],
    ['reasoning', { 'ai.response.reasoning': 'hm' }, { reasoning: 'hm' }],
    ['calls of tools (4)', { 'ai.response.toolCalls': calls('args') }, { tool_calls: toolCalls }],
    ['calls of tools (5)', { 'ai.response.toolCalls': calls('input') }, { tool_calls: toolCalls }],
    ['calls of tools (3)', { 'ai.result.toolCalls': calls('args') }, { tool_calls: toolCalls }],
    [
      'files',
      { 'ai.response.files': '[{"type":"file","mediaType":"image/png","data":"iVBO"}]' },
      { files: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } }] },
    ],
    ['the text of an object', { 'ai.response.object': '{"rain":true}' }, { content: '{"rain":true}' }],
  ])('of a model has %s', (_, attributes, expected) => {
    const run = model(attributes);
    expect(run.outputs).toEqual({ messages: [{ role: 'assistant', ...expected }] });
    for (const key of Object.keys(attributes)) expect(run.metadata).not.toHaveProperty([key]);
  });

  test.each([
    ['ai.response.object', '{"rain":true}', { rain: true }],
    ['ai.result.object', '{"rain":true}', { rain: true }],
    ['ai.response.object', '["a","b"]', { output: ['a', 'b'] }],
    ['ai.response.object', '"sunny"', { output: 'sunny' }],
  ])('of a function is the object in %s: %s', (attribute, value, expected) => {
    expect(mapped({ 'ai.operationId': 'ai.generateObject', [attribute]: value }).outputs).toEqual(expected);
  });
});

describe('tokens', () => {
  const usage = (attributes: Attributes) => model(attributes).outputs?.usage_metadata;
  const anthropic = (more: object) => JSON.stringify({ anthropic: { cacheCreationInputTokens: 30, ...more } });

  test.each([
    [
      'of 4',
      {
        'ai.usage.promptTokens': 20,
        'ai.usage.completionTokens': 9,
        'ai.response.providerMetadata': '{"openai":{"reasoningTokens":3,"cachedPromptTokens":8}}',
      },
      [20, 9, 29, { cache_read: 8 }, { reasoning: 3 }],
    ],
    [
      'of 5',
      {
        'ai.usage.inputTokens': 20,
        'ai.usage.outputTokens': 9,
        'ai.usage.totalTokens': 30,
        'ai.usage.reasoningTokens': 3,
        'ai.usage.cachedInputTokens': 8,
      },
      [20, 9, 30, { cache_read: 8 }, { reasoning: 3 }],
    ],
    [
      'of 6',
      {
        'ai.usage.inputTokens': 20,
        'ai.usage.inputTokenDetails.noCacheTokens': 5,
        'ai.usage.inputTokenDetails.cacheReadTokens': 8,
        'ai.usage.inputTokenDetails.cacheWriteTokens': 7,
        'ai.usage.cachedInputTokens': 8,
        'ai.usage.outputTokens': 9,
        'ai.usage.outputTokenDetails.reasoningTokens': 3,
        'ai.usage.reasoningTokens': 3,
      },
      [20, 9, 29, { cache_read: 8, cache_creation: 7 }, { reasoning: 3 }],
    ],
    [
      'of Anthropic in 4, without cached tokens in the input',
      {
        'ai.usage.promptTokens': 20,
        'ai.usage.completionTokens': 9,
        'ai.response.providerMetadata': anthropic({ cacheReadInputTokens: 50 }),
      },
      [100, 9, 109, { cache_read: 50, cache_creation: 30 }, undefined],
    ],
    [
      'of Anthropic in 5',
      {
        'ai.usage.inputTokens': 20,
        'ai.usage.outputTokens': 9,
        'ai.usage.totalTokens': 29,
        'ai.usage.cachedInputTokens': 50,
        'ai.response.providerMetadata': anthropic({ usage: { input_tokens: 20, cache_read_input_tokens: 50 } }),
      },
      [100, 9, 109, { cache_read: 50, cache_creation: 30 }, undefined],
    ],
    [
      'of Anthropic in 6, with cached tokens in the input',
      {
        'ai.usage.inputTokens': 100,
        'ai.usage.inputTokenDetails.noCacheTokens': 20,
        'ai.usage.inputTokenDetails.cacheReadTokens': 50,
        'ai.usage.inputTokenDetails.cacheWriteTokens': 30,
        'ai.usage.outputTokens': 9,
        'ai.response.providerMetadata': anthropic({ usage: { input_tokens: 20, cache_read_input_tokens: 50 } }),
      },
      [100, 9, 109, { cache_read: 50, cache_creation: 30 }, undefined],
    ],
    [
      'of an object from Anthropic in 6, under the names of 4',
      {
        'ai.usage.promptTokens': 100,
        'ai.usage.completionTokens': 9,
        'ai.response.providerMetadata': anthropic({ usage: { input_tokens: 20, cache_read_input_tokens: 50 } }),
      },
      [100, 9, 109, { cache_read: 50, cache_creation: 30 }, undefined],
    ],
    [
      'with invalid values',
      { 'ai.usage.promptTokens': Number.NaN, 'ai.usage.completionTokens': 9, 'ai.response.providerMetadata': '{"op' },
      [undefined, 9, 9, undefined, undefined],
    ],
  ])('%s', (_, attributes, [input, output, total, read, written]) => {
    const expected = {
      input_tokens: input,
      output_tokens: output,
      total_tokens: total,
      input_token_details: read,
      output_token_details: written,
    };
    expect(usage(attributes)).toEqual(JSON.parse(JSON.stringify(expected)));
  });

  test('of a function repeat those of its model calls and stay in the metadata', () => {
    const run = around({ 'ai.usage.inputTokens': 40, 'ai.response.text': 'Rain.' });
    expect(run.outputs).toEqual({ messages: [{ role: 'assistant', content: 'Rain.' }] });
    expect(run.metadata).toMatchObject({ 'ai.usage.inputTokens': 40 });
    expect(run.metadata).not.toHaveProperty('usage_metadata');
  });
});

test('a tool has its arguments and result', () => {
  const run = (args: string, result: string) =>
    mapped({
      'ai.operationId': 'ai.toolCall',
      'ai.toolCall.name': 'weather',
      'ai.toolCall.id': 'c1',
      'ai.toolCall.args': args,
      'ai.toolCall.result': result,
    });
  expect(run('{"city":"Cork"}', '{"rain":true}')).toMatchObject({
    name: 'weather',
    inputs: { city: 'Cork' },
    outputs: { rain: true },
    metadata: { tool_call_id: 'c1' },
  });
  expect(run('"{\\"city\\":\\"Cork\\"}"', '12')).toMatchObject({ inputs: { city: 'Cork' }, outputs: { output: 12 } });
  const later = { 'ai.operationId': 'ai.toolCall', 'ai.toolCall.input': '{"a":1}', 'ai.toolCall.output': '"b"' };
  expect(mapped(later)).toMatchObject({ inputs: { a: 1 }, outputs: { output: 'b' } });
});

test.each([
  ['ai.embed', { 'ai.value': '"a"', 'ai.embedding': '[0.5,0.25,1]' }, { value: 'a' }, [{ dimensions: 3 }]],
  [
    'ai.embedMany.doEmbed',
    { 'ai.values': ['"a"', '"b"'], 'ai.embeddings': ['[0.5]', '[]'], 'ai.usage.tokens': 4 },
    { values: ['a', 'b'] },
    [{ dimensions: 1 }, { dimensions: 0 }],
  ],
])('%s has its values and the lengths of the vectors', (operation, attributes, inputs, embeddings) => {
  const run = mapped({ 'ai.operationId': operation, ...attributes });
  expect(run.inputs).toEqual(inputs);
  expect(run.outputs.embeddings).toEqual(embeddings);
  const total = operation === 'ai.embed' ? undefined : { input_tokens: 4, total_tokens: 4 };
  expect(run.outputs.usage_metadata).toEqual(total);
  expect(run.metadata).not.toHaveProperty(['ai.embeddings']);
});

test.each([
  [
    [[0.5, 0.25], [1]],
    [{ dimensions: 2 }, { dimensions: 1 }],
  ],
  [[0.5, 0.25], [{ dimensions: 2 }]],
  [
    ['[ ]', '[0.5]'],
    [{ dimensions: 0 }, { dimensions: 1 }],
  ],
])('vectors %j are recorded as their lengths', (vectors, expected) => {
  expect(mapped({ 'ai.operationId': 'ai.embedMany', 'ai.embeddings': vectors }).outputs.embeddings).toEqual(expected);
});

test('vectors are not in the metadata if other attributes set the outputs', () => {
  const attributes = { 'ai.operationId': 'ai.embed', 'runspan.outputs': '{"a":1}', 'ai.embedding': '[0.25]' };
  expect(mapped(attributes).outputs).toEqual({ a: 1 });
  expect(JSON.stringify(mapped(attributes))).not.toContain('0.25');
});

test('a ranking has its documents and scores', () => {
  const run = mapped({
    'ai.operationId': 'ai.rerank.doRerank',
    'ai.documents': ['"a cat"', '{"text":"a dog"}'],
    'ai.ranking.type': 'text',
    'ai.ranking': ['{"index":1,"relevanceScore":0.9}'],
  });
  expect(run.inputs).toEqual({ documents: ['a cat', { text: 'a dog' }] });
  expect(run.outputs).toEqual({ ranking: [{ index: 1, relevanceScore: 0.9 }] });
});

test('the schema of an object becomes the response format', () => {
  const run = mapped({
    'ai.operationId': 'ai.generateObject',
    'ai.schema': '{"type":"object"}',
    'ai.schema.name': 'report',
    'ai.schema.description': 'The weather.',
    'ai.settings.output': 'object',
    'ai.settings.mode': 'json',
  });
  expect(run.metadata.ls_invocation_params).toEqual({
    response_format: { type: 'object', schema: { type: 'object' }, name: 'report', description: 'The weather.' },
    mode: 'json',
  });
});

describe('metadata of a call', () => {
  test.each(['ai.telemetry.metadata', 'ai.settings.context'])('in %s becomes metadata of the run', (prefix) => {
    const { metadata } = around({
      [`${prefix}.tier`]: 'gold',
      [`${prefix}.a.b`]: 1,
      [`${prefix}.userId`]: 'ann',
      [`${prefix}.sessionId`]: 's1',
      [`${prefix}.conversationId`]: 'c1',
    });
    expect(metadata).toEqual({
      'ai.operationId': 'ai.generateText',
      tier: 'gold',
      'a.b': 1,
      user_id: 'ann',
      userId: 'ann',
      thread_id: 's1',
      sessionId: 's1',
      conversationId: 'c1',
    });
  });

  test.each(['ai.telemetry.metadata', 'ai.settings.context'])('in %s may contain tags', (prefix) => {
    expect(around({ [`${prefix}.tags`]: ['a', 'b'] }).tags).toEqual(['a', 'b']);
  });

  test('does not replace fields of the call', () => {
    const { metadata } = around({ 'ai.model.id': 'gpt', 'ai.telemetry.metadata.ls_model_name': 'mine' });
    expect(metadata.ls_model_name).toBe('gpt');
  });

  test('may have the name of a prototype', () => {
    const { metadata } = mapped({ 'ai.operationId': 'ai.embed', 'ai.telemetry.metadata.__proto__': 'x' });
    expect(Object.entries(metadata)).toContainEqual(['__proto__', 'x']);
  });
});

test('request headers are not recorded', () => {
  expect(around({ 'ai.request.headers.authorization': 'Bearer hush' }).metadata).toEqual({
    'ai.operationId': 'ai.generateText',
  });
});

test('the time to the first chunk becomes an event with microseconds', () => {
  const { events } = model({ 'ai.response.msToFirstChunk': 12.5 });
  expect(events).toEqual([{ name: 'new_token', time: '1970-01-01T00:00:01.012500Z' }]);
  const stream = mapped({ 'ai.operationId': 'ai.streamObject.doStream', 'ai.stream.msToFirstChunk': 3 });
  expect(stream.events).toEqual([{ name: 'new_token', time: '1970-01-01T00:00:01.003000Z' }]);
});

describe('beside the GenAI conventions (7)', () => {
  const chat = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'gpt' };

  test('an agent step is a chain, and an agent has its name', () => {
    expect(mapped({ 'gen_ai.operation.name': 'agent_step' }).runType).toBe('chain');
    const agent = { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'forecast' };
    expect(mapped({ ...agent, 'gen_ai.request.model': 'gpt' })).toMatchObject({ runType: 'chain', name: 'forecast' });
  });

  test('attributes of the AI SDK add details', () => {
    const run = mapped({
      ...chat,
      'gen_ai.usage.input_tokens': 20,
      'gen_ai.usage.output_tokens': 9,
      'ai.usage.outputTokenDetails.reasoningTokens': 3,
      'gen_ai.client.operation.time_to_first_chunk': 0.0125,
      'ai.prompt.toolChoice': '{"type":"auto"}',
      'ai.schema': '{"type":"object"}',
      'ai.settings.context.userId': 'ann',
      'ai.settings.context.tags': ['a'],
      'ai.request.headers.authorization': 'Bearer hush',
    });
    expect(run.outputs.usage_metadata).toMatchObject({ input_tokens: 20, output_token_details: { reasoning: 3 } });
    expect(run.events).toEqual([{ name: 'new_token', time: '1970-01-01T00:00:01.012500Z' }]);
    expect(run.tags).toEqual(['a']);
    expect(run.metadata).toMatchObject({
      user_id: 'ann',
      ls_invocation_params: { tool_choice: { type: 'auto' }, response_format: { schema: { type: 'object' } } },
    });
    expect(JSON.stringify(run.metadata)).not.toContain('hush');
  });

  test('embeddings and rankings have their values', () => {
    const embedding = { 'gen_ai.operation.name': 'embeddings', 'ai.values': ['"a"'], 'ai.embeddings': ['[1,2]'] };
    expect(mapped(embedding)).toMatchObject({
      runType: 'embedding',
      inputs: { values: ['a'] },
      outputs: { embeddings: [{ dimensions: 2 }] },
    });
    const ranking = { 'gen_ai.operation.name': 'rerank', 'ai.documents': ['"a"'], 'ai.ranking': ['{"index":0}'] };
    expect(mapped(ranking)).toMatchObject({
      runType: 'retriever',
      inputs: { documents: ['a'] },
      outputs: { ranking: [{ index: 0 }] },
    });
  });

  test('speech and transcriptions have their messages only', () => {
    const run = mapped({
      'gen_ai.operation.name': 'ai.generateSpeech',
      'gen_ai.request.model': 'tts',
      'gen_ai.input.messages': '[{"role":"user","parts":[{"type":"text","content":"Hello."}]}]',
      'ai.request.text': 'Hello.',
    });
    expect(run.inputs).toEqual({ messages: [{ role: 'user', content: 'Hello.' }] });
    expect(run.metadata).not.toHaveProperty(['ai.request.text']);
  });
});

// Version 7 adds the event at the end of the call.
test('the time to the first chunk in an attribute and an event becomes one event', () => {
  const attributes = { 'ai.operationId': 'ai.streamText.doStream', 'ai.response.msToFirstChunk': 12.5 };
  const events: SpanLike['events'] = [
    { name: 'ai.stream.firstChunk', time: [1, 90_000_000], attributes: { 'ai.response.msToFirstChunk': 12.5 } },
    { name: 'ai.stream.finish', time: [1, 95_000_000] },
  ];
  expect(mapped(attributes, { events }).events).toEqual([
    { name: 'new_token', time: '1970-01-01T00:00:01.012500Z' },
    { name: 'ai.stream.finish', time: '1970-01-01T00:00:01.095000Z' },
  ]);
});

// `onAbort` in packages/otel/src of vercel/ai, and streamText of versions 5 and 6, end the spans without a finish reason.
describe('a call without a finish reason', () => {
  const endReason = (attributes: Attributes, scope = 'ai', code = 0) =>
    mapped(attributes, { instrumentationScope: { name: scope }, status: { code } }).metadata.end_reason;
  const genAi = (operation: string) => ({ 'gen_ai.operation.name': operation });

  test.each([
    'ai.generateText',
    'ai.streamText',
    'ai.streamText.doStream',
    'ai.generateText.doGenerate',
    'ai.generateObject',
    'ai.streamObject.doStream',
  ])('is cancelled if it is %s and has not failed', (operation) => {
    const attributes = { 'ai.operationId': operation };
    expect(endReason(attributes)).toBe('cancelled');
    expect(endReason({ ...attributes, 'ai.response.finishReason': 'stop' })).toBeUndefined();
    expect(endReason(attributes, 'ai', 2)).toBeUndefined();
  });

  test.each(['ai.toolCall', 'ai.embed', 'ai.embed.doEmbed', 'ai.rerank'])(
    'is not cancelled if it is %s',
    (operation) => {
      expect(endReason({ 'ai.operationId': operation })).toBeUndefined();
    },
  );

  test.each(['chat', 'invoke_agent'])('is cancelled if it is %s of version 7', (operation) => {
    expect(endReason(genAi(operation), 'gen_ai')).toBe('cancelled');
    expect(endReason({ ...genAi(operation), 'gen_ai.response.finish_reasons': ['stop'] }, 'gen_ai')).toBeUndefined();
  });

  test('is not cancelled if it is an agent step or a span of another library', () => {
    expect(endReason(genAi('chat'), 'openai')).toBeUndefined();
    expect(endReason(genAi('agent_step'), 'gen_ai')).toBeUndefined();
  });
});

describe('an invalid value affects only its own attribute', () => {
  const names = [aiSdk, aiSdkBesideGenAi].flatMap(({ inputs, outputs, usage, parameters, metadata, tags, times }) =>
    [inputs, outputs, usage, parameters, metadata, tags, times].flatMap((table = []) =>
      table.map(([attribute]) => attribute),
    ),
  );
  const wrong = [0, Number.NaN, true, '', '[{"role"', 'null', '[null,[]]', '{"messages":7}', {}, [], [null, 1], [{}]];

  test.each([...new Set(names)])('%s', (name) => {
    for (const value of [...wrong, new Uint8Array(2), { content: [{ type: 'file' }, null] }]) {
      const attributes = { 'ai.operationId': 'ai.streamText.doStream', 'ai.model.provider': 'openai', [name]: value };
      expect(() => mapped(attributes)).not.toThrow();
      expect(() => mapped({ 'gen_ai.operation.name': 'chat', [name]: value, [`${name}.b`]: value })).not.toThrow();
      if (!name.startsWith('ai.model')) expect(mapped(attributes).metadata.ls_provider).toBe('openai');
    }
  });
});
