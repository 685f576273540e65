import { describe, expect, it } from 'vitest';
import { besideOtlp } from '../../bench/report.mjs';
import { ratioBetween, summarize } from '../../bench/summary.mjs';

const LOST = { cpuUsPerRun: 1, complaint: '30 runs created, 29 arrived whole' };
const us = (cpuUsPerRun: number) => ({ cpuUsPerRun });

describe('the summary of rounds', () => {
  it('has median and spread, and ratios and differences that are made within each round', () => {
    const rounds = [
      { untraced: us(1), limit: us(10), own: us(20) },
      { untraced: us(2), limit: us(20), own: us(60) },
      { untraced: us(3), limit: us(40), own: us(40) },
    ];
    const [row] = summarize(['own'], rounds);
    expect(row).toMatchObject({ cpuUsPerRun: { median: 40, min: 20, max: 60, toLimit: 2, overUntraced: 37 } });
  });

  it('has no figure of a driver of which one round does not count', () => {
    const [row] = summarize(
      ['own'],
      [
        { limit: us(10), own: us(20) },
        { limit: us(10), own: LOST },
      ],
    );
    expect(row).toMatchObject({ complaint: 'round 2: 30 runs created, 29 arrived whole' });
    expect(row?.cpuUsPerRun).toBeUndefined();
  });

  it('has no ratio to a limit that does not count', () => {
    const [row] = summarize(['own'], [{ limit: LOST, own: us(20) }]);
    expect(row?.cpuUsPerRun).toMatchObject({ median: 20 });
    expect(row?.cpuUsPerRun?.toLimit).toBeUndefined();
  });
});

it('two drivers have a ratio over the rounds in which both count, and none without one', () => {
  const rounds = [
    { own: us(30), other: us(10) },
    { own: us(80), other: LOST },
    { own: LOST, other: us(10) },
  ];
  expect(ratioBetween('own', 'other', rounds, 'cpuUsPerRun')).toBe(3);
  expect(ratioBetween('own', 'other', rounds.slice(1), 'cpuUsPerRun')).toBeUndefined();
});

it('the processor stands beside OTLP only where neither has lost anything', () => {
  const figures = { cpuUsPerRun: 20, peakRssMiB: 100, loopDelayP99Ms: 2 };
  const beside = (own: object): string => {
    const rounds = [
      { processor: figures, 'otlp-json': figures },
      { processor: own, 'otlp-json': figures },
    ];
    return besideOtlp(summarize(['processor', 'otlp-json'], rounds), rounds);
  };
  expect(beside(figures)).toContain('processor: 1.00 × the CPU per run of otlp-json');
  expect(beside({ ...figures, complaint: 'lost some' })).toBe('');
});
