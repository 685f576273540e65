// What services that speak OpenAI's protocol stream in other ways than OpenAI.
import { describe, expect, test } from 'vitest';
import type { Fields } from '../../src/integrations/fields.ts';
import { ChoicesFold } from '../../src/integrations/openai-choices-fold.ts';

const folded = (...chunks: unknown[]): unknown => {
  const fold = new ChoicesFold((answer: Fields) => ({ outputs: answer }));
  for (const chunk of chunks) fold.add(chunk, false);
  return fold.answer().outputs;
};

const call = (fields: object) => ({ choices: [{ index: 0, delta: { tool_calls: [fields] } }] });

describe('chunks', () => {
  test('with whole tool calls that have no index keep them apart', () => {
    const one = { id: 'a', type: 'function', function: { name: 'look_up', arguments: '{}' } };
    const two = { id: 'b', type: 'function', function: { name: 'look_up', arguments: '{}' } };
    expect(folded(call(one), call(two))).toMatchObject({ choices: [{ message: { tool_calls: [one, two] } }] });
  });

  test('that repeat id and name of a tool call with each piece tell them once', () => {
    const piece = (args: string) => call({ index: 0, id: 'a', function: { name: 'look_up', arguments: args } });
    expect(folded(piece('{"a"'), piece(':1}'))).toMatchObject({
      choices: [{ message: { tool_calls: [{ id: 'a', function: { name: 'look_up', arguments: '{"a":1}' } }] } }],
    });
  });

  test('that repeat why they end tell it once', () => {
    const last = { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop' }] };
    expect(folded(last, last)).toMatchObject({ choices: [{ message: { content: 'aa' }, finish_reason: 'stop' }] });
  });

  test('that pad themselves leave no padding in the answer', () => {
    const chunk = { choices: [{ index: 0, delta: { content: 'a' } }], obfuscation: 'x7Kq' };
    expect(folded(chunk)).not.toHaveProperty('obfuscation');
  });

  // As Azure does, in each chunk of a choice.
  test('that judge the content each time tell the last verdict', () => {
    const verdict = (severity: string) => ({ hate: { filtered: false, severity }, violence: { severity: 'safe' } });
    const chunk = (content: string, severity: string) => ({
      choices: [{ index: 0, delta: { content }, finish_reason: null, content_filter_results: verdict(severity) }],
    });
    expect(folded(chunk('a', 'safe'), chunk('b', 'low'))).toMatchObject({
      choices: [{ message: { content: 'ab' }, content_filter_results: verdict('low') }],
    });
    const fold = new ChoicesFold((answer: Fields) => ({ outputs: answer }));
    fold.add(chunk('a', 'safe'), false);
    expect(fold.characters).toBe(1);
  });

  test('of a text completion join text and log probabilities', () => {
    const chunk = (text: string) => ({
      choices: [{ index: 0, text, logprobs: { tokens: [text] }, finish_reason: null }],
    });
    expect(folded(chunk('a'), chunk('b'))).toMatchObject({
      choices: [{ text: 'ab', logprobs: { tokens: ['a', 'b'] } }],
    });
  });

  test('in which the choices come in another order are sorted', () => {
    const chunk = (index: number, content: string) => ({ choices: [{ index, delta: { content } }] });
    expect(folded(chunk(1, 'b'), chunk(0, 'a'), chunk(1, 'B'))).toMatchObject({
      choices: [
        { index: 0, message: { content: 'a' } },
        { index: 1, message: { content: 'bB' } },
      ],
    });
  });

  test('with usage in each of them keep the last', () => {
    expect(folded({ usage: { prompt_tokens: 1 } }, { usage: { prompt_tokens: 2 } }, { usage: null })).toMatchObject({
      usage: { prompt_tokens: 2 },
    });
  });

  test('keep no more text once it is full, and everything else', () => {
    const fold = new ChoicesFold((answer: Fields) => ({ outputs: answer }));
    fold.add({ choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null }] }, false);
    fold.add({ choices: [{ index: 0, delta: { content: 'bc' }, finish_reason: 'stop' }] }, true);
    fold.add({ choices: [{ index: 1, delta: { content: 'd' } }] }, true);
    fold.add({ choices: [], usage: { prompt_tokens: 1 } }, true);
    expect(fold.characters).toBe(4);
    expect(fold.answer().outputs).toMatchObject({
      choices: [{ message: { content: 'a' }, finish_reason: 'stop' }, { message: {} }],
      usage: { prompt_tokens: 1 },
    });
  });

  test.each([[undefined], [null], ['text'], [{}], [{ choices: 'none' }], [{ choices: [null] }]])(
    'that are %j make no answer and no error',
    (chunk) => {
      expect(folded(chunk)).toMatchObject({ choices: expect.any(Array) });
    },
  );
});
