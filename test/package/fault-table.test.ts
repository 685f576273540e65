import { expect, it } from 'vitest';
import { faults, groups } from '../faults/faults.mjs';
import { faultTable } from './fault-table.ts';

it('what is required of each fault is as the committed page says; npm run matrix updates it', async () => {
  await expect(faultTable(groups)).toMatchFileSnapshot('../../docs/faults.md', 'update it with: npm run matrix');
});

it('the rows are numbered one after the other', () => {
  expect(faults.map(({ number }) => number)).toEqual(faults.map((_, at) => at + 1));
});

it('no row breaks its table, and each is told in sentences', () => {
  const broken = faults.filter(({ fault, required, simulated = 'x' }) => {
    const texts = [fault, required, simulated];
    return (
      texts.some((text) => text === '' || /[|\n]/.test(text)) || !required.endsWith('.') || simulated.endsWith('.')
    );
  });
  expect(broken).toEqual([]);
});
