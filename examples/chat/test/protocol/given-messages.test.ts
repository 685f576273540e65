import { HumanMessage } from '@langchain/core/messages';
import { describe, expect, test } from 'vitest';
import { messagesFault } from '../../server/protocol/given-messages.ts';

describe('messages that a graph takes have no fault', () => {
  const call = { id: '1', name: 'search', args: {} };
  test.each([
    [{}],
    [null],
    [{ question: 'x' }],
    [{ messages: [] }],
    [{ messages: 'Hello' }],
    [{ messages: ['Hello'] }],
    [{ messages: { role: 'user', content: 'Hello' } }],
    [{ messages: [{ role: 'user', content: 'Hello' }] }],
    [{ messages: [{ type: 'human', id: 'a', content: [{ type: 'text', text: 'Hello' }] }] }],
    [{ messages: [{ type: 'ai', content: '', tool_calls: [call] }] }],
    [
      {
        messages: [
          { role: 'assistant', content: null, tool_calls: [{ id: '1', function: { name: 'a', arguments: '{}' } }] },
        ],
      },
    ],
    [{ messages: [{ type: 'tool', content: 'x', tool_call_id: '1' }] }],
    [{ messages: [JSON.parse(JSON.stringify(new HumanMessage('Hello')))] }],
  ])('%j', (input) => {
    expect(messagesFault(input)).toBeUndefined();
  });
});

describe('messages that a graph does not take are named', () => {
  test.each([
    [{ messages: 5 }, 'messages: Expected text, or an object'],
    [{ messages: [null] }, 'messages.0: Expected text, or an object'],
    [{ messages: [['user', 'x']] }, 'messages.0: Expected text, or an object'],
    [
      { messages: ['x', { role: 'nobody', content: 'x' }] },
      'messages.1: Expected a type such as "human", got "nobody"',
    ],
    [{ messages: [{ content: 'x' }] }, 'messages.0: Expected a type such as "human", got undefined'],
    [{ messages: [{ role: 'user' }] }, 'messages.0: Expected content that is text, or a list of objects with a type'],
    [
      { messages: [{ role: 'user', content: [1] }] },
      'messages.0: Expected content that is text, or a list of objects with a type',
    ],
    [
      { messages: [{ role: 'user', content: { a: 1 } }] },
      'messages.0: Expected content that is text, or a list of objects with a type',
    ],
    [
      {
        messages: [
          {
            lc: 1,
            type: 'constructor',
            id: ['langchain_core', 'messages', 'HumanMessage'],
            kwargs: { content: { a: 1 } },
          },
        ],
      },
      'messages.0: Expected content that is text, or a list of objects with a type',
    ],
    [{ messages: [{ type: 'tool', content: 'x' }] }, 'messages.0: Expected a tool_call_id with the type "tool"'],
    [
      { messages: [{ type: 'ai', content: 'x', tool_calls: 5 }] },
      'messages.0: Expected tool_calls to be a list of objects with a name',
    ],
    [
      { messages: [{ type: 'ai', content: 'x', tool_calls: [{}] }] },
      'messages.0: Expected tool_calls to be a list of objects with a name',
    ],
    [
      { messages: [{ type: 'remove', id: 'x' }] },
      'messages.0: Messages are removed by the state of the thread, and not by an input',
    ],
  ])('%j', (input, fault) => {
    expect(messagesFault(input)).toBe(fault);
  });
});

test('messages are removed by a change of the state, by their ids', () => {
  expect(messagesFault({ messages: [{ type: 'remove', id: 'x' }] }, true)).toBeUndefined();
  expect(messagesFault({ messages: [{ type: 'remove' }] }, true)).toBe(
    'messages.0: Expected an id with the type "remove"',
  );
});
