// Limits and media of the readers of services, and messages of the AI SDK. The table of exchanges has what they read.
import { describe, expect, test } from 'vitest';
import { modelReader, operationReader } from '#src/integrations/ai-sdk/answer.ts';
import { describeModelCall, describeOperation } from '#src/integrations/ai-sdk/calls.ts';
import type { AnswerReader, Fold } from '#src/services/answer.ts';
import { messageCall as message } from '#src/services/anthropic/calls.ts';
import { invocation } from '#src/services/bedrock/invoke.ts';
import type { CallReader } from '#src/services/call-reader.ts';
import { geminiGeneration } from '#src/services/gemini/calls.ts';
import { geminiInteraction } from '#src/services/gemini/interactions.ts';
import { ollamaCalls } from '#src/services/ollama/calls.ts';
import { openaiCalls } from '#src/services/openai/calls.ts';

const { chat } = openaiCalls;

function answerOf(reader: AnswerReader, chunks: readonly unknown[]) {
  const fold = reader.fold?.() as Fold;
  for (const chunk of chunks) fold.add(chunk, false);
  const answer = reader.read(fold.result());
  return fold.error === undefined ? answer : { ...answer, error: fold.error };
}

const block = (content_block: object, index = 0) => ({ type: 'content_block_start', index, content_block });
const delta = (value: object, index = 0) => ({ type: 'content_block_delta', index, delta: value });
const call = { toolCallId: '1', toolName: 'weather' };

describe('an answer of the AI SDK', () => {
  test("has Anthropic's own usage, because it contains what the price depends on", () => {
    const usage = {
      input_tokens: 9,
      output_tokens: 3,
      service_tier: 'priority',
      server_tool_use: { web_search_requests: 2 },
    };
    const finish = { type: 'finish', finishReason: 'stop', providerMetadata: { anthropic: { usage } } };
    expect(answerOf(modelReader, [{ type: 'text-delta', delta: 'It ' }, finish]).outputs).toMatchObject({ usage });
    expect(answerOf(modelReader, [{ ...finish, providerMetadata: { openai: { usage } } }]).outputs).not.toHaveProperty(
      'usage',
    );
  });

  test('has the first error of the stream', () => {
    const errors = [new RangeError('hoarse'), new TypeError('later')].map((error) => ({ type: 'error', error }));
    const answer = answerOf(modelReader, [{ type: 'text-delta', delta: 'It ' }, ...errors]);
    expect(answer.error).toBe(errors[0]?.error);
    expect(answer.outputs).toEqual({ messages: [{ role: 'assistant', content: 'It ' }] });
  });

  test('of several steps is the answer of the last step', () => {
    const step = (value: string) => [
      { type: 'start-step' },
      { type: 'text-delta', text: value },
      { type: 'finish-step' },
    ];
    const parts = [...step('I look.'), ...step('It rains.'), { type: 'finish', finishReason: 'stop' }];
    expect(answerOf(operationReader, parts).outputs).toEqual({ text: 'It rains.', finishReason: 'stop', steps: 2 });
  });
});

test('a chunk never changes a prototype', () => {
  const bad = JSON.parse('{"__proto__": {"polluted": "yes"}, "constructor": {"prototype": {"polluted": "yes"}}}');
  answerOf(chat, [{ choices: [{ delta: bad, ...bad }], ...bad }]);
  answerOf(message, [{ type: 'message_start', message: bad }, block(bad), delta(bad)]);
  const partialArgs = ['$.a[0]', '$.a.__proto__.polluted', '$.__proto__.polluted'].map((jsonPath) => ({ jsonPath }));
  answerOf(geminiGeneration, [{ candidates: [{ content: { parts: [{ functionCall: { partialArgs } }] } }] }]);
  expect(['polluted' in {}, 'polluted' in []]).toEqual([false, false]);
});

const inputsOf =
  (reader: CallReader) =>
  (content: object[]): unknown => {
    const messages = [{ role: 'user', content }];
    const inputs = reader.describe({ messages }, 'a')?.inputs ?? {};
    const [recorded] = inputs.messages as { content: unknown }[];
    return recorded?.content;
  };
const messagesOf = (prompt: unknown[]) => describeModelCall({}, 'chat', { prompt }).inputs.messages as unknown[];
const partsOf = (content: object[]): unknown =>
  (messagesOf([{ role: 'user', content }])[0] as { content: unknown }).content;
const image = (data: unknown, media_type = 'image/png') => ({
  type: 'image',
  source: { type: 'base64', media_type, data },
});
const audio = (data: string | undefined, format = 'wav') => ({ type: 'input_audio', input_audio: { data, format } });
const uriOf = (type: string, data: unknown) => `data:${type};base64,${data}`;
const long = 'A'.repeat(2_000);

