import { expect, test, vi } from 'vitest';
import { pastTurns, stateBehind } from '../../page/history.ts';
import type { ThreadState } from '../../page/protocol.ts';
import { ai, human, state } from './events.ts';

const h1 = human('h1', 'Why?');
const h2 = human('h2', 'And?');

/** Two turns; the second was tried again, edited, and a third goes on from the first: newest first, as the server gives them. */
const STATES: readonly ThreadState[] = [
  state('9b', [h1, ai('a1', 'Because'), human('h3', 'Else?'), ai('a4', 'Nothing')], { parent: '9a' }),
  state('9a', [h1, ai('a1', 'Because'), human('h3', 'Else?')], { parent: '99', next: ['model'] }),
  state('99', [h1, ai('a1', 'Because')], { parent: '2', source: 'input', next: ['__start__'] }),
  state('8', [h1, ai('a1', 'Because'), human('h2', 'Or?'), ai('a3', 'Perhaps')], { parent: '7' }),
  state('7', [h1, ai('a1', 'Because'), human('h2', 'Or?')], { parent: '6', source: 'input', next: ['model'] }),
  state('6x', [h1, ai('a1', 'Because'), h2, ai('a2b', 'Twice')], { parent: '6f' }),
  state('6f', [h1, ai('a1', 'Because'), h2], { parent: '6', source: 'fork', next: ['model'] }),
  state('6e', [h1, ai('a1', 'Because'), h2, ai('a2', 'Once')], { parent: '6' }),
  state('6', [h1, ai('a1', 'Because'), h2], { parent: '5', next: ['model'] }),
  state('5', [h1, ai('a1', 'Because')], { parent: '2', source: 'input', next: ['__start__'] }),
  state('2', [h1, ai('a1', 'Because')], { parent: '1' }),
  state('1', [h1], { parent: '0', next: ['model'] }),
  state('0', [], { source: 'input', next: ['__start__'] }),
];

test('checkpoints are told as turns, and those of one place as its versions', () => {
  expect(
    pastTurns(STATES).map(({ question, answer, version, versions, states }) => [
      question,
      answer,
      `${version}/${versions}`,
      states.map(({ checkpoint }) => checkpoint?.checkpoint_id),
    ]),
  ).toEqual([
    ['Else?', 'Nothing', '4/4', ['9b', '9a', '99']],
    ['Or?', 'Perhaps', '3/4', ['8', '7']],
    ['And?', 'Twice', '2/4', ['6x', '6f']],
    ['And?', 'Once', '1/4', ['6e', '6', '5']],
    ['Why?', 'Because', '1/1', ['2', '1', '0']],
  ]);
});

test('a page that ends in the middle of a turn shows what there is of it', () => {
  expect(pastTurns(STATES.slice(-3, -1)).map(({ states }) => states.length)).toEqual([2]);
  expect(pastTurns([])).toEqual([]);
});

test('a state is looked for on the way back, first among the few that are newest', async () => {
  const all = Array.from({ length: 70 }, (_, at) => `${169 - at}`).map((id) => state(id, [], { parent: `${+id - 1}` }));
  const asked: number[] = [];
  vi.stubGlobal('fetch', async (_path: string, { body }: { body: string }) => {
    const { limit, before } = JSON.parse(body) as { limit: number; before?: string };
    asked.push(limit);
    const start = all.findIndex(({ checkpoint }) => checkpoint?.checkpoint_id === before) + 1;
    return Response.json(all.slice(start, start + limit));
  });
  const find = async (id: string): Promise<unknown> =>
    (await stateBehind('t', '168', ({ checkpoint }) => checkpoint?.checkpoint_id === id))?.checkpoint?.checkpoint_id;
  expect([await find('160'), asked.splice(0)]).toEqual(['160', [10]]);
  expect([await find('159'), asked.splice(0)]).toEqual(['159', [10, 50]]);
  expect([await find('100'), asked.splice(0)]).toEqual(['100', [10, 50, 50]]);
  expect([await find('169'), asked.splice(0)]).toEqual([undefined, [10, 50, 50]]);
  vi.unstubAllGlobals();
});
