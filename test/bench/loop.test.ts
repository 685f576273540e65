import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { runLoop } from '../../bench/loop.mjs';

const BLOCKED_MS = 60;

/** The times of ten turns of one run, of which the second keeps the process busy; at a rate one is due each millisecond. */
async function timesOf(pace: object, turn: () => Promise<void> = async () => {}): Promise<number[]> {
  const turnMs = new Float64Array(10);
  const numbers: number[] = [];
  const work = {
    runsPerTurn: 1,
    turn: (number: number) => {
      numbers.push(number);
      if (number === 2) block();
      return turn();
    },
  };
  await runLoop(work, pace, 1, turnMs.length, turnMs);
  expect(numbers).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  return [...turnMs];
}

it('as fast as they go, turns count from when they begin', async () => {
  const [, slow, next] = (await timesOf({})) as [number, number, number];
  expect(slow).toBeGreaterThanOrEqual(BLOCKED_MS);
  expect(next).toBeLessThan(slow);
});

it.each([false, true])(
  'at a rate, turns that a slow one holds up count from when they were due: %s',
  async (isOverlapping) => {
    const times = await timesOf({ runsPerSecond: 1_000, isOverlapping });
    for (const time of times.slice(1, 6)) expect(time).toBeGreaterThanOrEqual(BLOCKED_MS - 10);
  },
);

it('turns that overlap do not wait for each other', async () => {
  const startMs = performance.now();
  await timesOf({ runsPerSecond: 1_000, isOverlapping: true }, () => sleep(200));
  expect(performance.now() - startMs).toBeLessThan(10 * 200);
});

function block(): void {
  const startMs = performance.now();
  while (performance.now() - startMs < BLOCKED_MS);
}