describe('base64 in a request', () => {
  // "data:image/png;base64," and "data:audio/wav;base64," have 22 characters. A data URI of up to 1 024 characters stays in the payload.
  const kinds: [
    string,
    (content: object[]) => unknown,
    make: (data: string) => object,
    recorded: (uri: string) => object,
    string,
  ][] = [
    ['audio of OpenAI', inputsOf(chat), audio, audio, 'audio/wav'],
    ['an image of Anthropic', inputsOf(message), image, image, 'image/png'],
    [
      'a document of Anthropic with blocks',
      inputsOf(message),
      (data) => ({ type: 'document', source: { type: 'content', content: [image(data)] } }),
      (data) => ({ type: 'document', source: { type: 'content', content: [image(data)] } }),
      'image/png',
    ],
    [
      'a tool result of Anthropic',
      inputsOf(message),
      (data) => ({ type: 'tool_result', content: [image(data)] }),
      (data) => ({ type: 'tool_result', content: [image(data)] }),
      'image/png',
    ],
  ];

  test.each(kinds)('is a data URI if it is long: %s', (_, record, make, recorded, type) => {
    const [short, big] = ['A'.repeat(1_002), 'A'.repeat(1_003)];
    const part = make(big);
    const before = structuredClone(part);
    expect(record([part, part])).toEqual(Array(2).fill(recorded(uriOf(type, big))));
    expect(record([make(short), make(short)])).toEqual(Array(2).fill(recorded(short)));
    expect(part).toEqual(before);
  });

  const base64 = 'iVBO'.repeat(12);
  const png = `data:image/png;base64,${base64}`;
  test.each<[string, object]>([
    ['4', { type: 'image', mimeType: 'image/png', image: base64 }],
    ['5', { type: 'file', mediaType: 'image/png', data: base64 }],
    ['7', { type: 'file', mediaType: 'image/png', data: { type: 'data', data: base64 } }],
    ['5, as bytes', { type: 'file', mediaType: 'image/png', data: Buffer.from(base64, 'base64') }],
    ['5, generated', { type: 'file', file: { mediaType: 'image/png', base64 } }],
    ['5, with a data URI', { type: 'file', mediaType: 'image/png', data: new URL(png) }],
  ])('is the data URI of an image for AI SDK %s', (_, part) => {
    const before = structuredClone({ ...part, data: undefined });
    const image_url = { type: 'image_url', image_url: { url: png } };
    expect(partsOf([part, part])).toEqual([image_url, image_url]);
    expect({ ...part, data: undefined }).toEqual(before);
  });

  test('is a data URI without a type, and in the result of a tool of the AI SDK', () => {
    const value = [
      { type: 'text', text: 'Here.' },
      { type: 'image-data', data: long, mediaType: 'image/png' },
    ];
    const result = { type: 'tool-result', toolCallId: '1', toolName: 'look', output: { type: 'content', value } };
    const [recorded] = messagesOf([{ role: 'tool', content: [result] }]);
    const converted = [value[0], { ...value[1], data: uriOf('image/png', long) }];
    expect(recorded).toMatchObject({ content: converted });
    expect(partsOf([{ type: 'file', data: long }])).toMatchObject([{ data: uriOf('application/octet-stream', long) }]);
  });

  test.each<[string, (content: object[]) => unknown, object[]]>([
    [
      'OpenAI',
      inputsOf(chat),
      [
        audio(undefined),
        audio(long, 'a b'),
        audio(uriOf('audio/wav', long)),
        { type: 'input_audio' },
        { image_url: 'data:,' },
      ],
    ],
    [
      'Anthropic',
      inputsOf(message),
      [image(long, 'a b'), image(7), { type: 'image', source: { type: 'url', url: 'a' } }],
    ],
    [
      'the AI SDK',
      partsOf,
      [`https://a.example/${'a'.repeat(2_000)}`, uriOf('a/b', long)].map((data) => ({ type: 'file', data })),
    ],
  ])('of another form stays unchanged for %s', (_, record, content) => {
    expect(record(content)).toEqual(content);
  });

  test.each([[chat], [message]])('is not expected in messages of another form', (reader) => {
    for (const messages of [undefined, 'tea', [null, undefined, 3], [{ role: 'user', content: 'tea' }]]) {
      expect(reader.describe({ messages }, 'a')?.inputs.messages).toBe(messages);
    }
    expect(reader.describe(undefined, 'a')).toMatchObject({ metadata: { ls_provider: 'a', ls_model_type: 'chat' } });
  });

  test('of Ollama has the type that its first bytes tell', () => {
    const files = ['RIFF\0\0\0\0WAVE', 'RIFF\0\0\0\0WEBP', 'RIFF'].map((start) => btoa(start.padEnd(2_000, '\x07')));
    const recorded = ollamaCalls.generate.describe({ images: files }, 'a')?.inputs.images;
    const types = ['audio/wav', 'image/webp', 'application/octet-stream'];
    expect(recorded).toEqual(files.map((data, at) => uriOf(types[at] ?? '', data)));
  });

  test('of a generated image is a marker', () => {
    const generated = { type: 'image_generation_call', id: 'ig_1', result: Buffer.alloc(3_000).toString('base64') };
    const recorded = openaiCalls.response.describe({ input: [generated] }, 'a')?.inputs.messages;
    expect(recorded).toEqual([{ ...generated, result: '[Image: 3000 bytes]' }]);
  });
});

