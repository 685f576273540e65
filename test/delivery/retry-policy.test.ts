// Limits of the delivery policy. Each row of its table is tested with a service, see verdicts.virtual.test.ts and others.
import { describe, expect, it } from 'vitest';
import { againMs, decide, type FailedRequest, FLUSH_DELAY_MS } from '#src/delivery/retry-policy.ts';

const request = (given: Partial<FailedRequest>): FailedRequest => ({
  failure: 'refused',
  runs: 1,
  evidence: 'none',
  strikes: 0,
  loneFailures: 0,
  isClosed: false,
  ...given,
});

describe('the delivery policy', () => {
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
    for (const failure of ['refused', 'later'] as const)
      expect(decide(request({ failure, isClosed: true, evidence: 'since last' })).endpoint).toBe('unchanged');
  });

  it('probes at least each second while a flush waits', () => {
    expect(FLUSH_DELAY_MS).toEqual({ refused: 1_000, invalid: 1_000, later: 500, unavailable: 500 });
  });
});
