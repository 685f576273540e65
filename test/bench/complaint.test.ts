import { expect, it } from 'vitest';
import { complaintOf, type SentBytes, shortfallOf } from '../../bench/complaint.mjs';
import { Arrivals } from '../../bench/sink/arrivals.mjs';

/** What is told of two runs of which these ends, and then these starts, have arrived. */
const told = (starts: string[], ends: string[], malformed = 0): string | undefined => {
  const arrivals = new Arrivals();
  for (const id of ends) arrivals.end(id);
  for (const id of starts) arrivals.start(id);
  return complaintOf({ ...arrivals.summary, malformed }, 2);
};

it('nothing is told when every run has arrived once', () => {
  expect(told(['a', 'b'], ['b', 'a'])).toBeUndefined();
});

it('a run without its end, without its start, or that nobody made is told', () => {
  expect(told(['a', 'b'], ['a'])).toBe('2 runs created, 1 arrived whole');
  expect(told(['a'], ['a', 'b'])).toBe('2 runs created, 1 arrived whole');
  expect(told(['a', 'b', 'c'], ['a', 'b'])).toBe('2 runs created, 2 arrived whole');
});

it('what came twice is told', () => {
  expect(told(['a', 'b', 'b'], ['a', 'b'])).toBe('3 starts arrived of 2 runs');
  expect(told(['a', 'b'], ['a', 'b', 'b'])).toBe('3 ends arrived of 2 runs');
});

it('a request that could not be read is told', () => {
  expect(told(['a', 'b'], ['a', 'b'], 1)).toBe('1 requests could not be read');
});

it('a row that has sent less than the payloads is told', () => {
  const limit = { runs: 2, bodyBytesPerRun: 1_300, payloadBytesPerRun: 1_000 };
  const told = (row: object, beside: SentBytes = limit) =>
    shortfallOf({ runs: 2, bodyBytesPerRun: 900, ...row }, beside);
  expect(told({})).toBeUndefined();
  expect(told({ bodyBytesPerRun: 899 })).toBe('899 bytes of a run arrived, where its payloads have 1000');
  expect(told({ bodyBytesPerRun: 899, runs: 1 })).toBeUndefined();
  expect(told({ bodyBytesPerRun: 899 }, { ...limit, complaint: 'odd' })).toBeUndefined();
  expect(shortfallOf({ runs: 2, bodyBytesPerRun: 1 }, undefined)).toBeUndefined();
});
