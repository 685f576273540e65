import { describe, expect, it } from 'vitest';
import { messagesOf, toolNames } from '../../src/integrations/ai-prompt.ts';

describe('messages', () => {
  it('with one piece of text have it as their content', () => {
    const hello = { role: 'user', content: 'Hello.' };

    expect(messagesOf([hello, { role: 'user', content: [{ type: 'text', text: 'Hello.' }] }])).toEqual([hello, hello]);
  });

  it('keep several pieces in their order', () => {
    const content = [
      { type: 'reasoning', text: 'Hm.', providerOptions: { a: 1 } },
      { type: 'text', text: 'It rains.' },
      { type: 'custom', data: 1 },
    ];
    const [message] = messagesOf([{ role: 'assistant', content }]);

    expect(message).toEqual({
      role: 'assistant',
      content: [{ type: 'reasoning', text: 'Hm.' }, { type: 'text', text: 'It rains.' }, content[2]],
    });
  });

  it.each([
    [
      '5 and later',
      { input: { city: 'Cork' } },
      { output: { type: 'text', value: 'rain' } },
      { type: 'text', value: 'rain' },
    ],
    ['4', { args: { city: 'Cork' } }, { result: 'rain' }, 'rain'],
  ])('have calls and answers of tools as models take them, in %s', (_, call, answer, content) => {
    const named = { toolCallId: '1', toolName: 'weather' };
    const messages = messagesOf([
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I look.' },
          { type: 'tool-call', ...named, ...call },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', ...named, ...answer },
          { type: 'tool-result', toolCallId: '2' },
        ],
      },
    ]);

    const weather = { name: 'weather', arguments: '{"city":"Cork"}' };
    expect(messages).toEqual([
      { role: 'assistant', content: 'I look.', tool_calls: [{ id: '1', type: 'function', function: weather }] },
      { role: 'tool', tool_call_id: '1', name: 'weather', content },
      { role: 'tool', tool_call_id: '2', name: undefined, content: undefined },
    ]);
  });

  // "data:image/png;base64," has 22 characters, and of a data URI up to 1 024 stay in their payload.
  it.each([
    [1_001, false],
    [1_002, false],
    [1_003, true],
  ])('have %d characters of base64 as a data URI: %s', (length, isMade) => {
    const data = 'A'.repeat(length);
    const expected = isMade ? `data:image/png;base64,${data}` : data;
    const parts = [
      { type: 'file', mediaType: 'image/png', data },
      { type: 'image', mimeType: 'image/png', image: data },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data } },
    ];
    const [message] = messagesOf([{ role: 'user', content: parts }]);

    const png = { media_type: 'image/png' };
    expect(message).toEqual({
      role: 'user',
      content: [
        { type: 'file', ...png, data: expected },
        { type: 'image', ...png, data: expected },
        { type: 'file', ...png, data: { type: 'data', data: expected } },
      ],
    });
  });

  it('keep addresses, data URIs and bytes of files as they are', () => {
    const data = [`https://a.example/${'a'.repeat(2_000)}`, `data:a/b;base64,${'A'.repeat(2_000)}`, new Uint8Array(2)];
    const content = data.map((one) => ({ type: 'file', data: one }));

    expect(messagesOf([{ role: 'user', content }])).toEqual([{ role: 'user', content }]);
  });

  it('have files of no known type, and those that a tool has answered with, as data URIs too', () => {
    const data = 'A'.repeat(2_000);
    const text = { type: 'text', text: 'Here.' };
    const value = [text, { type: 'image-data', data, mediaType: 'image/png' }];
    const result = { type: 'tool-result', toolCallId: '1', toolName: 'look', output: { type: 'content', value } };

    const image = { ...value[1], data: `data:image/png;base64,${data}` };
    expect(
      messagesOf([
        { role: 'user', content: [{ type: 'file', data }] },
        { role: 'tool', content: [result] },
      ]),
    ).toEqual([
      { role: 'user', content: [{ type: 'file', data: `data:application/octet-stream;base64,${data}` }] },
      { role: 'tool', tool_call_id: '1', name: 'look', content: { type: 'content', value: [text, image] } },
    ]);
  });

  it('of no known shape stay as they are', () => {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    const call = { type: 'tool-call', toolCallId: '1', toolName: 'x', input: cyclic };

    expect(messagesOf(['a', null, 7, { content: 1 }])).toEqual(['a', null, 7, { content: 1 }]);
    expect(messagesOf([{ role: 'assistant', content: [call] }])).toMatchObject([
      { tool_calls: [{ function: { arguments: cyclic } }] },
    ]);
  });
});

describe('the names of tools', () => {
  it('are the keys of a record, and the names in a list', () => {
    expect(toolNames({ a: {}, b: {} })).toEqual(['a', 'b']);
    expect(toolNames([{ name: 'a' }, { name: 'b' }])).toEqual(['a', 'b']);
    expect(toolNames(undefined)).toBeUndefined();
  });
});
