import { afterAll, describe, it } from 'vitest';
import { expectPromised } from './kill-expectation.ts';
import { cells, DURABILITIES, ENDINGS, PROTOCOLS, SERVICES, titleOf } from './kill-matrix.ts';

const ROUNDS = Number(process.env.FAULT_ROUNDS ?? 1);

const reached = new Map<string, number>(cells.map((cell) => [titleOf(cell), 0]));

describe.each(PROTOCOLS)(
  'what is promised of runs at the end of a program that sends %s, then %s, holds for',
  (...protocols) => {
    // Only what arrives later depends on the program that is started again.
    const isSame = protocols[0] === protocols[1];
    const dependent = cells.filter(({ promised }) => isSame || promised === 'later');
    const each = Array.from({ length: ROUNDS }).flatMap(() => dependent.map((cell) => [titleOf(cell), cell] as const));
    it.each(each)('%s', async (title, cell) => {
      await expectPromised(cell, protocols);
      reached.set(title, (reached.get(title) ?? 0) + 1);
    });
  },
);

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
