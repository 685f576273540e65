import { expect, it, vi } from 'vitest';
import { runLoop } from '../../bench/loop.mjs';
import { gate } from '../support/gate.ts';

const BLOCKED_MS = 60;

/**
 * The times of ten turns of one run, of which the second keeps the process busy; at a rate one is due each millisecond.
 * Each look at the clock takes a millisecond.
 */
async function timesOf(pace: object, turn: (number: number) => Promise<void> = async () => {}): Promise<number[]> {
  let nowMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => ++nowMs);
  const turnMs = new Float64Array(10);
  const numbers: number[] = [];
  const work = {
    runsPerTurn: 1,
    turn: (number: number) => {
      numbers.push(number);
      if (number === 2) nowMs += BLOCKED_MS;
      return turn(number);
    },
  };
  await runLoop(work, pace, 1, turnMs.length, turnMs);
  clock.mockRestore();
  expect(numbers).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  return [...turnMs];
}

it('as fast as they go, turns count from when they begin', async () => {
  const times = await timesOf({});
  expect(times).toEqual(times.map((_, at) => (at === 1 ? BLOCKED_MS + 1 : 1)));
});

it.each([false, true])(
  'at a rate, turns that a slow one holds up count from when they were due: %s',
  async (isOverlapping) => {
    const times = await timesOf({ runsPerSecond: 1_000, isOverlapping });
    for (const time of times.slice(1, 6)) expect(time).toBeGreaterThanOrEqual(BLOCKED_MS - 10);
  },
);

it('turns that overlap do not wait for each other', async () => {
  const last = gate();
  await timesOf({ runsPerSecond: 1_000, isOverlapping: true }, async (number) => {
    if (number === 10) last.open();
    await last;
  });
});
