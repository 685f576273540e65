import { expect, test } from 'vitest';
import type { ProtocolEvent } from '../../page/protocol.ts';
import { WholeStates, wholeStates } from '../../page/whole-states.ts';
import { ai, human, state } from './events.ts';

const [h1, a1, h2] = [human('h1', 'Why?'), ai('a1', 'Because'), human('h2', 'And?')];

const values = (messages: unknown, kept?: number, ...namespace: string[]): ProtocolEvent => ({
  method: 'values',
  params: { namespace, data: { messages, title: 't' }, ...(kept === undefined ? {} : { kept }) },
});

test('a state that says how many messages stay has them all', () => {
  const states = new WholeStates();
  const read = [values([h1]), values([a1, h2], 1), values([], 2), values([h2], 1), values([a1])].map(
    (event) => (states.whole(event).params.data as { messages: unknown }).messages,
  );
  expect(read).toEqual([[h1], [h1, a1, h2], [h1, a1], [h1, h2], [a1]]);
});

test('what is no state of the thread is left as it is, and counts for none', () => {
  const states = new WholeStates();
  const first = states.whole(values([h1]));
  expect(first.params.data).toEqual({ messages: [h1], title: 't' });
  for (const event of [values([a1], undefined, 'tools:1'), values('none'), { ...values([a1]), method: 'tasks' }])
    expect(states.whole(event)).toBe(event);
  expect(states.whole(values([a1], 1)).params.data).toEqual({ messages: [h1, a1], title: 't' });
});

test('so have the states of a list, and those of a server that says nothing of it', () => {
  const list = [state('3', [h1, a1, h2]), { ...state('2', []), kept: 2 }, { ...state('1', [h2]), kept: 1 }];
  expect(wholeStates(list).map(({ values }) => values.messages)).toEqual([
    [h1, a1, h2],
    [h1, a1],
    [h1, h2],
  ]);
  expect(wholeStates([state('2', [h1, a1]), state('1', [h1])]).map(({ values }) => values.messages)).toEqual([
    [h1, a1],
    [h1],
  ]);
});
