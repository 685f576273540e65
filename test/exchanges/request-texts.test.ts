import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { messagesOfInputs } from '#src/services/conversation.ts';
import type { Part } from '#src/services/message.ts';
import { pathsOfTexts, textOfPart, valueAt, withValue } from '#src/viewer/rerun/request-texts.ts';
import { forAll } from '../support/campaign.ts';
import { formats } from './table.ts';

type Turn = Record<'role', 'user' | 'assistant'> & Record<'texts', readonly string[]>;

const blocks = (texts: readonly string[], type = 'text') => texts.map((text) => ({ type, text }));
const joined = ({ texts }: Turn) => texts.join(' ');
const plain = (turns: readonly Turn[]) => turns.map((turn) => ({ role: turn.role, content: joined(turn) }));
const listed = (turns: readonly Turn[]) => turns.map(({ role, texts }) => ({ role, content: blocks(texts) }));
const typed = ({ role, texts }: Turn) => ({ role, content: blocks(texts, 'input_text') });
const ofGemini = ({ role, texts }: Turn) => ({ role, parts: texts.map((text) => ({ text })) });
const result = (content: string) => ({ role: 'tool', tool_call_id: 'a', name: 'text', content });

/** Requests with instructions and turns, by format. */
const bodies: Readonly<Record<string, (system: string, turns: readonly Turn[]) => object>> = {
  'chat completions': (content, turns) => ({ messages: [{ role: 'system', content }, ...plain(turns)] }),
  'chat completions of blocks': (content, turns) => ({ messages: [{ role: 'developer', content }, ...listed(turns)] }),
  'responses of a text': (instructions, turns) => ({ instructions, input: turns.map(joined).join(' ') }),
  'responses of a list': (instructions, turns) => ({ instructions, input: turns.map(typed) }),
  Anthropic: (system, turns) => ({ system, messages: plain(turns) }),
  'Anthropic of blocks': (system, turns) => ({ system: blocks([system]), messages: listed(turns) }),
  Gemini: (text, turns) => ({ systemInstruction: { parts: [{ text }] }, contents: turns.map(ofGemini) }),
  Cohere: (content, turns) => ({ messages: [{ role: 'system', content }, ...listed(turns)], documents: ['a', 'text'] }),
  Ollama: (content, turns) => ({ messages: [{ role: 'system', content }, ...plain(turns)], options: { stop: ['a'] } }),
  'a prompt of Ollama': (system, turns) => ({ system, prompt: turns.map(joined).join(' ') }),
  Mistral: (content, turns) => ({ messages: [{ role: 'system', content }, ...plain(turns), result(content)] }),
};

const settings = { model: 'text', metadata: { user: 'user', content: 'content' }, stop: ['text', 'a'], temperature: 1 };
const text = fc.oneof(
  fc.string({ minLength: 1, unit: 'grapheme' }),
  fc.constantFrom('user', 'assistant', 'text', 'a', '[1]', '{"a":1}', 'data:text/plain,a', '[Redacted]', '\r\n '),
);
const turn = fc.record({
  role: fc.constantFrom('user' as const, 'assistant' as const),
  texts: fc.array(text, { minLength: 1, maxLength: 3 }),
});

function found(request: object) {
  const messages = messagesOfInputs(request) ?? [];
  return { messages, parts: messages.flatMap(({ parts }) => parts), paths: pathsOfTexts(request, messages) };
}

test.each(Object.entries(bodies))('each text of %s has a path that changes this text only', (_, bodyOf) => {
  forAll(100, [text, fc.array(turn, { minLength: 1, maxLength: 5 }), text], (system, turns, words) => {
    const body = { ...settings, ...bodyOf(system, turns) };
    const { messages, parts, paths } = found(body);
    const changedOf = (part: Part) => (part.kind === 'result' ? { value: 'found' } : { text: words });
    for (const changed of parts.filter((part) => textOfPart(part) !== undefined)) {
      const path = paths.get(changed) ?? ['unknown'];
      const edited = withValue(body, path, Object.values(changedOf(changed))[0]);
      const expected = messages.map((message) => ({
        ...message,
        parts: message.parts.map((part) => (part === changed ? { ...part, ...changedOf(part) } : part)),
      }));
      expect(messagesOfInputs(edited)).toEqual(expected);
      expect(withValue(edited, path, textOfPart(changed))).toEqual(body);
    }
  });
});

// The inputs of a conversation of Mistral are in no list of messages, so only the JSON of such a request can be edited.
const { 'Mistral conversations': _, ...readable } = formats;
test.each(Object.entries(readable))('only the texts of a request of %s have paths', (_, format) => {
  const { paths } = found(format.body);
  expect([...paths.values()].map((path) => valueAt(format.body, path)).sort()).toEqual(['Be kind.', 'See this.']);
});

test('a text that is in no single place of a request has no path', () => {
  const one = [{ role: 'tool', tool_call_id: 'c', content: blocks(['one', 'two']) }];
  const { parts, paths } = found({ messages: [...one, ...listed([{ role: 'user', texts: ['one'] }])] });
  expect(parts.map((part) => paths.get(part))).toEqual([undefined, ['messages', '1', 'content', '0', 'text']]);
});

test('the texts of 2,000 messages are found with few probes', () => {
  const messages = plain(Array.from({ length: 2_000 }, (_, at) => ({ role: 'user', texts: [`text ${at}`] })));
  // Each probe reads each text twice.
  const read = vi.fn(() => messages);
  const counted = Object.defineProperty({}, 'messages', { enumerable: true, get: read });
  expect(found(counted).paths.size).toBe(2_000);
  expect(read.mock.calls.length / 2_000).toBeLessThan(5);
});
