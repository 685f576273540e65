import { describe, expect, it } from 'vitest';
import { requestKey } from '#src/run/calls/request-key.ts';

describe('the fingerprint of a request', () => {
  const texts = ['Be brief.', 'Is it raining?'];
  it.each<[string, unknown]>([
    [
      'chat messages',
      {
        messages: [
          { role: 'system', content: texts[0] },
          { role: 'user', content: texts[1] },
        ],
      },
    ],
    ['content parts', { messages: texts.map((text) => ({ role: 'user', content: [{ type: 'text', text }] })) }],
    ["Anthropic's system prompt", { messages: [{ role: 'user', content: texts[1] }], system: texts[0] }],
    ["Gemini's contents", { contents: texts.map((text) => ({ parts: [{ text: ` ${text}` }] })) }],
    ['a response', { input: texts[1], instructions: texts[0] }],
  ])('is the same for %s', (_, inputs) => {
    expect(requestKey(inputs)).toBe(requestKey({ values: texts }));
  });

  it('differs between texts, and is missing without a text', () => {
    const keys = ['', 'a', 'b', 'ab', 'a b'].map((content) => requestKey({ messages: [{ content }] }));
    expect(new Set(keys).size).toBe(5);
    expect([undefined, {}, { messages: [] }, { temperature: 1 }, 7].map(requestKey)).toEqual(Array(5).fill(undefined));
  });
});
