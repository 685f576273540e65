import { expect, test } from 'vitest';
import { parametersOf, toolsOf } from '#src/services/call-settings.ts';
import { callCodeOf } from '#src/viewer/payload/call-code.ts';

const schema = { type: 'object', properties: { order: { type: 'string' } } };
const user = { role: 'user', content: "Where's order 5?" };

test.each<[string, object]>([
  ['OpenAI chat', { type: 'function', function: { name: 'find', description: 'Finds', parameters: schema } }],
  ['OpenAI responses', { type: 'function', name: 'find', description: 'Finds', parameters: schema }],
  ['Anthropic', { name: 'find', description: 'Finds', input_schema: schema }],
  ['the AI SDK', { type: 'function', name: 'find', description: 'Finds', inputSchema: schema }],
  ['Gemini', { functionDeclarations: [{ name: 'find', description: 'Finds', parameters: schema }] }],
])('the tools of %s are definitions with a schema', (_, tool) => {
  expect(toolsOf({ tools: [tool] })).toEqual([{ name: 'find', description: 'Finds', parameters: schema }]);
});

test('parameters come from the metadata and from inputs beside the conversation', () => {
  const inputs = { messages: [user], temperature: 0 };
  const extra = { metadata: { ls_invocation_params: { model: 'm', top_p: null } } };
  expect(parametersOf({ inputs, extra })).toEqual({ model: 'm', temperature: 0 });
});

function curl(name: string, provider: string, parameters: object, inputs: object) {
  const code = callCodeOf({
    name,
    inputs,
    extra: { metadata: { ls_provider: provider, ls_invocation_params: parameters } },
  });
  const [head = '', body = 'null'] = code?.curl.split(/(?<=<<'JSON'\n)|\nJSON\n/) ?? [];
  const [, base, path] = /:-(.+)\}(.+)" /.exec(head) ?? [];
  return [`${base}${path}`, JSON.parse(body)];
}

test('a model call is copied as a request to the API that was called, without the stream', () => {
  const system = { role: 'system', content: 'Be kind' };
  expect(curl('chat', 'groq', { model: 'm', stream: true, seed: 1 }, { messages: [system, user] })).toEqual([
    'https://api.openai.com/v1/chat/completions',
    { model: 'm', seed: 1, messages: [system, user] },
  ]);
  expect(curl('openai.responses', 'openai', { model: 'm' }, { messages: [user] })).toEqual([
    'https://api.openai.com/v1/responses',
    { model: 'm', input: [user] },
  ]);
  expect(curl('call', 'anthropic', { model: 'm', max_tokens: 9 }, { messages: [system, user] })).toEqual([
    'https://api.anthropic.com/v1/messages',
    { model: 'm', max_tokens: 9, system: 'Be kind', messages: [user] },
  ]);
  expect(callCodeOf({ name: 'call', model: 'm', inputs: { question: 'Why?' } })).toBeUndefined();
  expect(
    callCodeOf({ name: 'call', model: 'm', inputs: { messages: [user] } })?.typescript,
  ).toBe(`import OpenAI from 'openai';

// The client reads OPENAI_API_KEY and OPENAI_BASE_URL from the environment.
const client = new OpenAI();
const response = await client.chat.completions.create({
  "model": "m",
  "messages": [
    {
      "role": "user",
      "content": "Where's order 5?"
    }
  ]
});
console.log(response);
`);
});
