import { describe, expect, it } from 'vitest';
import { summarize } from '../../bench/summary.mjs';

const LOST = { cpuUsPerRun: 1, complaint: '30 runs created, 29 arrived whole' };
const us = (cpuUsPerRun: number) => ({ cpuUsPerRun });

describe('the summary of rounds', () => {
  it('has median and spread, and ratios and differences that are made within each round', () => {
    const rounds = [
      { untraced: us(1), limit: us(10), 'otlp-json': us(40), own: us(20) },
      { untraced: us(2), limit: us(20), 'otlp-json': us(60), own: us(60) },
      { untraced: us(3), limit: us(40), 'otlp-json': us(10), own: us(40) },
    ];
    const [row] = summarize(['own'], rounds);
    expect(row).toMatchObject({
      cpuUsPerRun: { median: 40, min: 20, max: 60, toLimit: 2, toOtlp: 1, overUntraced: 37 },
    });
  });

  it('has the ratio to traceable, which is made within each round', () => {
    const rates = [
      [100, 50],
      [300, 30],
      [200, 40],
    ];
    const rounds = rates.map(([traceable, own]) => ({
      traceable: { runsPerSecond: traceable },
      own: { runsPerSecond: own },
    }));
    const [row] = summarize(['own'], rounds);
    expect(row?.runsPerSecond).toMatchObject({ median: 40, toTraceable: 0.2 });
  });

  it('has no figure of a driver of which one round does not count', () => {
    const rounds = [
      { limit: us(10), own: us(20) },
      { limit: us(10), own: LOST },
    ];
    const [row] = summarize(['own'], rounds);
    expect(row).toMatchObject({ complaint: 'round 2: 30 runs created, 29 arrived whole' });
    expect(row?.cpuUsPerRun).toBeUndefined();
  });

  it('has no ratio to a limit that does not count', () => {
    const [row] = summarize(['own'], [{ limit: LOST, own: us(20) }]);
    expect(row?.cpuUsPerRun).toMatchObject({ median: 20 });
    expect(row?.cpuUsPerRun?.toLimit).toBeUndefined();
  });
});
