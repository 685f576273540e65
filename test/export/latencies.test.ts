import { describe, expect, it } from 'vitest';
import { Latencies, latencyOf } from '../../src/export/latencies.ts';

function latenciesOf(ms: readonly number[]): Latencies {
  const latencies = new Latencies();
  for (const one of ms) latencies.add(one);
  return latencies;
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe('latencies', () => {
  it('are unknown before the first request', () => {
    expect(latencyOf([])).toBeUndefined();
    expect(latencyOf([new Latencies()])).toBeUndefined();
  });

  // By nearest rank: the 99th of 100, and of fewer the last.
  it.each<[number[], number, number]>([
    [[7], 7, 7],
    [[9, 1], 1, 9],
    [[3, 1, 2], 2, 3],
    [upTo(99), 50, 99],
    [upTo(100), 50, 99],
    [upTo(101), 51, 100],
    [upTo(200).reverse(), 100, 198],
  ])('of %j have these percentiles', (ms, p50Ms, p99Ms) => {
    expect(latencyOf([latenciesOf(ms)])).toEqual({ p50Ms, p99Ms });
  });

  it.each([
    [499, 499],
    [500, 500],
    [501, 500],
    [1_203, 500],
  ])('of %i requests are those of the latest %i', (count, kept) => {
    const values = latenciesOf(upTo(count)).values;
    expect([...values].sort((a, b) => a - b)).toEqual(upTo(count).slice(-kept));
  });
});
