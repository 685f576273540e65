import { expect, test } from 'vitest';
import { fieldsOf } from '#src/payload/fields.ts';
import { messagesOfInputs, messagesOfOutputs } from '#src/services/conversation.ts';
import { ANSWER, asked, SAID } from '../exchanges/exchange.ts';
import { linesOf } from '../exchanges/run.ts';
import { formats } from '../exchanges/table.ts';

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

// Requests of these services are not recorded as they are.
const { Ollama: _, 'Mistral conversations': __, ...others } = formats;
test.each(Object.entries(others))('a request and a response in the format of %s are a conversation', (name, format) => {
  expect(linesOf(messagesOfInputs(format.body))).toEqual(name === 'Gemini' ? asked('user') : format.asked);
  expect(linesOf(messagesOfOutputs(format.response(ANSWER, {})))).toEqual(SAID);
});

test.each<[string, object, string[]]>([
  [
    'named users, links, broken arguments and failed tools',
    {
      messages: [
        { ...user([text('See'), { type: 'image_url', image_url: { url: 'https://x/y.png' } }]), name: 'ada' },
        assistant({ tool_calls: [{ id: 'd', function: { name: 'f', arguments: '{broken' } }] }),
        user([{ type: 'tool_result', tool_use_id: 'd', is_error: true, content: [text('broken')] }]),
        user([{ toolResult: { toolUseId: 'd', content: [{ text: 'No' }], status: 'error' } }]),
        user([{ cachePoint: { type: 'default' } }]),
        assistant({ content: [{ citationsContent: { content: [{ text: 'Two' }], citations: [] } }] }),
      ],
    },
    [
      ...['user ada: See', 'user ada: media undefined https://', 'assistant: calls f("{broken")#d'],
      ...['user: failed "broken"#d', 'user: failed "No"#d', 'user: other {"cachePoint":{"type":"default"}}'],
      'assistant: Two',
    ],
  ],
  [
    'media with declared types',
    {
      messages: [
        ...['wav', 'mp3'].map((format) => user([{ type: 'input_audio', input_audio: { format, data: 'UklGRg==' } }])),
        ...['mimeType', 'mime_type'].map((key) => user([{ inlineData: { [key]: 'audio/l16', data: 'UklGRg==' } }])),
        ...['audio', 'document'].map((kind) => user([{ [kind]: { format: 'b', source: { bytes: 'UklGRg==' } } }])),
        user([{ type: 'file', file: { file_data: 'UklGRg==', format: 'video/avi' } }]),
        user([{ type: 'audio', source: { data: 'UklGRg==', media_type: 'audio/aac' } }]),
      ],
    },
    ['audio/wav', 'audio/mpeg', 'audio/l16', 'audio/l16', 'audio/b', 'application/b', 'video/avi', 'audio/aac'].map(
      (type) => `user: media ${type} UklGRg==`,
    ),
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
  ['serialized LangChain messages', { messages: [[langchain('HumanMessage', 'Hello')]] }, ['user: Hello']],
  ['stored LangChain messages', { messages: [{ type: 'ai', data: { content: 'Hi' } }] }, ['assistant: Hi']],
  ['plain LangChain messages', { messages: [{ type: 'human', content: 'Hello' }] }, ['user: Hello']],
  ['LangChain prompts', { prompts: ['Hello'] }, ['user: Hello']],
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
    ['user: other {"type":"hologram","depth":3}', 'user: other 5', 'user: other null'],
  ],
])('inputs of %s are a conversation', (_, inputs, expected) => {
  expect(linesOf(messagesOfInputs(inputs))).toEqual(expected);
});

test.each<[string, object, string[]]>([
  ['LangChain', { generations: [[{ text: 'Hi', message: langchain('AIMessageChunk', 'Hi') }]] }, ['assistant: Hi']],
  ['LangChain text', { generations: [[{ text: 'plain' }]] }, ['assistant: plain']],
  [
    'the AI SDK',
    { text: 'Hi', reasoning: 'hm', toolCalls: [{ toolCallId: 'c', toolName: 'find', input: { q: 1 } }] },
    ['assistant: reasoning hm', 'assistant: Hi', 'assistant: calls find({"q":1})#c'],
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
    'Gemini interactions of the first version',
    {
      id: 'i',
      outputs: [text('Hi'), { type: 'image', data: 'aWNvbg==' }, { type: 'function_call', id: 'c', name: 'find' }],
    },
    ['assistant: Hi', 'assistant: media undefined aWNvbg==', 'assistant: calls find({})#c'],
  ],
  ['a text', { output: 'Because' }, ['assistant: Because']],
  ['a message', assistant({ content: 'Hi' }), ['assistant: Hi']],
  ['messages', { messages: [assistant({ content: 'Hi' })] }, ['assistant: Hi']],
])('outputs of %s are a conversation', (_, outputs, expected) => {
  expect(linesOf(messagesOfOutputs(outputs))).toEqual(expected);
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
