import { describe, expect, test } from 'vitest';
import type { RunFields } from '#src/receiver/domain/run-message.ts';
import { inputsPreview, outputsPreview } from '#src/receiver/domain/trace/preview.ts';
import { formats } from '../exchanges/table.ts';

type Payload = NonNullable<RunFields['outputs']>;

describe('a preview says', () => {
  test.each<[string, Payload, string | undefined]>([
    ['nothing of what is empty', {}, undefined],
    ['JSON of white space', { input: ' \n ' }, '{"input":" \\n "}'],
    ['the text that stands alone', { topic: 'otters' }, 'otters'],
    ['the text under a usual name', { id: 7, result: 'Why?', depth: 2 }, 'Why?'],
    [
      'the last message',
      {
        messages: [
          { role: 'system', content: 'Be kind.' },
          { role: 'user', content: 'Hello' },
        ],
        model: 'x',
      },
      'Hello',
    ],
    [
      'the last part of a message that has text',
      {
        messages: [
          {
            content: [
              { type: 'text', text: 'Look:' },
              { type: 'image_url', image_url: {} },
            ],
          },
        ],
      },
      'Look:',
    ],
    ['the choice of an answer', { choices: [{ message: { role: 'assistant', content: 'Yes.' } }], model: 'm' }, 'Yes.'],
    ['JSON of numbers', { a: 1, b: [true, null] }, '{"a":1,"b":[true,null]}'],
    ['the text of a list', { outputs: ['first', 'last'] }, 'last'],
    ['lines as one', { text: 'a\n\n  b\tc' }, 'a b c'],
    ['200 characters', { text: 'x'.repeat(200) }, 'x'.repeat(200)],
    ['and an ellipsis for what is longer', { text: 'x'.repeat(201) }, `${'x'.repeat(200)}…`],
  ])('%s', (_, payload, preview) => {
    expect(inputsPreview({ inputs: payload })).toBe(preview);
    expect(outputsPreview({ outputs: payload })).toBe(preview);
  });

  test('nothing of payloads that are missing', () => {
    expect([inputsPreview({}), outputsPreview({})]).toEqual([undefined, undefined]);
  });

  test('the question that inputs contain among others', () => {
    expect(inputsPreview({ inputs: { id: 7, question: 'Why?', depth: 2 } })).toBe('Why?');
  });

  test('what stands 8 levels deep, and no deeper', () => {
    const nested = (levels: number): Record<string, unknown> => ({
      content: levels === 1 ? 'here' : nested(levels - 1),
    });
    expect(inputsPreview({ inputs: nested(8) })).toBe('here');
    expect(inputsPreview({ inputs: nested(9) })).toMatch(/^\{/);
  });
});

describe('the preview of the outputs says', () => {
  const question = 'What is the answer?';
  const chat = [{ role: 'user', content: question }];

  test.each<[string, Payload, string]>([
    ['the answer beside a question', { question, answer: 'Forty-two.' }, 'Forty-two.'],
    ['the output beside an input', { input: 'Do it', output: 'Done.' }, 'Done.'],
    ['the documents beside a question', { question, documents: ['first', 'last'] }, 'last'],
    ['the poem beside a question, in a result', { result: { question, poem: 'They swim.' } }, 'They swim.'],
    ['JSON of what is beside a question', { question, query: 'q', score: 0.5 }, '{"score":0.5}'],
    ['a question that stands alone', { question }, question],
    [
      'the last message of a longer conversation',
      { messages: [...chat, { role: 'assistant', content: 'Forty-two.' }], question },
      'Forty-two.',
    ],
  ])('%s', (_, outputs, preview) => {
    expect(outputsPreview({ outputs })).toBe(preview);
  });

  const thought = ['I look ', 'it up.'];
  const calls = [{ id: 'call_1', name: 'lookup_order', words: ['10', '42'] }];
  test.each(Object.entries(formats))('the tool call of an answer in the format of %s', (_, { response, counts }) => {
    expect(outputsPreview({ outputs: { ...response({ thought, text: [], calls }, counts) } })).toBe(
      '→ lookup_order(1042)',
    );
  });

  const toolCall = { toolCallId: 'call_1', toolName: 'lookup_order', input: '{"order":1042}' };
  const kwargs = { content: '', tool_calls: [{ id: 'call_1', name: 'lookup_order', args: { order: '1042' } }] };
  test.each<[string, Payload]>([
    [
      'the AI SDK',
      {
        content: [
          { type: 'reasoning', text: 'I look it up.' },
          { type: 'tool-call', ...toolCall },
        ],
      },
    ],
    ['a state of LangGraph', { messages: [...chat, { lc: 1, type: 'constructor', id: ['AIMessage'], kwargs }] }],
  ])('the tool call of %s', (_, outputs) => {
    expect(outputsPreview({ outputs })).toBe('→ lookup_order(1042)');
  });

  test('the text beside a tool call', () => {
    const content = [
      { type: 'text', text: 'I look it up.' },
      { type: 'tool_use', id: 'toolu_1', name: 'lookup_order', input: { order: '1042' } },
    ];
    expect(outputsPreview({ outputs: { role: 'assistant', content } })).toBe('I look it up.');
  });

  test.each<[string, unknown]>([
    ['search("lamp green")', { query: 'lamp green' }],
    ['search(A-77)', { query: 'A-77' }],
    ['search("A-77", 3, true)', { query: 'A-77', limit: 3, isExact: true }],
    ['search()', {}],
    ['search({"query":"a","filter":{"year":2026}})', { query: 'a', filter: { year: 2026 } }],
    ['search({"a":1,"b":2,"c":3,"d":4})', { a: 1, b: 2, c: 3, d: 4 }],
    [`search("${'long '.repeat(8)}…")`, { query: 'long '.repeat(50) }],
  ])('the arguments of a call as %s', (text, args) => {
    const calls = [
      { name: 'search', args },
      { name: 'stop', args: {} },
    ];
    expect(outputsPreview({ outputs: { content: '', tool_calls: calls } })).toBe(`→ ${text}, stop()`);
  });

  const one = '1 embedding, 1,536 numbers';
  const vector = Array.from({ length: 1_536 }, () => 0.5);
  test.each<[string, string, Payload]>([
    ['the size that is recorded', one, { object: 'list', model: 'm', count: 1, dimensions: 1_536, usage: {} }],
    ['the sizes that spans have', one, { embeddings: [{ dimensions: 1_536 }] }],
    ['the vectors of OpenAI', one, { object: 'list', data: [{ object: 'embedding', embedding: vector }] }],
    ['the vectors of Cohere', '2 embeddings, 1,536 numbers each', { embeddings: { float: [vector, vector] } }],
  ])('the size of embeddings by %s', (_, text, outputs) => {
    expect(outputsPreview({ run_type: 'embedding', outputs })).toBe(text);
  });

  test('nothing of embeddings for another run with counts, or one of unknown type', () => {
    const outputs = { count: 1, dimensions: 2 };
    const previews = [outputsPreview({ run_type: 'chain', outputs }), outputsPreview({ outputs })];
    expect(previews).toEqual(['{"count":1,"dimensions":2}', '{"count":1,"dimensions":2}']);
  });
});
