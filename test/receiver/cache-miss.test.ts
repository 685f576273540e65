import { describe, expect, test } from 'vitest';
import { commonPrefix, describeDifference, reportedCacheRead } from '#src/receiver/domain/trace/cache-miss.ts';

type Inputs = Record<string, unknown>;

const differenceOf = (before: Inputs, after: Inputs, extras: Inputs[] = []) =>
  commonPrefix({ inputs: before, extra: extras[0] }, { inputs: after, extra: extras[1] ?? extras[0] })?.difference;

/** What is said of two prompts, without the time and the share. */
function said(before: Inputs, after: Inputs, ...extras: Inputs[]): string | undefined {
  const difference = differenceOf(before, after, extras);
  const text = difference && describeDifference(difference, { seconds_before: 42 });
  return text
    ?.replace('The prompt differs from that of the call 42 s earlier from ', '')
    .replace(/ on([:,].*)?\. The equal.*/, '$1');
}

const user = (content: unknown) => ({ role: 'user', content });
const system = (content: unknown) => ({ role: 'system', content });
const image = (url: string) => user([{ type: 'image_url', image_url: { url } }]);
const chatTool = (name: string, description = name) => ({
  type: 'function',
  function: { name, description, parameters: { type: 'object', properties: { id: { type: 'string' } } } },
});
const parameters = (...tools: unknown[]) => ({ metadata: { ls_invocation_params: { tools } } });
const toolUse = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'search', input: { id: 1 } }] };
const toolResult = (content: string) => user([{ type: 'tool_result', tool_use_id: 'toolu_1', content }]);
const called = (args: string) => ({ type: 'function_call', call_id: 'c', name: 'search', arguments: args });

describe('the first difference of two prompts', () => {
  test.each<[title: string, before: Inputs, after: Inputs, expected: string | undefined]>([
    [
      'a message of a chat completion',
      { messages: [system('Be brief.'), user('Why?')] },
      { messages: [system('Be brief.'), user('Who?')] },
      'message 2 (user): "Why?" became "Who?"',
    ],
    [
      'a time in the system message',
      { messages: [system('You are a clerk. It is 14:03 now.'), user('Why?')] },
      { messages: [system('You are a clerk. It is 14:04 now.'), user('Why?')] },
      'character 28 of the system prompt: "…. It is 14:03 now." became "…. It is 14:04 now."',
    ],
    [
      'a turn that was added',
      { messages: [user('Why?')] },
      { messages: [user('Why?'), { role: 'assistant', content: 'Because.' }, user('Ah.')] },
      undefined,
    ],
    ['text at the end of the last message', { prompt: 'One. Two.' }, { prompt: 'One. Two. Three.' }, undefined],
    ['turns that were removed at the end', { messages: [user('a'), user('b')] }, { messages: [user('a')] }, undefined],
    ['equal prompts', { messages: [user('a')] }, { messages: [user('a')] }, undefined],
    [
      'turns that were removed at the start',
      { messages: [user('a'), { role: 'assistant', content: 'b' }, user('c')] },
      { messages: [{ role: 'assistant', content: 'b' }, user('c')] },
      'message 1 (assistant), in place of message 1 (user)',
    ],
    [
      'a changed image',
      { messages: [image(`data:image/png;base64,${'A'.repeat(100)}`), user('What is it?')] },
      { messages: [image(`data:image/png;base64,${'B'.repeat(100)}`), user('What is it?')] },
      'message 1 (user)',
    ],
    [
      'the address of an image',
      { messages: [image('https://a.example/1.png'), user('What is it?')] },
      { messages: [image('https://a.example/2.png'), user('What is it?')] },
      'message 1 (user): "…//a.example/1.png" became "…//a.example/2.png"',
    ],
    [
      'a system prompt of Anthropic',
      { system: 'Today is Monday.', messages: [user('a')] },
      {
        system: [{ type: 'text', text: 'Today is Friday.', cache_control: { type: 'ephemeral' } }],
        messages: [user('a')],
      },
      'character 10 of the system prompt: "Today is Monday." became "Today is Friday."',
    ],
    [
      'a cache marker of Anthropic that has moved',
      { messages: [user([{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }])] },
      { messages: [user('a'), user([{ type: 'text', text: 'b', cache_control: { type: 'ephemeral' } }])] },
      undefined,
    ],
    [
      'the result of a tool',
      { messages: [user('a'), toolUse, toolResult('12 hits'), user('b')] },
      { messages: [user('a'), toolUse, toolResult('13 hits'), user('b')] },
      'message 3 (user): "toolu_1\\n12 hits" became "toolu_1\\n13 hits"',
    ],
    [
      'an item of the Responses API',
      { input: [user('a'), called('{"id":1}'), { type: 'function_call_output', call_id: 'c', output: 'x' }] },
      { input: [user('a'), called('{"id":2}'), { type: 'function_call_output', call_id: 'c', output: 'x' }] },
      'message 2 (assistant): "…earch\\n{\\"id\\":1}" became "…earch\\n{\\"id\\":2}"',
    ],
    [
      'ids of items that a response has returned',
      { input: [user('a'), { id: 'rs_1', type: 'reasoning', summary: [] }, user('b')] },
      { input: [user('a'), { id: 'rs_2', type: 'reasoning', summary: [] }, user('b')] },
      undefined,
    ],
    ['inputs without messages', { question: 'a' }, { question: 'b' }, undefined],
    [
      'a prompt that continues a stored response',
      { input: [user('a')] },
      { input: [user('b')], previous_response_id: 'resp_1' },
      undefined,
    ],
  ])('%s', (_, before, after, expected) => expect(said(before, after)).toBe(expected));

  const messages = { messages: [user('a')] };
  test.each<[title: string, before: Inputs, after: Inputs, expected: string | undefined]>([
    [
      'tools in another order',
      parameters(chatTool('search'), chatTool('fetch')),
      parameters(chatTool('fetch'), chatTool('search')),
      'tool 1 "fetch", in place of tool 1 "search"',
    ],
    [
      'the description of a tool',
      parameters(chatTool('search'), chatTool('fetch', 'Reads a page.')),
      parameters(chatTool('search'), chatTool('fetch', 'Reads a file.')),
      'tool 2 "fetch": "…tch\\nReads a page.\\n{\\"type\\":\\"object\\",\\"properties\\":{\\"id…" became "…tch\\nReads a file.\\n{\\"type\\":\\"object\\",\\"properties\\":{\\"id…"',
    ],
    [
      'a property `id` in the schema of a tool',
      parameters({ name: 'search', input_schema: { properties: { id: { type: 'string' } } } }),
      parameters({ name: 'search', input_schema: { properties: { id: { type: 'number' } } } }),
      'tool 1 "search": "…d\\":{\\"type\\":\\"string\\"}}}" became "…d\\":{\\"type\\":\\"number\\"}}}"',
    ],
    [
      'a tool less',
      parameters(chatTool('search'), chatTool('fetch')),
      parameters(chatTool('search')),
      'message 1 (user), in place of tool 2 "fetch"',
    ],
    [
      'tools of LangChain',
      { invocation_params: { tools: ['a'] } },
      { invocation_params: { tools: ['b'] } },
      'tool 1 "b", in place of tool 1 "a"',
    ],
    [
      'tools of Gemini',
      parameters({ functionDeclarations: [{ name: 'search' }] }),
      parameters({ functionDeclarations: [{ name: 'search' }, { name: 'fetch' }] }),
      'tool 2 "fetch", in place of message 1 (user)',
    ],
    ['equal tools', parameters(chatTool('search')), parameters(chatTool('search')), undefined],
  ])('%s', (_, before, after, expected) => expect(said(messages, messages, before, after)).toBe(expected));
});

