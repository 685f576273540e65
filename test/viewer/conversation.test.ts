import { describe, expect, test } from 'vitest';
import { messagesOfInputs, messagesOfOutputs } from '../../src/viewer/payload/conversation.ts';
import type { Message, Part } from '../../src/viewer/payload/message.ts';

/** One line for each message: who says it, and what. */
const said = (messages: Message[] | undefined): string[] | undefined =>
  messages?.map(
    ({ role, name, parts }) => `${role}${name === undefined ? '' : ` ${name}`}: ${parts.map(print).join(' | ')}`,
  );

function print(part: Part): string {
  switch (part.kind) {
    case 'call':
      return `calls ${part.name}(${JSON.stringify(part.given)})${part.id === undefined ? '' : `#${part.id}`}`;
    case 'result':
      return `${part.isError ? 'failed' : 'returned'} ${JSON.stringify(part.value)}${part.id === undefined ? '' : `#${part.id}`}`;
    case 'media':
      return `media ${part.type ?? ''} ${part.source}`;
    case 'other':
      return `other ${JSON.stringify(part.value)}`;
    default:
      return part.kind === 'text' ? part.text : `${part.kind} ${part.text}`;
  }
}

const inputs = (value: unknown) => said(messagesOfInputs(value));
const outputs = (value: unknown) => said(messagesOfOutputs(value));

describe('OpenAI chat', () => {
  test('has roles, names, pictures, calls and what they answered', () => {
    const messages = [
      { role: 'system', content: 'Be kind' },
      {
        role: 'user',
        name: 'ada',
        content: [
          { type: 'text', text: 'See' },
          { type: 'image_url', image_url: { url: 'https://x/y.png' } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'find', arguments: '{"q":1}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: '{"found":2}' },
    ];
    expect(inputs({ model: 'gpt', messages })).toEqual([
      'system: Be kind',
      'user ada: See | media  https://x/y.png',
      'assistant: calls find({"q":1})#c1',
      'tool: returned {"found":2}#c1',
    ]);
  });

  test('answers in choices, with reasoning and refusals', () => {
    expect(outputs({ choices: [{ message: { role: 'assistant', content: 'Hi', reasoning_content: 'hm' } }] })).toEqual([
      'assistant: reasoning hm | Hi',
    ]);
    expect(outputs({ choices: [{ message: { role: 'assistant', refusal: 'No' } }] })).toEqual([
      'assistant: refusal No',
    ]);
    expect(outputs({ choices: [{ text: 'old' }] })).toEqual(['assistant: old']);
  });

  test('has arguments that are no JSON as they are', () => {
    const call = { role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{broken' } }] };
    expect(inputs({ messages: [call] })).toEqual(['assistant: calls f("{broken")#c']);
  });
});

test('OpenAI Responses has instructions, items and reasoning', () => {
  expect(inputs({ instructions: 'Be kind', input: 'Hello' })).toEqual(['system: Be kind', 'user: Hello']);
  const input = [
    { role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
    { type: 'function_call', call_id: 'c1', name: 'find', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1', output: 'found' },
  ];
  expect(inputs({ input })).toEqual(['user: Hello', 'assistant: calls find({})#c1', 'tool: returned "found"#c1']);
  const output = [
    { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] },
    { type: 'web_search_call', status: 'completed' },
  ];
  expect(outputs({ output })).toEqual([
    'assistant: reasoning hm',
    'assistant: Hi',
    'assistant: other {"type":"web_search_call","status":"completed"}',
  ]);
});

test('Anthropic has a system text and blocks', () => {
  const messages = [
    { role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBOR' } }] },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'tool_use', id: 't1', name: 'find', input: { q: 1 } },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 't1', is_error: true, content: [{ type: 'text', text: 'broken' }] },
      ],
    },
  ];
  expect(inputs({ system: [{ type: 'text', text: 'Be kind' }], messages })).toEqual([
    'system: Be kind',
    'user: media image/png iVBOR',
    'assistant: reasoning hm | calls find({"q":1})#t1',
    'user: failed "broken"#t1',
  ]);
  expect(outputs({ role: 'assistant', content: [{ type: 'text', text: 'Hi' }], usage: {} })).toEqual(['assistant: Hi']);
});

test('LangChain has envelopes of several kinds, and lists of lists', () => {
  const serialized = {
    lc: 1,
    type: 'constructor',
    id: ['langchain_core', 'messages', 'HumanMessage'],
    kwargs: { content: 'Hello' },
  };
  expect(inputs({ messages: [[serialized]] })).toEqual(['user: Hello']);
  expect(
    inputs({
      messages: [{ type: 'ai', data: { content: 'Hi', tool_calls: [{ name: 'f', args: { a: 1 }, id: 'c' }] } }],
    }),
  ).toEqual(['assistant: Hi | calls f({"a":1})#c']);
  expect(inputs({ messages: [{ type: 'human', content: 'Hello' }] })).toEqual(['user: Hello']);
  const message = { lc: 1, type: 'constructor', id: ['x', 'AIMessageChunk'], kwargs: { content: 'Hi' } };
  expect(outputs({ generations: [[{ text: 'Hi', message }]] })).toEqual(['assistant: Hi']);
  expect(outputs({ generations: [[{ text: 'plain' }]] })).toEqual(['assistant: plain']);
  expect(inputs({ prompts: ['Say it'] })).toEqual(['user: Say it']);
});

test('Gemini has parts, calls and answers of functions', () => {
  const contents = [
    { role: 'user', parts: [{ text: 'See' }, { inlineData: { mimeType: 'image/png', data: 'iVBOR' } }] },
    { role: 'model', parts: [{ functionCall: { name: 'find', args: { q: 1 } } }] },
    { role: 'user', parts: [{ functionResponse: { name: 'find', response: { found: 2 } } }] },
  ];
  expect(inputs({ contents, systemInstruction: { parts: [{ text: 'Be kind' }] } })).toEqual([
    'system: Be kind',
    'user: See | media image/png iVBOR',
    'assistant: calls find({"q":1})',
    'user: returned {"found":2}',
  ]);
  expect(
    outputs({ candidates: [{ content: { role: 'model', parts: [{ text: 'hm', thought: true }, { text: 'Hi' }] } }] }),
  ).toEqual(['assistant: reasoning hm | Hi']);
});

test('the AI SDK has parts of its own, and answers in fields', () => {
  const prompt = [
    { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'find', input: { q: 1 } }] },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'c', toolName: 'find', output: { type: 'json', value: { found: 2 } } },
      ],
    },
  ];
  expect(inputs({ prompt })).toEqual([
    'user: Hello',
    'assistant: calls find({"q":1})#c',
    'tool: returned {"found":2}#c',
  ]);
  expect(
    outputs({ text: 'Hi', reasoning: 'hm', toolCalls: [{ toolCallId: 'c', toolName: 'find', input: {} }] }),
  ).toEqual(['assistant: reasoning hm | Hi | calls find({})#c']);
});

