import { expect, test } from 'vitest';
import { titleOf } from '../../server/protocol/title.ts';

const said = (...messages: unknown[]) => titleOf({ messages });

test('a title is what a person said first, in one line', () => {
  expect(
    said(
      { type: 'ai', content: 'Hi' },
      { type: 'human', content: ' What is\n a heron? ' },
      { type: 'human', content: 'x' },
    ),
  ).toBe('What is a heron?');
  expect(
    said({
      role: 'user',
      content: [{ type: 'text', text: 'Two' }, { type: 'image' }, { type: 'text', text: 'parts' }],
    }),
  ).toBe('Two parts');
});

test('a title has at most 80 characters, none of which is cut, and says that it goes on', () => {
  for (const [count, kept, end] of [
    [79, 79, ''],
    [80, 80, ''],
    [81, 79, '…'],
  ] as const) {
    expect(said({ type: 'human', content: '😀'.repeat(count) })).toBe('😀'.repeat(kept) + end);
  }
  expect(said({ type: 'human', content: `${'x'.repeat(78)} yz` })).toBe(`${'x'.repeat(78)}…`);
});

test('input without words has no title', () => {
  for (const input of [
    null,
    undefined,
    'x',
    7,
    {},
    { messages: 'x' },
    { messages: [] },
    { messages: [null, 7, { type: 'human' }] },
  ]) {
    expect(titleOf(input)).toBe('');
  }
});
