import { describe, expect, it } from 'vitest';
import { Pace } from '../../src/export/pace.ts';
import { virtualTime } from '../support/virtual-time.ts';

describe('Pace', () => {
  it('is free until a pause is asked for', () => {
    expect(new Pace(() => 0).remainingMs).toBe(0);
  });

  it('keeps the longest of several pauses', () => {
    const pace = new Pace(() => 0);
    pace.pause(5_000);
    pace.pause(2_000);
    expect(pace.remainingMs).toBe(5_000);
    pace.pause(9_000);
    expect(pace.remainingMs).toBe(9_000);
  });

  it('counts the time paused so far once, however many pauses overlap', () => {
    let nowMs = 100;
    const pace = new Pace(() => nowMs);
    pace.pause(1_000);
    pace.pause(1_500);
    expect(pace.activeMs).toBe(100);
    nowMs = 1_100;
    expect(pace.activeMs).toBe(100);
    nowMs = 5_000;
    expect(pace.activeMs).toBe(3_500);
  });
});

describe('Pace.defer', () => {
  it.each([
    [0, 120_000],
    [0.5, 126_000],
    [1, 132_000],
  ])('at chance %d pauses for %i ms where 120 000 ms are asked for [fault 15]', (random, expectedMs) => {
    const pace = new Pace(() => 0, { random: () => random });
    pace.defer(120_000);
    expect(pace.remainingMs).toBe(expectedMs);
  });
});

describe('Pace.refused', () => {
  it('pauses for 1 s, 5 s, 30 s, 2 min and then 5 min, and for 1 s again after a request was accepted', () => {
    const time = virtualTime();
    const pace = new Pace(time.monotonicMs, time);
    const pauses: number[] = [];
    const refuse = (): void => {
      pace.refused('status 403');
      pauses.push(pace.remainingMs);
      time.advance(pace.remainingMs);
    };
    for (let probe = 0; probe < 6; probe++) refuse();
    pace.accepted();
    refuse();

    expect(pauses).toEqual([1_000, 5_000, 30_000, 120_000, 300_000, 300_000, 1_000]);
  });

  it('counts concurrent requests as one refusal', () => {
    const pace = new Pace(() => 0);
    for (let request = 0; request < 4; request++) pace.refused('status 403');

    expect(pace.remainingMs).toBe(1_000);
  });
});

describe('Pace.unblock', () => {
  it('ends a block and lets on what waits, and counts as paused what was waited', async () => {
    const time = virtualTime();
    const pace = new Pace(time.monotonicMs, time);
    pace.refused('status 401');
    const waiting = pace.waitOut(new AbortController().signal);
    time.advance(600);
    pace.unblock();
    await waiting;

    expect([pace.remainingMs, pace.activeMs]).toEqual([0, 0]);
    time.advance(9_000);
    expect(pace.activeMs).toBe(9_000);
  });

  it('does not end a pause that the service has asked for', () => {
    const pace = new Pace(() => 0);
    pace.refused('status 401');
    pace.pause(60_000);
    pace.unblock();

    expect(pace.remainingMs).toBe(60_000);
  });
});

describe('Pace.waitOut', () => {
  it('goes by the time that it is when its timer fires, early or hours late [fault 40]', async () => {
    const time = virtualTime();
    const fired: (() => void)[] = [];
    const delay = () => new Promise<void>((resolve) => void fired.push(resolve));
    const pace = new Pace(time.monotonicMs, { delay });
    pace.pause(120_000);
    const isOver = expect.soft(pace.waitOut(new AbortController().signal)).resolves;
    time.advance(119_000);
    fired[0]?.();
    await new Promise((resolve) => setImmediate(resolve));
    expect(fired).toHaveLength(2);
    time.advance(7_200_000);
    fired[1]?.();
    await isOver.toBeUndefined();
    expect(fired).toHaveLength(2);
  });
});

describe('Pace.backOff', () => {
  it.each([
    [1, 500],
    [2, 1_000],
    [100, 30_000],
  ])('after %i failures waits for up to %i ms', async (failures, expectedMs) => {
    const time = virtualTime(true, 1);
    await new Pace(time.monotonicMs, time).backOff(failures, new AbortController().signal);
    expect(time.waits).toEqual([expectedMs]);
  });
});

describe('Pace.hurry', () => {
  it.each([
    [499, false],
    [500, true],
    [501, true],
  ])('ends a back-off %i ms after the one before at once: %s', (laterMs, isAtOnce) => {
    let nowMs = 0;
    const pace = new Pace(() => nowMs);
    const first = pace.patience;
    pace.hurry();
    const second = pace.patience;
    nowMs = laterMs;
    pace.hurry();

    expect([first.aborted, second.aborted]).toEqual([true, isAtOnce]);
  });

  it('ends one that came too soon a little later, once for all that asked', async () => {
    const pace = new Pace(() => 0);
    pace.hurry();
    const { patience } = pace;
    pace.hurry();
    pace.hurry();
    await new Promise<void>((resolve) => patience.addEventListener('abort', () => resolve()));

    expect(pace.patience.aborted).toBe(false);
  });
});

describe('Pace.isSettledWithin', () => {
  it('goes on ending back-offs while somebody waits', async () => {
    const pace = new Pace(() => performance.now());
    let passed = (): void => {};
    const waiting = pace.isSettledWithin(
      new Promise((resolve) => {
        passed = resolve;
      }),
      1_000_000,
    );
    const { patience } = pace;
    await new Promise<void>((resolve) => patience.addEventListener('abort', () => resolve()));
    passed();

    expect(await waiting).toBe(true);
  });
});
