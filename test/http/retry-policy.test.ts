import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseRetryAfter } from '../../src/http/retry.ts';

/** Fri, 20 Nov 2026 07:22:40 GMT */
const NOW_MS = 1_795_159_360_000;

describe('Retry-After', () => {
  test.each<[string | undefined, number | undefined]>([
    [undefined, undefined],
    ['', undefined],
    ['0', 1_000],
    ['1', 1_000],
    ['2', 2_000],
    ['120', 120_000],
    [' 120 ', 120_000],
    ['299', 299_000],
    ['300', 300_000],
    ['301', 300_000],
    ['9999999999', 300_000],
    ['99999999999', 300_000],
    ['99999999999999999999', 300_000],
    ['-5', undefined],
    ['+5', undefined],
    ['1.5', undefined],
    ['1e3', undefined],
    ['0x10', undefined],
    ['abc', undefined],
    ['120, 60', undefined],
    ['Infinity', undefined],
    ['NaN', undefined],
    ['1'.repeat(10_000), 300_000],
  ])('%.20j asks for %s ms', (header, expected) => {
    expect(parseRetryAfter(header, NOW_MS)).toBe(expected);
  });

  test.each<[string, string, string | undefined, number | undefined]>([
    ['in a minute', 'Fri, 20 Nov 2026 07:23:40 GMT', undefined, 60_000],
    ['a second away', 'Fri, 20 Nov 2026 07:22:41 GMT', undefined, 1_000],
    ['now', 'Fri, 20 Nov 2026 07:22:40 GMT', undefined, 1_000],
    ['in the past', 'Thu, 19 Nov 2026 07:22:40 GMT', undefined, 1_000],
    ['five minutes away', 'Fri, 20 Nov 2026 07:27:40 GMT', undefined, 300_000],
    ['a year away', 'Sat, 20 Nov 2027 07:22:40 GMT', undefined, 300_000],
    [
      'in a minute by the clock of the service',
      'Fri, 20 Nov 2026 09:01:00 GMT',
      'Fri, 20 Nov 2026 09:00:00 GMT',
      60_000,
    ],
    [
      'in the past by the clock of the service',
      'Fri, 20 Nov 2026 07:23:40 GMT',
      'Fri, 20 Nov 2026 09:00:00 GMT',
      1_000,
    ],
    ['beside a Date that is none', 'Fri, 20 Nov 2026 07:23:40 GMT', 'yesterday', 60_000],
    ['in the form of RFC 850', 'Friday, 20-Nov-26 07:23:40 GMT', undefined, 60_000],
    ['that is none', 'Friday', undefined, undefined],
    ['with a day alone', 'Someday, 20 Nov 2026 07:23:40 GMT', undefined, undefined],
  ])('may be a date: one %s', (_, header, serverDate, expected) => {
    expect(parseRetryAfter(header, NOW_MS, serverDate)).toBe(expected);
  });

  test('is within its bounds, or not there, whatever it says', () => {
    const header = fc.oneof(fc.string(), fc.stringMatching(/^-?\d*[.,e ]?\d*$/), fc.date().map(String));
    fc.assert(
      fc.property(header, fc.option(header, { nil: undefined }), (text, serverDate) => {
        const waitMs = parseRetryAfter(text, NOW_MS, serverDate) ?? 1_000;
        expect(waitMs).toBeGreaterThanOrEqual(1_000);
        expect(waitMs).toBeLessThanOrEqual(300_000);
      }),
      { numRuns: 1_000 },
    );
  });
});
