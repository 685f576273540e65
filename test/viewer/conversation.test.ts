import { expect, test } from 'vitest';
import { fieldsOf } from '#src/payload/fields.ts';
import { messagesOfInputs, messagesOfOutputs } from '#src/services/conversation.ts';
import type { Message, Part } from '#src/services/message.ts';

/** One line per message: its role, name and parts. */
const lines = (messages: Message[] | undefined): string[] | undefined =>
  messages?.map(
    ({ role, name, parts }) => `${[role, name].filter(Boolean).join(' ')}: ${parts.map(print).join(' | ')}`,
  );

function print(part: Part): string {
  switch (part.kind) {
    case 'call':
      return `calls ${part.name}(${JSON.stringify(part.input)})${part.id === undefined ? '' : `#${part.id}`}`;
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

const text = (value: string) => ({ type: 'text', text: value });
const user = (content: unknown) => ({ role: 'user', content });
const assistant = (fields: object) => ({ role: 'assistant', ...fields });
const langchain = (type: string, content: string) => ({
  lc: 1,
  type: 'constructor',
  id: ['langchain_core', 'messages', type],
  kwargs: { content },
});
const call = { id: 'c', type: 'function', function: { name: 'find', arguments: '{"q":1}' } };
const CALL = 'assistant: calls find({"q":1})#c';

test.each<[string, object, string[]]>([
  [
    'OpenAI chat',
    {
      messages: [
        { role: 'system', content: 'Be kind' },
        { ...user([text('See'), { type: 'image_url', image_url: { url: 'https://x/y.png' } }]), name: 'ada' },
        assistant({ content: null, tool_calls: [call] }),
        { role: 'tool', tool_call_id: 'c', content: '{"found":2}' },
        assistant({ tool_calls: [{ id: 'd', function: { name: 'f', arguments: '{broken' } }] }),
      ],
    },
    [
      'system: Be kind',
      'user ada: See | media  https://x/y.png',
      CALL,
      'tool: returned {"found":2}#c',
      'assistant: calls f("{broken")#d',
    ],
  ],
  [
    'Bedrock',
    {
      messages: [
        { role: 'system', content: [{ text: 'Be kind' }] },
        user([
          { text: 'See' },
          { image: { format: 'png', source: { bytes: 'AAAA' } } },
          { cachePoint: { type: 'default' } },
        ]),
        assistant({
          content: [
            { reasoningContent: { reasoningText: { text: 'Hm', signature: 's' } } },
            { toolUse: { toolUseId: 'c', name: 'find', input: { q: 1 } } },
          ],
        }),
        user([
          { toolResult: { toolUseId: 'c', content: [{ json: { found: 2 } }], status: 'success' } },
          { toolResult: { toolUseId: 'd', content: [{ text: 'No' }], status: 'error' } },
        ]),
        assistant({ content: [{ citationsContent: { content: [{ text: 'Two' }], citations: [] } }] }),
      ],
    },
    [
      'system: Be kind',
      'user: See | media image/png AAAA | other {"cachePoint":{"type":"default"}}',
      'assistant: reasoning Hm | calls find({"q":1})#c',
      'user: returned {"found":2}#c | failed "No"#d',
      'assistant: Two',
    ],
  ],
  [
    'OpenAI responses',
    {
      instructions: 'Be kind',
      input: [
        user([{ type: 'input_text', text: 'Hello' }]),
        { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'find', arguments: '{"q":1}' },
        { type: 'function_call_output', call_id: 'c', output: 'found' },
      ],
    },
    ['system: Be kind', 'user: Hello', CALL, 'tool: returned "found"#c'],
  ],
  [
    'Gemini interactions',
    {
      messages: [
        { role: 'system', content: 'Be kind' },
        {
          type: 'user_input',
          content: [text('See'), { type: 'image', uri: 'https://x/y.png', mime_type: 'image/png' }],
        },
        { type: 'thought', summary: [text('Hm')], signature: 's' },
        { type: 'function_call', id: 'c', name: 'find', arguments: { q: 1 } },
        { type: 'function_result', call_id: 'c', name: 'find', result: [text('found')], is_error: true },
        { type: 'model_output', content: [text('Two')] },
      ],
    },
    [
      'system: Be kind',
      'user: See | media image/png https://x/y.png',
      'assistant: reasoning Hm',
      CALL,
      'tool: failed "found"#c',
      'assistant: Two',
    ],
  ],
  [
    'Mistral conversations',
    {
      messages: [
        { object: 'entry', type: 'message.input', ...user('Hello') },
        { object: 'entry', type: 'function.call', id: 'fc', tool_call_id: 'c', name: 'find', arguments: '{"q":1}' },
        { object: 'entry', type: 'function.result', tool_call_id: 'c', result: 'found' },
        { object: 'entry', type: 'tool.execution', id: 't', name: 'web_search', arguments: '{"q":2}' },
      ],
    },
    ['user: Hello', CALL, 'tool: returned "found"#c', 'assistant: calls web_search({"q":2})#t'],
  ],
  [
    'Anthropic',
    {
      system: [text('Be kind')],
      messages: [
        user([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBOR' } }]),
        assistant({
          content: [
            { type: 'thinking', thinking: 'hm' },
            { type: 'tool_use', id: 't', name: 'find', input: {} },
          ],
        }),
        user([{ type: 'tool_result', tool_use_id: 't', is_error: true, content: [text('broken')] }]),
      ],
    },
    [
      'system: Be kind',
      'user: media image/png iVBOR',
      'assistant: reasoning hm | calls find({})#t',
      'user: failed "broken"#t',
    ],
  ],
  ['serialized LangChain messages', { messages: [[langchain('HumanMessage', 'Hello')]] }, ['user: Hello']],
  [
    'stored LangChain messages',
    { messages: [{ type: 'ai', data: { content: 'Hi', tool_calls: [{ name: 'find', args: {}, id: 'c' }] } }] },
    ['assistant: Hi | calls find({})#c'],
  ],
  ['plain LangChain messages', { messages: [{ type: 'human', content: 'Hello' }] }, ['user: Hello']],
  ['LangChain prompts', { prompts: ['Hello'] }, ['user: Hello']],
  [
    'Gemini',
    {
      systemInstruction: { parts: [{ text: 'Be kind' }] },
      contents: [
        { role: 'user', parts: [{ text: 'See' }, { inlineData: { mimeType: 'image/png', data: 'iVBOR' } }] },
        { role: 'model', parts: [{ functionCall: { name: 'find', args: { q: 1 }, id: 'c' } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'find', response: { found: 2 } } }] },
      ],
    },
    ['system: Be kind', 'user: See | media image/png iVBOR', CALL, 'user: returned {"found":2}'],
  ],
  [
    'the AI SDK',
    {
      prompt: [
        user([text('Hello')]),
        assistant({ content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'find', input: { q: 1 } }] }),
        {
          role: 'tool',
          content: [{ type: 'tool-result', toolCallId: 'c', output: { type: 'json', value: { found: 2 } } }],
        },
      ],
    },
    ['user: Hello', CALL, 'tool: returned {"found":2}#c'],
  ],
  ['one list argument', { input: [user('Hello')] }, ['user: Hello']],
  ['one object argument', { input: { messages: [user('Hello')] } }, ['user: Hello']],
  ['a question', { question: 'Why?' }, ['user: Why?']],
  [
    'unknown parts',
    { messages: [user([{ type: 'hologram', depth: 3 }, 5, null])] },
    ['user: other {"type":"hologram","depth":3} | other 5 | other null'],
  ],
])('inputs of %s are a conversation', (_, inputs, expected) => {
  expect(lines(messagesOfInputs(inputs))).toEqual(expected);
});

test.each<[string, object, string[]]>([
  [
    'OpenAI reasoning',
    { choices: [{ message: assistant({ content: 'Hi', reasoning_content: 'hm' }) }] },
    ['assistant: reasoning hm | Hi'],
  ],
  ['OpenAI refusals', { choices: [{ message: assistant({ refusal: 'No' }) }] }, ['assistant: refusal No']],
  ['OpenAI completions', { choices: [{ text: 'old' }] }, ['assistant: old']],
  [
    'OpenAI responses',
    {
      output: [
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] },
        { type: 'message', ...assistant({ content: [{ type: 'output_text', text: 'Hi' }] }) },
        { type: 'web_search_call', status: 'completed' },
      ],
    },
    ['assistant: reasoning hm', 'assistant: Hi', 'assistant: other {"type":"web_search_call","status":"completed"}'],
  ],
  ['Anthropic', assistant({ content: [text('Hi')], usage: {} }), ['assistant: Hi']],
  ['Bedrock', { output: { message: assistant({ content: [{ text: 'Hi' }] }) }, usage: {} }, ['assistant: Hi']],
  ['LangChain', { generations: [[{ text: 'Hi', message: langchain('AIMessageChunk', 'Hi') }]] }, ['assistant: Hi']],
  ['LangChain text', { generations: [[{ text: 'plain' }]] }, ['assistant: plain']],
  [
    'Gemini',
    { candidates: [{ content: { role: 'model', parts: [{ text: 'hm', thought: true }, { text: 'Hi' }] } }] },
    ['assistant: reasoning hm | Hi'],
  ],
  [
    'the AI SDK',
    { text: 'Hi', reasoning: 'hm', toolCalls: [{ toolCallId: 'c', toolName: 'find', input: { q: 1 } }] },
    ['assistant: reasoning hm | Hi | calls find({"q":1})#c'],
  ],
  [
    'Gemini interactions',
    {
      id: 'i',
      steps: [
        { type: 'thought', signature: 's' },
        { type: 'model_output', content: [text('Hi')] },
      ],
    },
    ['assistant: reasoning (hidden by the provider)', 'assistant: Hi'],
  ],
  [
    'early Gemini interactions',
    { id: 'i', outputs: [text('Hi'), { type: 'function_call', id: 'c', name: 'find', arguments: { q: 1 } }] },
    ['assistant: Hi', CALL],
  ],
  ['a text', { output: 'Because' }, ['assistant: Because']],
  ['a message', assistant({ content: 'Hi' }), ['assistant: Hi']],
  ['messages', { messages: [assistant({ content: 'Hi' })] }, ['assistant: Hi']],
])('outputs of %s are a conversation', (_, outputs, expected) => {
  expect(lines(messagesOfOutputs(outputs))).toEqual(expected);
});

test('other values are no conversation', () => {
  const others = [
    undefined,
    null,
    1,
    'text',
    [],
    {},
    { messages: 'text' },
    { messages: [] },
    { messages: [1, null] },
    { a: { b: 1 } },
  ];
  for (const value of others) {
    expect(messagesOfInputs(value)).toBeUndefined();
    expect(messagesOfOutputs(value) ?? []).toEqual([]);
  }
});

test('a result has the name of its call', () => {
  const results = ['c', 'd'].map((id) => ({ role: 'tool', tool_call_id: id, content: 'two' }));
  const messages = messagesOfInputs({ messages: [assistant({ tool_calls: [call] }), ...results] });
  expect(messages?.map(({ parts: [part] }) => fieldsOf(part).name)).toEqual(['find', 'find', undefined]);
});