test('the share of the text before the difference', () => {
  const difference = differenceOf({ messages: [user('aaa'), user('b')] }, { messages: [user('aaa'), user('c')] });
  expect(difference).toEqual({ place: 'message 2 (user)', before: 'b', after: 'c', equal_share: 0.75 });
});

test('the text tells the cached share only if it is known', () => {
  const difference = { place: 'tool 2 "search"', equal_share: 0.126 };
  const text = 'The prompt differs from that of the call 1.5 s earlier from tool 2 "search" on.';
  const equal = "The equal beginning is 12 % of the earlier prompt's text.";
  expect(describeDifference(difference, { seconds_before: 1.5 })).toBe(`${text} ${equal}`);
  expect(describeDifference(difference, { seconds_before: 1.5, cached_share: 0 })).toBe(
    `${text} ${equal} 0 % of the input tokens were read from the cache.`,
  );
});

test.each<[outputs: Inputs, cached: number | undefined]>([
  [{ usage_metadata: { input_tokens: 9, input_token_details: { cache_read: 5 } } }, 5],
  [{ usage_metadata: { input_tokens: 9, input_token_details: { cache_read: 0 } } }, 0],
  [{ usage_metadata: { input_tokens: 9 } }, undefined],
  [{ usage: { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 } } }, 0],
  [{ usage: { input_tokens: 9, cache_read_input_tokens: 0, cache_creation_input_tokens: 9 } }, 0],
  [{ usage: { input_tokens: 9, cache_read_input_tokens: null } }, undefined],
  [{ usage: { input_tokens: 2, cache_read_input_tokens: 7 } }, 7],
  [{}, undefined],
])('the cached tokens of %j', (outputs, cached) => expect(reportedCacheRead(outputs)).toBe(cached));

test.each([
  ['token ids', Array.from({ length: 10 }, (_, at) => at)],
  ['texts without roles', ['text']],
])('a prompt of %s is not compared', (_, input) => {
  const request = { inputs: { input } };
  expect(commonPrefix(request, { inputs: { input: [...input, 'more'] } })).toBeUndefined();
});

test('a prompt with very deep values is compared', () => {
  const deep = user(JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`));
  expect(said({ messages: [deep] }, { messages: [deep, user('b')] })).toBe(undefined);
});
