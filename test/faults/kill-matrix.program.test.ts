import { describe, expect, it } from 'vitest';
import { expectPromised } from './kill-expectation.ts';
import { type Cell, cells, DURABILITIES, PROTOCOLS, titleOf } from './kill-matrix.ts';

/** The whole matrix takes minutes: `npm run test:faults -- kill`. */
const FEW = [
  'natural × memory × up',
  ...['natural', 'process.exit', 'SIGTERM'].flatMap((ending) =>
    DURABILITIES.map((durability) => `${ending} × ${durability} × hanging`),
  ),
  'process.exit × memory × up',
  'SIGTERM × memory × up',
  'SIGTERM, not asked for × memory × up',
  'SIGTERM, registered × spill × down',
  'SIGINT twice × memory × hanging',
  'SIGKILL × write-ahead × down',
  'heap full × memory × up',
];

const cell = (title: string): Cell => cells.find((one) => titleOf(one) === title) as Cell;

describe.concurrent('the promise about runs at the end of a program', () => {
  it('exists for every ending, durability and service', () => {
    expect(cells).toHaveLength(11 * 3 * 3);
    expect(cells.filter(({ promised }) => !['now', 'later', 'told', 'none'].includes(promised))).toEqual([]);
  });

  it.each(FEW)('holds for %s', (title) => expectPromised(cell(title)));

  it.each(PROTOCOLS.slice(1))(
    'holds for kill -9 of a process that sends %s, before one that sends %s',
    (...protocols) => expectPromised(cell('SIGKILL × write-ahead × down'), protocols),
  );

  it.each(['natural × memory × up', 'SIGTERM × spill × hanging', 'process.exit × memory × hanging'])(
    'holds with OTLP for %s',
    (title) => expectPromised(cell(title), PROTOCOLS[1]),
  );
});
