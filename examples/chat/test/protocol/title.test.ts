import { expect, test } from 'vitest';
import { branchTitleOf, titleOf } from '../../server/protocol/title.ts';

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

const human = (id: string | undefined, content: string) => ({ type: 'human', id, content });

test.each([
  ['what it goes on from', [human('1', 'First'), human('2', 'x')], [human('3', 'y')], 'First'],
  ['what is said in the place of the first', [human('1', 'First')], [human('1', 'Changed')], 'Changed'],
  ['the first, where a later one is changed', [human('1', 'First'), human('2', 'x')], [human('2', 'y')], 'First'],
  ['what is said, where it begins', [], [human('3', 'y')], 'y'],
  ['the first, where ids are missing', [human(undefined, 'First')], [human(undefined, 'y')], 'First'],
  ['the first, where nothing is said', [human('1', 'First')], undefined, 'First'],
])('the title of a branch is %s', (_, state, input, title) => {
  expect(branchTitleOf({ messages: state }, { messages: input })).toBe(title);
});
