import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exceptionsOf, outcomeOf, outcomeOfError } from '../../src/export/answer.ts';

const answer = (status: number, headers = {}) => ({ status, headers, text: '' });

describe('outcomeOf', () => {
  it.each([
    [200, 'accepted'],
    [202, 'accepted'],
    [204, 'accepted'],
    [299, 'accepted'],
    [409, 'accepted'],
    [400, 'invalid'],
    [422, 'invalid'],
    [401, 'misconfigured'],
    [403, 'misconfigured'],
    [404, 'unsupported'],
    [405, 'unsupported'],
    [415, 'unsupported'],
    [501, 'unsupported'],
    [413, 'too_large'],
    [408, 'failed'],
    [425, 'failed'],
    [429, 'failed'],
    [500, 'failed'],
    [502, 'failed'],
    [503, 'failed'],
    [504, 'failed'],
    [507, 'failed'],
    [520, 'failed'],
    [599, 'failed'],
    [300, 'misconfigured'],
    [301, 'misconfigured'],
    [308, 'misconfigured'],
    [399, 'misconfigured'],
    [402, 'dropped'],
    [418, 'dropped'],
    [451, 'dropped'],
    [505, 'dropped'],
  ])('takes status %i as %s', (status, kind) => {
    expect(outcomeOf(answer(status), 0).kind).toBe(kind);
  });

  it('has a meaning for every status: of those unknown 4xx are final, others are not [fault 20]', () => {
    const known = [400, 401, 403, 404, 405, 407, 408, 409, 413, 415, 422, 425, 429];
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 999 }), (status) => {
        const { kind } = outcomeOf(answer(status), 0);
        if (status >= 400 && status < 500 && !known.includes(status)) expect(kind).toBe('dropped');
        if (status < 200 || status >= 520) expect(kind).toBe('failed');
      }),
      { numRuns: 1_000 },
    );
  });

  it.each([
    [500, {}, true],
    [504, {}, true],
    [503, { 'retry-after': '5' }, false],
    [408, {}, false],
    [429, {}, false],
  ])('after status %i with %j suspects the records: %s', (status, headers, isSuspect) => {
    expect(outcomeOf(answer(status, headers), 0)).toMatchObject({ kind: 'failed', isSuspect });
  });

  it('passes on how long the service asks to wait', () => {
    expect(outcomeOf(answer(429, { 'retry-after': '7' }), 0)).toMatchObject({ kind: 'failed', afterMs: 7_000 });
  });

  it('does not repeat what the service says in its body', () => {
    expect(JSON.stringify(outcomeOf({ ...answer(418), text: 'sk-secret' }, 0))).not.toContain('secret');
  });
});

describe('exceptionsOf', () => {
  const says = (body: unknown) => exceptionsOf({ ...answer(207), text: JSON.stringify(body) });

  it.each([
    [409, 'accepted'],
    [413, 'too_large'],
    [422, 'invalid'],
    [400, 'invalid'],
    [403, 'invalid'],
    [404, 'invalid'],
    [429, 'failed'],
    [503, 'failed'],
    ['400', 'invalid'],
    [undefined, 'invalid'],
  ])('takes status %j of one record for %s [fault 36]', (status, kind) => {
    expect(says({ errors: [{ id: 'a', status }] }).get('a')?.kind).toBe(kind);
  });

  it.each([
    'null',
    '{}',
    '"errors"',
    '{"errors":',
    '{"errors":null}',
    '{"errors":{"id":"a"}}',
    '{"errors":[null,1,"a",{},{"id":7}]}',
    '<errors>',
  ])('finds none in %s [fault 36]', (text) => {
    expect(exceptionsOf({ ...answer(200), text }).size).toBe(0);
  });
});

describe('outcomeOfError', () => {
  it.each([
    ['ECONNRESET', 'failed', true],
    ['ECONNREFUSED', 'failed', false],
    ['EAI_AGAIN', 'failed', false],
    ['CERT_HAS_EXPIRED', 'misconfigured', undefined],
  ])('takes %s for %s', (code, kind, isSuspect) => {
    expect(outcomeOfError(Object.assign(new Error('sk-secret'), { code }))).toEqual({
      kind,
      detail: expect.not.stringContaining('secret'),
      ...(isSuspect === undefined ? {} : { isSuspect }),
    });
  });
});