describe('a message of the AI SDK', () => {
  const hello = { role: 'user', content: 'Hello.' };
  const text = { type: 'text', text: 'It rains.' };
  const custom = { type: 'custom', data: 1 };
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;

  test.each<[string, unknown[], unknown[]]>([
    ['one text part', [hello, { role: 'user', content: [{ type: 'text', text: 'Hello.' }] }], [hello, hello]],
    [
      'several parts',
      [{ role: 'assistant', content: [{ type: 'reasoning', text: 'Hm.' }, { ...text, providerOptions: {} }, custom] }],
      [{ role: 'assistant', content: [{ type: 'reasoning', reasoning: 'Hm.' }, text, custom] }],
    ],
    ['an unknown form', ['a', null, 7, { content: 1 }], ['a', null, 7, { content: 1 }]],
    ['an unknown part', [{ role: 'tool', content: ['a', custom] }], [{ role: 'tool', content: ['a', custom] }]],
    [
      'arguments that are not JSON',
      [{ role: 'assistant', content: [{ type: 'tool-call', toolCallId: '1', toolName: 'x', input: cyclic }] }],
      [{ role: 'assistant', tool_calls: [{ id: '1', type: 'function', function: { name: 'x', arguments: cyclic } }] }],
    ],
  ])('with %s is recorded in the form of models', (_, messages, expected) => {
    expect(messagesOf(messages)).toEqual(expected);
  });

  test.each<[string, object, object]>([
    ['major 4', { args: { city: 'Cork' } }, { result: 'rain' }],
    ['major 5', { input: { city: 'Cork' } }, { output: { type: 'text', value: 'rain' } }],
  ])('has tool calls and results of %s in the form of models', (_, given, answer) => {
    const answers = [{ ...call, ...answer }, { toolCallId: '2' }].map((part) => ({ type: 'tool-result', ...part }));
    const look = [
      { type: 'text', text: 'I look.' },
      { type: 'tool-call', ...call, ...given },
    ];
    const weather = { name: 'weather', arguments: '{"city":"Cork"}' };
    expect(
      messagesOf([
        { role: 'assistant', content: look },
        { role: 'tool', content: answers },
      ]),
    ).toEqual([
      { role: 'assistant', content: 'I look.', tool_calls: [{ id: '1', type: 'function', function: weather }] },
      { role: 'tool', tool_call_id: '1', name: 'weather', content: 'rain' },
      { role: 'tool', tool_call_id: '2', name: undefined, content: undefined },
    ]);
  });

  test('has the names of the tools', () => {
    const namesOf = (tools: unknown) => describeOperation({ tools }).inputs.tools;
    expect(namesOf({ a: {}, b: {} })).toEqual(['a', 'b']);
    expect(namesOf([{ name: 'a' }, { name: 'b' }])).toEqual(['a', 'b']);
    expect(namesOf(undefined)).toBeUndefined();
  });
});

test('calls of an interaction that share an index keep their type', () => {
  const calls = ['1', '2'].map((id) => ({ type: 'function_call', id, name: 'find', arguments: {} }));
  const start = { event_type: 'content.start', index: 0, content: { type: 'function_call' } };
  const events = calls.map((one) => ({ event_type: 'content.delta', index: 0, delta: one }));
  expect(answerOf(geminiInteraction, [start, ...events]).outputs).toEqual({ outputs: calls });
});

test('an interaction without an input has no message', () => {
  const request = { model: 'small', previous_interaction_id: 'v1_a' };
  expect(geminiInteraction.describe(request, 'google_genai')?.inputs).toEqual({ messages: [] });
});

test.each([undefined, '', 'no JSON', '[1]', 'null', new Uint8Array([255, 0])])(
  'a call of InvokeModel with the body %o is read without an error',
  (body) => {
    const call = invocation({ modelId: undefined, body });
    expect(call.describe(undefined, 'amazon_bedrock')?.inputs).toEqual({});
    expect(call.read(call.answerOf({ output: { body } }))).toMatchObject({ outputs: {} });
  },
);
