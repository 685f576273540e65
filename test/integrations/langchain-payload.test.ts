// How the values that LangChain passes are recorded.
import { Document } from '@langchain/core/documents';
import {
  AIMessage,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages';
import { ChatPromptValue, ImagePromptValue, StringPromptValue } from '@langchain/core/prompt_values';
import { describe, expect, test } from 'vitest';
import { plainInputs, plainOutputs, toolInputs } from '#src/integrations/langchain/payload.ts';
import type { Fields } from '#src/payload/fields.ts';

const message = new HumanMessage('a');
const plain = { role: 'user', content: 'a' };
const cyclic: Fields = {};
cyclic.self = cyclic;
const base64 = 'A'.repeat(2_000);
const uriOf = (type: string) => `data:${type};base64,${base64}`;
const failed = { content: 'no', tool_call_id: 'c1', name: 'add', status: 'error' as const, artifact: { code: 2 } };
const call = { type: 'function', id: 'c1', function: { name: 'add', arguments: '{"a":1}' } };
const blocks = [{ type: 'text', text: 'a' }];

test.each<[string, object, Fields]>([
  ['a user', message, plain],
  ['a model', new AIMessage('a'), { role: 'assistant', content: 'a' }],
  ['the system', new SystemMessage('a'), { role: 'system', content: 'a' }],
  [
    'the developer',
    new SystemMessage({ content: 'a', additional_kwargs: { __openai_role__: 'developer' } }),
    { role: 'developer', content: 'a' },
  ],
  ['another role', new ChatMessage('a', 'critic'), { role: 'critic', content: 'a' }],
  ['a function', new FunctionMessage({ content: 'a', name: 'f' }), { role: 'function', name: 'f', content: 'a' }],
  ['a removal', new RemoveMessage({ id: 'm1' }), { role: 'remove', content: [], id: 'm1' }],
  [
    'a user with blocks',
    new HumanMessage({ content: blocks, name: 'ada', id: 'm1' }),
    { role: 'user', content: blocks, name: 'ada', id: 'm1' },
  ],
  ['a tool that failed', new ToolMessage({ ...failed }), { role: 'tool', ...failed }],
  [
    'a model that calls tools',
    new AIMessage({
      content: '',
      tool_calls: [{ id: 'c1', name: 'add', args: { a: 1 } }],
      invalid_tool_calls: [{ id: 'c2', name: 'add', args: '{"a":', error: 'no JSON' }],
    }),
    {
      role: 'assistant',
      content: '',
      tool_calls: [call],
      invalid_tool_calls: [expect.objectContaining({ id: 'c2', args: '{"a":' })],
    },
  ],
  [
    'a model whose arguments are not JSON',
    new AIMessage({ content: '', tool_calls: [{ id: 'c1', name: 'add', args: cyclic }] }),
    { role: 'assistant', content: '', tool_calls: [{ ...call, function: { name: 'add', arguments: cyclic } }] },
  ],
  [
    'a model with additional fields',
    new AIMessage({
      content: 'a',
      additional_kwargs: { refusal: 'no', reasoning_content: 'hm', parsed: { a: 1 }, __raw_response: {} },
    }),
    { role: 'assistant', content: 'a', refusal: 'no', reasoning: 'hm', additional_kwargs: { parsed: { a: 1 } } },
  ],
])('a message of %s is recorded in the form of models', (_, given, expected) => {
  expect(plainOutputs(given)).toEqual({ output: expected });
});

test.each<[string, object, object]>([
  [
    'LangChain',
    { type: 'image', mimeType: 'image/png', data: base64 },
    { type: 'image', mimeType: 'image/png', data: uriOf('image/png') },
  ],
  [
    'earlier versions of LangChain',
    { type: 'audio', source_type: 'base64', mime_type: 'audio/wav', data: base64 },
    { type: 'audio', source_type: 'base64', mime_type: 'audio/wav', data: uriOf('audio/wav') },
  ],
  [
    'Anthropic',
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: uriOf('image/png') } },
  ],
  [
    'OpenAI',
    { type: 'input_audio', input_audio: { format: 'wav', data: base64 } },
    { type: 'input_audio', input_audio: { format: 'wav', data: uriOf('audio/wav') } },
  ],
])('base64 in a block of %s is a data URI, and the message does not change', (_, block, expected) => {
  const content = [...blocks, block];
  const given = new HumanMessage({ content: content as never });
  const before = structuredClone(content);
  expect(plainOutputs(given).output).toMatchObject({ content: [blocks[0], expected] });
  expect(given.content).toEqual(before);
});

describe('a payload', () => {
  const document = { page_content: 'p', type: 'Document', metadata: { n: 1 } };
  const image = new ImagePromptValue({ url: 'data:,' } as never);
  test.each<[string, unknown, unknown]>([
    ['text', 'a', { output: 'a' }],
    ['undefined', undefined, {}],
    ['null', null, { output: null }],
    ['a list', [1, message], { output: [1, plain] }],
    ['a message', message, { output: plain }],
    ['a plain object', { a: 1 }, { a: 1 }],
    ['an object with messages', { a: [{ messages: [message] }] }, { a: [{ messages: [plain] }] }],
    ['an object like a message', { _getType: 'human', content: 'a' }, { _getType: 'human', content: 'a' }],
    ['a cycle', Object.assign(cyclic, { message }), expect.objectContaining({ message: plain })],
    ['a prompt of messages', new ChatPromptValue([message]), { messages: [plain] }],
    ['a prompt of text', new StringPromptValue('a'), { output: 'a' }],
    ['a prompt of another kind', image, { output: image }],
    ['documents', { context: [new Document({ pageContent: 'p', metadata: { n: 1 } })] }, { context: [document] }],
  ])('of %s is an object with plain messages and documents', (_, value, expected) => {
    expect(plainOutputs(value)).toEqual(expected);
  });

  test('without messages is the same object, and is never changed', () => {
    const state = { a: [{ b: new Date(0) }], c: 'd' };
    expect(plainInputs(state)).toBe(state);
    const messages = { messages: [message] };
    plainInputs(messages);
    expect(messages.messages[0]).toBe(message);
  });

  test('that cannot be read is recorded unchanged', () => {
    const { proxy: revoked, revoke } = Proxy.revocable({}, {});
    revoke();
    const get = () => {
      throw new Error('trap');
    };
    const trapped = Object.defineProperty({ message }, 'trap', { enumerable: true, get });
    for (const value of [revoked, trapped]) expect(plainInputs(value).input).toBe(value);
  });

  test('is searched to a depth of 16 and for 10 000 values', () => {
    const nested = (levels: number): unknown => (levels === 0 ? message : { a: nested(levels - 1) });
    expect(JSON.stringify(plainInputs(nested(15)))).toContain('"role":"user"');
    expect(JSON.stringify(plainInputs(nested(16)))).not.toContain('"role":"user"');
    const list = (before: number): unknown => ({ list: [...Array.from({ length: before }, () => ({})), message] });
    const last = (before: number): unknown => (plainInputs(list(before)).list as unknown[]).at(-1);
    // The object and the list are values too.
    expect(last(9_997)).toEqual(plain);
    expect(last(9_998)).toBe(message);
  });

  test.each([
    ['{"a":1}', { a: 1 }],
    ['{"a":', { input: '{"a":' }],
    ['[1]', { input: '[1]' }],
    ['a', { input: 'a' }],
    [{ a: 1 }, { a: 1 }],
  ])('of a tool with the input %j is %j', (input, expected) => {
    expect(toolInputs(input)).toEqual(expected);
  });
});
