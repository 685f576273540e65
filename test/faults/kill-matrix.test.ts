import { describe, expect, it } from 'vitest';
import { expectPromised } from './kill-expectation.ts';
import { type Cell, cells, titleOf } from './kill-matrix.ts';

/** The whole matrix takes minutes: `npm run test:faults -- kill`. */
const FEW = [
  'natural × memory × up',
  'process.exit × memory × up',
  'SIGTERM × memory × up',
  'SIGINT twice × memory × hanging',
  'heap full × memory × up',
];

const cell = (title: string): Cell => cells.find((one) => titleOf(one) === title) as Cell;

describe('what is promised of runs at the end of a program', () => {
  it('is said for every way to end, every durability, and every trouble of the service', () => {
    expect(cells).toHaveLength(10 * 3 * 3);
    expect(cells.filter(({ promised }) => !['now', 'later', 'told', 'none'].includes(promised))).toEqual([]);
  });

  it.each(FEW)('holds for %s', (title) => expectPromised(cell(title)));

  it('holds for a kill that nobody can listen for', async () => {
    await expectPromised(cell('SIGKILL × write-ahead × down'));
    expect.hasAssertions();
  });
});
