import {
  AIMessage,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages';
import { describe, expect, it } from 'vitest';
import type { Fields } from '../../src/integrations/fields.ts';
import { isMessage, plainMessage } from '../../src/integrations/langchain/payload.ts';

const plain = (message: object): Fields => {
  if (!isMessage(message)) throw new Error('not taken for a message');
  return plainMessage(message);
};

describe('a message', () => {
  it.each<[string, object, Fields]>([
    ['of a user', new HumanMessage('a'), { role: 'user', content: 'a' }],
    ['of a model', new AIMessage('a'), { role: 'assistant', content: 'a' }],
    ['of the system', new SystemMessage('a'), { role: 'system', content: 'a' }],
    [
      'of the developer',
      new SystemMessage({ content: 'a', additional_kwargs: { __openai_role__: 'developer' } }),
      { role: 'developer', content: 'a' },
    ],
    ['of another role', new ChatMessage('a', 'critic'), { role: 'critic', content: 'a' }],
    [
      'that answers a function',
      new FunctionMessage({ content: 'a', name: 'f' }),
      { role: 'function', name: 'f', content: 'a' },
    ],
    ['that takes another away', new RemoveMessage({ id: 'm1' }), { role: 'remove', content: [], id: 'm1' }],
    [
      'of blocks',
      new HumanMessage({ content: [{ type: 'text', text: 'a' }], name: 'ada', id: 'm1' }),
      { role: 'user', content: [{ type: 'text', text: 'a' }], name: 'ada', id: 'm1' },
    ],
    [
      'of a tool that failed',
      new ToolMessage({ content: 'no', tool_call_id: 'c1', name: 'add', status: 'error', artifact: { code: 2 } }),
      { role: 'tool', content: 'no', tool_call_id: 'c1', name: 'add', status: 'error', artifact: { code: 2 } },
    ],
    [
      'that calls tools',
      new AIMessage({
        content: '',
        tool_calls: [{ id: 'c1', name: 'add', args: { a: 1 } }],
        invalid_tool_calls: [{ id: 'c2', name: 'add', args: '{"a":', error: 'no JSON' }],
      }),
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }],
        invalid_tool_calls: [expect.objectContaining({ id: 'c2', args: '{"a":' })],
      },
    ],
    [
      'with more than messages have',
      new AIMessage({
        content: 'a',
        additional_kwargs: { refusal: 'no', reasoning_content: 'hm', parsed: { a: 1 }, __raw_response: {} },
      }),
      { role: 'assistant', content: 'a', refusal: 'no', reasoning: 'hm', additional_kwargs: { parsed: { a: 1 } } },
    ],
  ])('%s has its role and its fields, and none that is empty', (_, message, expected) => {
    expect(plain(message)).toEqual(expected);
  });

  const base64 = 'A'.repeat(2_000);
  const png = `data:image/png;base64,${base64}`;
  const wav = `data:audio/wav;base64,${base64}`;
  it.each<[string, object, object]>([
    [
      'of LangChain',
      { type: 'image', mimeType: 'image/png', data: base64 },
      { type: 'image', mimeType: 'image/png', data: png },
    ],
    [
      'of earlier versions of LangChain',
      { type: 'audio', source_type: 'base64', mime_type: 'audio/wav', data: base64 },
      { type: 'audio', source_type: 'base64', mime_type: 'audio/wav', data: wav },
    ],
    [
      'of Anthropic',
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
    ],
    [
      'of OpenAI',
      { type: 'input_audio', input_audio: { format: 'wav', data: base64 } },
      { type: 'input_audio', input_audio: { format: 'wav', data: wav } },
    ],
  ])('has blocks %s with base64 as data URIs, and is not changed', (_, block, expected) => {
    const content = [{ type: 'text', text: 'What is it?' }, block];
    const message = new HumanMessage({ content: content as never });
    const before = structuredClone(content);

    expect(plain(message).content).toEqual([content[0], expected]);
    expect(message.content).toEqual(before);
  });

  it('whose arguments cannot be text keeps them', () => {
    const args: Fields = {};
    args.self = args;
    const call = { id: 'c1', name: 'add', args };
    expect(plain(new AIMessage({ content: '', tool_calls: [call] })).tool_calls).toMatchObject([
      { function: { name: 'add', arguments: args } },
    ]);
  });

  it('is what LangChain makes, and no plain object', () => {
    expect(isMessage({ role: 'user', content: 'a' })).toBe(false);
    expect(isMessage({ _getType: 'human', content: 'a' })).toBe(false);
  });
});
