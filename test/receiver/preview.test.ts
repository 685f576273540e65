import { describe, expect, test } from 'vitest';
import { previewOf } from '#src/receiver/domain/preview.ts';

describe('a preview says', () => {
  test.each<[string, unknown, string | undefined]>([
    ['nothing of what is not there', undefined, undefined],
    ['nothing of what is empty', {}, undefined],
    ['JSON of white space', { input: ' \n ' }, '{"input":" \\n "}'],
    ['the text that stands alone', { topic: 'otters' }, 'otters'],
    ['the text under a usual name', { id: 7, question: 'Why?', depth: 2 }, 'Why?'],
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
    [
      'JSON of a call of a tool',
      { role: 'assistant', content: null, tool_calls: [{ name: 'add' }] },
      '{"role":"assistant","content":null,"tool_calls":[{"name":"add"}]}',
    ],
    ['JSON of numbers', { a: 1, b: [true, null] }, '{"a":1,"b":[true,null]}'],
    ['the text of a list', { outputs: ['first', 'last'] }, 'last'],
    ['lines as one', { text: 'a\n\n  b\tc' }, 'a b c'],
    ['200 characters', { text: 'x'.repeat(200) }, 'x'.repeat(200)],
    ['and an ellipsis for what is longer', { text: 'x'.repeat(201) }, `${'x'.repeat(200)}…`],
  ])('%s', (_, payload, preview) => {
    expect(previewOf(payload)).toBe(preview);
  });

  test('what stands 8 levels deep, and no deeper', () => {
    const nested = (levels: number): unknown => (levels === 0 ? 'here' : { content: nested(levels - 1) });
    expect(previewOf(nested(8))).toBe('here');
    expect(previewOf(nested(9))).toMatch(/^\{/);
  });
});
