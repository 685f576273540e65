// The table of the delivery policy: what a failed request does to its runs and to the endpoint.
import { describe, expect, it } from 'vitest';
import {
  againMs,
  type Decision,
  decide,
  type FailedRequest,
  FLUSH_DELAY_MS,
  TABLE,
} from '#src/delivery/retry-policy.ts';

const request = (given: Partial<FailedRequest>): FailedRequest => ({
  failure: 'refused',
  runs: 1,
  evidence: 'none',
  strikes: 0,
  loneFailures: 0,
  isClosed: false,
  ...given,
});

type Case = readonly [what: string, Partial<FailedRequest>, runs: Decision['runs'], endpoint: Decision['endpoint']];

/** One case for each row, in the order of the table. */
const rows: readonly Case[] = [
  [
    'a lone run that is invalid waits, and counts, if others were accepted after its first failure',
    { failure: 'invalid', evidence: 'since first' },
    'wait',
    'counted',
  ],
  ['a refused batch is halved', { runs: 2 }, 'halve', 'unchanged'],
  ['a lone run that is refused beside accepted requests waits', { evidence: 'since last' }, 'wait', 'unchanged'],
  ['a lone run that is refused waits, and counts', {}, 'wait', 'counted'],
  ['a batch that fails closes the endpoint, and goes back whole', { failure: 'later', runs: 2 }, 'wait', 'closed'],
  [
    'a batch that fails again, while others are accepted, is halved',
    { failure: 'later', runs: 2, evidence: 'since first' },
    'halve',
    'unchanged',
  ],
  [
    'a lone run that fails beside accepted requests waits',
    { failure: 'later', evidence: 'since last' },
    'wait',
    'unchanged',
  ],
  [
    'a lone run that fails after others were accepted waits, and counts',
    { failure: 'later', evidence: 'since first' },
    'wait',
    'counted',
  ],
  ['a lone run that fails closes the endpoint', { failure: 'later' }, 'wait', 'closed'],
  [
    'an unavailable endpoint closes, whatever was accepted, for a lone run',
    { failure: 'unavailable', evidence: 'since last', strikes: 9 },
    'wait',
    'closed',
  ],
  [
    'an unavailable endpoint closes, whatever was accepted, and the batch stays whole',
    { failure: 'unavailable', runs: 2, evidence: 'since last' },
    'wait',
    'closed',
  ],
];

describe('the delivery policy', () => {
  it.each(rows)('%s', (_, given, runs, endpoint) => {
    expect(decide(request(given))).toMatchObject({ runs, endpoint });
  });

  it('has a case for each row', () => {
    const match = ([failure, runs, evidence]: (typeof TABLE)[number], given: FailedRequest): boolean =>
      failure === given.failure &&
      (runs === 'one') === (given.runs === 1) &&
      [given.evidence, 'any'].includes(evidence);
    expect(rows.map(([, given]) => TABLE.findIndex((row) => match(row, request(given))))).toEqual([...TABLE.keys()]);
  });

  it.each([
    ['refused', 'since last', 3, 'drop'],
    ['refused', 'none', 3, 'wait'],
    ['invalid', 'since first', 3, 'drop'],
    ['invalid', 'since last', 3, 'drop'],
    ['invalid', 'none', 3, 'wait'],
    ['later', 'since last', 8, 'drop'],
    ['later', 'since first', 8, 'wait'],
    ['unavailable', 'since last', 100, 'wait'],
  ] as const)(
    'a lone run that is %s, with an acceptance %s, at its failure number %i: %s',
    (failure, evidence, number, runs) => {
      expect(decide(request({ failure, evidence, strikes: number - 2 })).runs).toBe('wait');
      expect(decide(request({ failure, evidence, strikes: number - 1 })).runs).toBe(runs);
    },
  );

  it.each([
    [{}, 1],
    [{ strikes: 1 }, 1],
    [{ strikes: 1, evidence: 'since last' }, 2],
    [{ failure: 'later', strikes: 1, evidence: 'since first' }, 1],
    [{ failure: 'unavailable', evidence: 'since last' }, 0],
    [{ failure: 'invalid' }, 0],
    [{ failure: 'invalid', evidence: 'since first' }, 1],
    [{ runs: 2, evidence: 'since last' }, 0],
  ] as const)('only the first failure, and failures beside accepted requests, are strikes: %j', (given, strikes) => {
    expect(decide(request(given)).strikes).toBe(strikes);
  });

  it('an invalid batch is halved, and an invalid run counts as a refused one if nothing was accepted', () => {
    expect(decide(request({ failure: 'invalid', runs: 2 }))).toMatchObject({ runs: 'halve', endpoint: 'unchanged' });
    expect(decide(request({ failure: 'invalid' }))).toMatchObject({ runs: 'wait', endpoint: 'counted' });
  });

  it('an invalid run is sent again after 250 ms and 1 s while a flush waits', () => {
    expect([0, 1, 2].map(againMs)).toEqual([250, 250, 1_000]);
  });

  it('an invalid run gets no strike from a closed endpoint, unless others were accepted since its last failure', () => {
    const given = { failure: 'invalid', strikes: 2, isClosed: true } as const;
    expect(decide(request({ ...given, evidence: 'since first' }))).toEqual({
      runs: 'wait',
      strikes: 2,
      endpoint: 'closed',
    });
    expect(decide(request({ ...given, evidence: 'since last' })).runs).toBe('drop');
  });

  it('the tenth lone failure in a row closes the endpoint, and each one keeps a closed endpoint closed', () => {
    expect(decide(request({ loneFailures: 8 })).endpoint).toBe('counted');
    expect(decide(request({ loneFailures: 9 })).endpoint).toBe('closed');
    expect(decide(request({ isClosed: true })).endpoint).toBe('closed');
    expect(decide(request({ isClosed: true, evidence: 'since last' })).endpoint).toBe('unchanged');
  });

  it('probes at least each second while a flush waits', () => {
    expect(FLUSH_DELAY_MS).toEqual({ refused: 1_000, invalid: 1_000, later: 500, unavailable: 500 });
  });
});
