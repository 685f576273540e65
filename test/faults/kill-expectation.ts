import { expect } from 'vitest';
import { namesOf, outcomeOf } from './kill-cell.ts';
import { type Cell, PROTOCOLS, type Protocols } from './kill-matrix.ts';

const LOST = /^runspan: (the process exits with undelivered runs|\d+ runs? (was|were) dropped)/;

/** Runs a cell and compares its outcome with what is promised. */
export async function expectPromised(cell: Cell, protocols: Protocols = PROTOCOLS[0]): Promise<void> {
  const { ended, bare, told, now, later, incomplete } = await outcomeOf(cell, protocols);
  expect(ended).toEqual(bare);
  const first = namesOf('first');
  if (cell.promised === 'now') expect(now).toEqual(first);
  if (cell.promised === 'later') expect(later).toEqual(expect.arrayContaining(first));
  // Only the last run of the program is open.
  expect(incomplete.filter((name) => !name.endsWith(' 9'))).toEqual([]);
  const isLossTold = told.some((line) => LOST.test(line));
  if (cell.promised !== 'none') expect(isLossTold, told.join('')).toBe(cell.promised === 'told');
}