test('plain messages and single texts are conversations too', () => {
  expect(inputs({ input: [{ role: 'user', content: 'Hello' }] })).toEqual(['user: Hello']);
  expect(inputs({ input: { messages: [{ role: 'user', content: 'Hello' }] } })).toEqual(['user: Hello']);
  expect(inputs({ question: 'Why?' })).toEqual(['user: Why?']);
  expect(outputs({ output: 'Because' })).toEqual(['assistant: Because']);
  expect(outputs({ role: 'assistant', content: 'Hi' })).toEqual(['assistant: Hi']);
  expect(outputs({ messages: [{ role: 'assistant', content: 'Hi' }] })).toEqual(['assistant: Hi']);
});

test.each([
  [undefined],
  [null],
  [1],
  ['text'],
  [[]],
  [{}],
  [{ messages: 'no list' }],
  [{ messages: [] }],
  [{ messages: [1, null] }],
  [{ a: { b: 1 } }],
])('nothing is made of %j', (value) => {
  expect(inputs(value)).toBeUndefined();
  expect(outputs(value)?.length ?? 0).toBe(0);
});

test('what has no known shape stays as it is', () => {
  expect(inputs({ messages: [{ role: 'user', content: [{ type: 'hologram', depth: 3 }, 5, null] }] })).toEqual([
    'user: other {"type":"hologram","depth":3} | other 5 | other null',
  ]);
});
