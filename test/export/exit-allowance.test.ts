import { expect, it } from 'vitest';
import { ExitAllowance } from '../../src/export/exit-allowance.ts';

it('grants the whole limit to the first wait, and what it leaves to the others', () => {
  const allowance = new ExitAllowance(2_000);
  expect(allowance.beginMs(0)).toBe(2_000);
  allowance.end(500, 490);
  expect(allowance.beginMs(490)).toBe(1_500);
  allowance.end(1_499, 1_980);
  expect(allowance.beginMs(1_980)).toBe(1);
});

it.each([
  [1_999, 1],
  [2_000, 0],
  [2_001, 0],
])('grants after a wait of %i ms out of 2 000 another %i', (tookMs, leftMs) => {
  const allowance = new ExitAllowance(2_000);
  allowance.beginMs(0);
  allowance.end(tookMs, tookMs);
  expect(allowance.beginMs(tookMs)).toBe(leftMs);
});

it('grants three waits to one end, however short they are', () => {
  const allowance = new ExitAllowance(2_000);
  const granted = [1, 2, 3, 4, 5].map((idleMs) => {
    const ms = allowance.beginMs(idleMs);
    allowance.end(0, idleMs);
    return ms;
  });
  expect(granted).toEqual([2_000, 2_000, 2_000, 0, 0]);
});

it.each([
  [9, 0],
  [10, 0],
  [11, 2_000],
])('grants %i ms of waiting for something else later another %i', (idleMs, grantedMs) => {
  const allowance = new ExitAllowance(2_000);
  allowance.beginMs(0);
  allowance.end(2_000, 2_000);
  expect(allowance.beginMs(2_000 + idleMs)).toBe(grantedMs);
});
