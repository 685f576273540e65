import { describe, expect, it } from 'vitest';
import { SendGate } from '../../src/export/service.ts';

const gateWith = (random = 1) => new SendGate({ retryDelayMs: 500, retryDelayMaxMs: 30_000, random: () => random });

describe('SendGate', () => {
  it('is open until a pause is asked for', () => {
    expect(gateWith().openAtMs).toBeLessThanOrEqual(0);
  });

  it.each([
    [0, 120_000],
    [0.5, 126_000],
    [1, 132_000],
  ])('at chance %d pauses for %i ms if 120 000 ms are asked for', (random, expectedMs) => {
    const gate = gateWith(random);
    gate.defer(0, 120_000);
    gate.defer(0, 2_000);

    expect(gate.openAtMs).toBe(expectedMs);
  });

  it('counts paused time once, however many pauses overlap', () => {
    const gate = gateWith(0);
    gate.defer(100, 1_000);
    gate.defer(100, 1_500);

    expect([100, 1_100, 5_000].map((nowMs) => gate.activeAt(nowMs))).toEqual([100, 100, 3_500]);
  });

  it('waits 1 s, 5 s, 30 s, 2 min and then 5 min for a probe, and 1 s again after a request was accepted', () => {
    const gate = gateWith();
    const waits: number[] = [];
    let nowMs = 0;
    const refuse = (): void => {
      gate.refused(nowMs, false);
      waits.push(gate.openAtMs - nowMs);
      nowMs = gate.openAtMs;
    };
    for (let probe = 0; probe < 6; probe++) refuse();
    gate.accepted(nowMs);
    refuse();

    expect(waits).toEqual([1_000, 5_000, 30_000, 120_000, 300_000, 300_000, 1_000]);
  });

  it('counts concurrent refusals as one', () => {
    const gate = gateWith();
    for (let request = 0; request < 4; request++) gate.refused(0, false);

    expect(gate.openAtMs).toBe(1_000);
  });

  it('ends the wait for a probe, but no pause that the service asked for', () => {
    const gate = gateWith(0);
    gate.refused(0, false);
    gate.defer(0, 500);
    gate.unblock(0);

    expect(gate.openAtMs).toBe(500);
    expect(gate.activeAt(9_000)).toBe(8_500);
  });

  it('backs off between the waves of an outage, for longer with each', () => {
    const gate = gateWith();
    for (let request = 0; request < 4; request++) gate.failed(0);
    expect(gate.openAtMs).toBe(500);
    gate.failed(500);
    gate.failed(600);
    expect(gate.openAtMs).toBe(1_500);
    expect(gate.outageSinceMs).toBe(0);
    gate.accepted(1_600);
    expect(gate.openAtMs).toBeLessThanOrEqual(0);
    expect(gate.isOutage).toBe(false);
  });

  it('ends a back-off for a flush', () => {
    const gate = gateWith();
    gate.failed(0);
    gate.endBackOff();

    expect([gate.openAtMs <= 0, gate.isOutage]).toEqual([true, true]);
  });
});
