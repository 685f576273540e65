import { expect, it } from 'vitest';
import { forestOf, type Tree } from '../../src/testing/forest.ts';
import { makeRun } from '../support/records.ts';

/** `a(b,c)`: a run with those below it; `?` behind an orphan. */
const text = ({ run, children, isOrphan }: Tree): string =>
  `${run.name}${isOrphan ? '?' : ''}${children.length === 0 ? '' : `(${children.map(text).join(',')})`}`;

it.each([
  ['in the order of their start', [makeRun('1.2', 'c'), makeRun('1', 'a'), makeRun('1.1', 'b')], 'a(b,c)'],
  ['as orphans where the parent has not come', [makeRun('1.1', 'b'), makeRun('1.1.1', 'c')], 'b?(c)'],
  ['once when they came twice', [makeRun('1', 'a'), makeRun('1', 'a')], 'a'],
  ['once when they are their own parent', [makeRun('1', 'a', { parent_run_id: '1' })], 'a?'],
  [
    'once in a ring, and below it',
    [
      makeRun('1', 'a', { parent_run_id: '2' }),
      makeRun('2', 'b', { parent_run_id: '1' }),
      makeRun('3', 'c', { parent_run_id: '1' }),
    ],
    'a?(b,c)',
  ],
])('runs stand %s', (_, runs, expected) => {
  expect(forestOf(runs).map(text).join(' ')).toBe(expected);
});
