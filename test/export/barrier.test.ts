import { describe, expect, it } from 'vitest';
import { Barrier } from '../../src/export/barrier.ts';

/** Whether the promise has resolved by now. */
async function hasPassed(promise: Promise<void>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<false>((resolve) => setImmediate(resolve, false))]);
}

describe('Barrier', () => {
  it('is passed at once when nothing has entered', async () => {
    expect(await hasPassed(new Barrier().passed())).toBe(true);
  });

  it('is passed when everything that entered before has left, in any order', async () => {
    const barrier = new Barrier();
    const groups = [barrier.enter(), barrier.enter()];
    const passed = barrier.passed();
    barrier.leave(groups[1] as (typeof groups)[0]);

    expect(await hasPassed(passed)).toBe(false);
    barrier.leave(groups[0] as (typeof groups)[0]);
    expect(await hasPassed(passed)).toBe(true);
  });

  it('does not wait for what enters later', async () => {
    const barrier = new Barrier();
    const early = barrier.enter();
    const passed = barrier.passed();
    barrier.enter();
    barrier.leave(early);

    expect(await hasPassed(passed)).toBe(true);
  });

  it('lets a later flush wait for what an earlier one waits for too', async () => {
    const barrier = new Barrier();
    const early = barrier.enter();
    const first = barrier.passed();
    const late = barrier.enter();
    const second = barrier.passed();
    barrier.leave(late);

    expect(await hasPassed(second)).toBe(false);
    barrier.leave(early);
    expect([await hasPassed(first), await hasPassed(second)]).toEqual([true, true]);
  });

  it('gives flushes with nothing between them the same wait', () => {
    const barrier = new Barrier();
    barrier.enter();

    expect(barrier.passed()).toBe(barrier.passed());
  });
});
