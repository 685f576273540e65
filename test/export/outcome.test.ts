import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Outcome, outcomeOf, outcomeOfError } from '../../src/export/outcome.ts';

type Kind = Outcome['kind'];

/** The documented statuses, each with the outcome for a batch and, if different, for a single run. */
const table: readonly (readonly [status: number, batch: Kind, single?: Kind])[] = [
  [200, 'accepted'],
  [201, 'accepted'],
  [202, 'accepted'],
  [204, 'accepted'],
  [207, 'accepted'],
  [299, 'accepted'],
  [300, 'misconfigured'],
  [301, 'misconfigured'],
  [302, 'misconfigured'],
  [307, 'misconfigured'],
  [308, 'misconfigured'],
  [399, 'misconfigured'],
  [400, 'invalid'],
  [401, 'misconfigured'],
  [402, 'misconfigured'],
  [403, 'misconfigured'],
  [404, 'unsupported'],
  [405, 'unsupported'],
  [406, 'dropped'],
  [407, 'misconfigured'],
  [408, 'failed'],
  [409, 'invalid', 'accepted'],
  [410, 'dropped'],
  [411, 'dropped'],
  [412, 'dropped'],
  [413, 'too_large'],
  [414, 'dropped'],
  [415, 'unsupported'],
  [416, 'dropped'],
  [417, 'dropped'],
  [418, 'dropped'],
  [421, 'misconfigured'],
  [422, 'invalid'],
  [423, 'misconfigured'],
  [424, 'dropped'],
  [425, 'failed'],
  [426, 'dropped'],
  [428, 'dropped'],
  [429, 'failed'],
  [431, 'dropped'],
  [451, 'misconfigured'],
  [499, 'misconfigured'],
  [500, 'failed'],
  [501, 'unsupported'],
  [502, 'failed'],
  [503, 'failed'],
  [504, 'failed'],
  [505, 'failed'],
  [506, 'failed'],
  [507, 'failed'],
  [508, 'failed'],
  [510, 'failed'],
  [511, 'misconfigured'],
  [520, 'failed'],
  [599, 'failed'],
];

const answered = (status: number, headers = {}, isKeyless = false) => ({ status, headers, text: '', isKeyless });

describe('a status', () => {
  it.each(table.map(([status, batch, single = batch]) => [status, batch, single] as const))(
    '%i makes a batch `%s` and a single run `%s`',
    (status, batch, single) => {
      expect(outcomeOf(answered(status), 2, 0).kind).toBe(batch);
      expect(outcomeOf(answered(status), 1, 0).kind).toBe(single);
    },
  );

  it('not in the table is final if it is a 4xx, and retried otherwise', () => {
    const known = new Set(table.map(([status]) => status));
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 999 }), (status) => {
        fc.pre(!known.has(status) && (status < 200 || status >= 400));
        const { kind } = outcomeOf(answered(status), 1, 0);
        expect(kind).toBe(status >= 400 && status < 500 ? 'dropped' : 'failed');
      }),
      { numRuns: 1_000 },
    );
  });

  it.each([
    [500, undefined, true],
    [504, undefined, true],
    [508, undefined, true],
    [503, '5', false],
    [408, undefined, false],
    [429, undefined, false],
  ])('%i with Retry-After %s may be the fault of the runs: %s', (status, after, isSuspect) => {
    expect(outcomeOf(answered(status, { 'retry-after': after }), 2, 0)).toMatchObject({ kind: 'failed', isSuspect });
  });

  it.each([401, 403])('%i reports whether a key was sent', (status) => {
    const detailOf = (isKeyless: boolean) => JSON.stringify(outcomeOf(answered(status, {}, isKeyless), 2, 0));
    expect(detailOf(false)).toContain('the API key was rejected');
    expect(detailOf(true)).toContain('none is sent');
  });
});

describe('a response', () => {
  it.each([
    ['7', 7_000],
    ['99999999999999999999', 300_000],
    ['soon', undefined],
  ])('with Retry-After %s pauses for %s ms', (after, afterMs) => {
    expect(outcomeOf(answered(429, { 'retry-after': after }), 2, 0)).toMatchObject({ kind: 'failed', afterMs });
  });

  it('is not quoted in the detail', () => {
    expect(JSON.stringify(outcomeOf({ status: 418, headers: {}, text: 'sk-secret' }, 2, 0))).not.toContain('secret');
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
