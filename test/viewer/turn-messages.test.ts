import { expect, test } from 'vitest';
import { messagesOfTurn } from '#src/viewer/threads/turn-messages.ts';

const message = (role: string, content: string) => ({ role, content });
const HISTORY = [message('system', 'Be kind'), message('user', 'one?'), message('assistant', 'one.')];

/** Inputs and outputs of a turn, and the texts of its messages by role. */
const TURNS: [string, unknown, unknown, string[]][] = [
  ['texts', { input: 'hi' }, { output: 'hello' }, ['user hi', 'assistant hello']],
  ['the result of a function', { question: 'why?' }, { outputs: 'so' }, ['user why?', 'assistant so']],
  [
    'a model call that repeats the conversation',
    { messages: [...HISTORY, message('user', 'two?')] },
    { choices: [{ message: message('assistant', 'two.') }] },
    ['user two?', 'assistant two.'],
  ],
  [
    'a state that contains the conversation',
    { messages: [message('user', 'two?')] },
    { messages: [...HISTORY, message('user', 'two?'), message('assistant', 'two.')] },
    ['user two?', 'assistant two.'],
  ],
  ['an input beside a history', { input: 'two?', chat_history: HISTORY }, {}, ['user two?']],
  ['a conversation that ends with an answer', { messages: HISTORY }, {}, ['assistant one.']],
  ['a single text under another name', { city: 'Rome' }, { weather: 'sunny' }, ['user Rome', 'assistant sunny']],
  ['other values', { args: [1, 2] }, { a: 1, b: 'x' }, ['user {"args":[1,2]}', 'assistant {"a":1,"b":"x"}']],
  ['nothing', {}, undefined, []],
];

test.each(TURNS)('a turn shows %s', (_, inputs, outputs, expected) => {
  const shown = messagesOfTurn(inputs, outputs).map(({ role, parts }) => {
    const texts = parts.map((part) =>
      part.kind === 'text' ? part.text : 'value' in part && JSON.stringify(part.value),
    );
    return `${role} ${texts.join(' ')}`;
  });
  expect(shown).toEqual(expected);
});
