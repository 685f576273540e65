// Limits of the delivery policy that no test with a service reaches. See retries.virtual.test.ts and others for its table.
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
    { failure: 'unavailable', evidence: 'since last' },
    { runs: 2, evidence: 'since last' },
  ] as const)('a failure of the endpoint or of a batch is no strike: %j', (given) => {
    expect(decide(request(given)).strikes).toBe(0);
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
