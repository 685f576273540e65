import { expect } from 'vitest';
import { namesOf, outcomeOf } from './kill-cell.ts';
import type { Cell } from './kill-matrix.ts';

const LOST = /^runspan: (the process ends with \d+ runs? not delivered|\d+ runs? (was|were) dropped)/;

/** Goes through a cell, and holds what came of it against what is promised. */
export async function expectPromised(cell: Cell): Promise<void> {
  const { ended, bare, told, now, later } = await outcomeOf(cell);
  expect(ended).toEqual(bare);
  const first = namesOf('first');
  if (cell.promised === 'now') expect(now).toEqual(first);
  if (cell.promised === 'later') expect(later).toEqual(expect.arrayContaining(first));
  const isLossTold = told.some((line) => LOST.test(line));
  if (cell.promised !== 'none') expect(isLossTold, told.join('')).toBe(cell.promised === 'told');
}
