import { expect, test } from 'vitest';
import { lineageOf } from '../../page/lineage.ts';
import { state } from './events.ts';

/** Newest first: 4 goes on from 2, and 3 from 1. */
const STATES = [
  state('4', [], { parent: '2' }),
  state('3', [], { parent: '1' }),
  state('2', [], { parent: '1' }),
  state('1', []),
];

test.each([
  ['4', ['4', '2', '1']],
  ['3', ['3', '1']],
  ['1', ['1']],
  ['other', []],
  [undefined, []],
])('what led to %s', (id, line) => {
  expect([...lineageOf(STATES, id)]).toEqual(line);
});

test('of what led to a checkpoint the states that are there are known', () => {
  expect([...lineageOf(STATES.slice(0, 2), '4')]).toEqual(['4']);
});
