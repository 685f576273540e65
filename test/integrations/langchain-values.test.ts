import { Document } from '@langchain/core/documents';
import { HumanMessage } from '@langchain/core/messages';
import { ChatPromptValue, ImagePromptValue, StringPromptValue } from '@langchain/core/prompt_values';
import { describe, expect, it } from 'vitest';
import { plainInputs, plainOutputs, toolInputs } from '../../src/integrations/langchain/payload.ts';

const message = new HumanMessage('a');
const told = { role: 'user', content: 'a' };

describe('a payload', () => {
  it.each<[string, unknown, unknown]>([
    ['text', 'a', { output: 'a' }],
    ['nothing', undefined, {}],
    ['null', null, { output: null }],
    ['a list', [1, message], { output: [1, told] }],
    ['a message', message, { output: told }],
    ['a plain object', { a: 1 }, { a: 1 }],
    ['a state with messages', { a: [{ messages: [message] }] }, { a: [{ messages: [told] }] }],
    ['a prompt of messages', new ChatPromptValue([message]), { messages: [told] }],
    ['a prompt of text', new StringPromptValue('a'), { output: 'a' }],
    [
      'documents in a context',
      { context: [new Document({ pageContent: 'p', metadata: { n: 1 } })] },
      { context: [{ page_content: 'p', type: 'Document', metadata: { n: 1 } }] },
    ],
  ])('of %s is an object with plain forms in it', (_, value, expected) => {
    expect(plainOutputs(value)).toEqual(expected);
  });

  it('without anything of LangChain is the same object', () => {
    const state = { a: [{ b: new Date(0) }], c: 'd' };
    expect(plainInputs(state)).toBe(state);
  });

  it('keeps what it has no plain form for', () => {
    const image = new ImagePromptValue({ url: 'data:,' } as never);
    expect(plainInputs(image)).toEqual({ input: image });
  });

  it('that cannot be read is left to be recorded as it is', () => {
    const { proxy: revoked, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(plainInputs(revoked).input).toBe(revoked);
    const trapped = Object.defineProperty({ message }, 'trap', {
      enumerable: true,
      get: () => {
        throw new Error('trap');
      },
    });
    expect(plainInputs(trapped).input).toBe(trapped);
  });

  it('does not change what it was made of', () => {
    const state = { messages: [message] };
    plainInputs(state);
    expect(state.messages[0]).toBe(message);
  });

  it('is looked through 16 levels deep, and to an end in a circle', () => {
    const nested = (levels: number): unknown => (levels === 0 ? message : { a: nested(levels - 1) });
    expect(JSON.stringify(plainInputs(nested(15)))).toContain('"role":"user"');
    expect(JSON.stringify(plainInputs(nested(16)))).not.toContain('"role":"user"');
    const circle: Record<string, unknown> = { message };
    circle.self = circle;
    expect(plainInputs(circle)).toMatchObject({ message: told });
  });

  it('is looked through at 10 000 values', () => {
    const list = (before: number): unknown => ({ list: [...Array.from({ length: before }, () => ({})), message] });
    const last = (before: number): unknown => (plainInputs(list(before)).list as unknown[]).at(-1);
    // The object and the list are two of them.
    expect(last(9_997)).toEqual(told);
    expect(last(9_998)).toBe(message);
  });
});

describe('the input of a tool', () => {
  it.each([
    ['{"a":1}', { a: 1 }],
    ['{"a":', { input: '{"a":' }],
    ['[1]', { input: '[1]' }],
    ['a', { input: 'a' }],
    [{ a: 1 }, { a: 1 }],
  ])('%j is %j', (input, expected) => {
    expect(toolInputs(input)).toEqual(expected);
  });
});
