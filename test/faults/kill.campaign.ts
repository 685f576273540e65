import { afterAll, describe, it } from 'vitest';
import { expectPromised } from './kill-expectation.ts';
import { cells, DURABILITIES, ENDINGS, SERVICES, titleOf } from './kill-matrix.ts';

/** How often each cell is run. */
const ROUNDS = Number(process.env.FAULT_ROUNDS ?? 1);

const reached = new Map<string, number>(cells.map((cell) => [titleOf(cell), 0]));

describe('what is promised of runs at the end of a program holds for', () => {
  it.each(Array.from({ length: ROUNDS }).flatMap(() => cells.map((cell) => [titleOf(cell), cell] as const)))(
    '%s',
    async (title, cell) => {
      await expectPromised(cell);
      reached.set(title, (reached.get(title) ?? 0) + 1);
    },
  );
});

afterAll(() => {
  const columns = DURABILITIES.flatMap((durability) => SERVICES.map((service) => `${durability} × ${service}`));
  const lines = ENDINGS.map((ending) => {
    const counts = columns.map((column) => String(reached.get(`${ending} × ${column}`)).padStart(column.length));
    return [ending.padEnd(24), ...counts].join('  ');
  });
  console.log(
    ['How often each cell was as promised:', ['ending'.padEnd(24), ...columns].join('  '), ...lines].join('\n'),
  );
});
