import { expect, test } from 'vitest';
import { argumentsOf, grown, type Message, messageOf, outputText, withPiece } from '../../page/message.ts';

test('a message of a state has its words and its calls, each call once', () => {
  const call = { type: 'tool_call', id: 'c', name: 'task', args: { a: 1 } };
  const block = { kind: 'call', id: 'c', name: 'task', input: { a: 1 } };
  expect(messageOf({ type: 'ai', id: 'a', content: 'x', tool_calls: [call] })?.blocks).toEqual([
    { kind: 'text', text: 'x' },
    block,
  ]);
  expect(
    messageOf({ type: 'ai', id: 'a', content: [{ type: 'text', text: 'x' }, call], tool_calls: [call] })?.blocks,
  ).toEqual([{ kind: 'text', text: 'x' }, block]);
  expect(messageOf({ role: 'user', id: 'h', content: 'x' })?.role).toBe('human');
  expect(messageOf({ type: 'human', content: 'x' })).toBeUndefined();
});

test.each([
  ['length', true],
  ['stop', undefined],
  ['tool_use', undefined],
  [undefined, undefined],
])('a message that ends by %j is told as cut only where it is as long as it may be', (reason, isAtLimit) => {
  const open: Message = { id: 'a', role: 'ai', blocks: [], state: 'open' };
  const streamed = withPiece(open, { event: 'message-finish', reason });
  expect([streamed.state, streamed.isAtLimit]).toEqual(['complete', isAtLimit]);
  const kept = messageOf({ type: 'ai', id: 'a', content: 'x', response_metadata: { finish_reason: reason } });
  expect([kept?.state, kept?.isAtLimit]).toEqual(['complete', isAtLimit]);
});

test('a block grows by what comes, and a call keeps its name', () => {
  const text = grown(grown(undefined, { type: 'text-delta', text: 'a' }), { type: 'text-delta', text: 'b' });
  expect(text).toEqual({ kind: 'text', text: 'ab' });
  expect(grown(undefined, { type: 'reasoning-delta', reasoning: 'r' })).toEqual({ kind: 'reasoning', text: 'r' });
  const call = grown(undefined, {
    type: 'block-delta',
    fields: { type: 'tool_call_chunk', id: 'c', name: 'task', args: '{' },
  });
  expect(grown(call, { type: 'block-delta', fields: { type: 'tool_call_chunk', args: '{"a"' } })).toEqual({
    kind: 'call',
    id: 'c',
    name: 'task',
    input: '{"a"',
  });
  expect(grown(text, { type: 'something new' })).toBe(text);
});

test.each([
  [{ a: '1' }, { a: '1' }],
  ['{"a":"1","b":2}', { a: '1', b: 2 }],
  ['{"a":"1"', { a: '1' }],
  ['{"a":"1, \\"2\\"","b":"3', { a: '1, "2"' }],
  ['{"a":"1","b', { a: '1' }],
  ['{"a":"1","b":"2 \\"3\\", and', { a: '1' }],
  ['{"a":"1', {}],
  ['', {}],
  ['words', {}],
  ['"words"', {}],
  [undefined, {}],
  [null, {}],
])('what a call is called with is read as far as it is whole: %j', (input, fields) => {
  expect(argumentsOf(input)).toEqual(fields);
});

test.each([
  ['words', 'words'],
  [{ type: 'tool', content: 'words' }, 'words'],
  [
    {
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    },
    'a\nb',
  ],
  [{ found: 1 }, '{\n  "found": 1\n}'],
  [undefined, ''],
  [null, ''],
])('what a tool answered is text: %j', (output, text) => {
  expect(outputText(output)).toBe(text);
});
