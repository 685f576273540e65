import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { parseRetryAfter } from '#src/http/retry.ts';

/** Fri, 20 Nov 2026 07:22:40 GMT */
const NOW_MS = 1_795_159_360_000;

describe('Retry-After', () => {
  test.each<[number | undefined, readonly (string | undefined)[]]>([
    [undefined, [undefined, '', '-5', '+5', '1.5', '1e3', '0x10', 'abc', '120, 60', 'Infinity', 'NaN', 'Friday']],
    [undefined, ['Someday, 20 Nov 2026 07:23:40 GMT']],
    [1_000, ['0', '1', 'Fri, 20 Nov 2026 07:22:40 GMT', 'Thu, 19 Nov 2026 07:22:40 GMT']],
    [2_000, ['2']],
    [60_000, ['60', ' 60 ', 'Fri, 20 Nov 2026 07:23:40 GMT', 'Friday, 20-Nov-26 07:23:40 GMT']],
    [299_000, ['299']],
    [300_000, ['300', '301', '99999999999999999999', '1'.repeat(10_000), 'Sat, 20 Nov 2027 07:22:40 GMT']],
  ])('requests a delay of %s ms: %.60j', (expected, headers) => {
    for (const header of headers) expect(parseRetryAfter(header, NOW_MS), header).toBe(expected);
  });

  test.each([
    ['Fri, 20 Nov 2026 09:01:00 GMT', 'Fri, 20 Nov 2026 09:00:00 GMT', 60_000],
    ['Fri, 20 Nov 2026 07:23:40 GMT', 'Fri, 20 Nov 2026 09:00:00 GMT', 1_000],
    ['Fri, 20 Nov 2026 07:23:40 GMT', 'yesterday', 60_000],
  ])('%s is compared with the `Date` of the response: %s', (header, serverDate, expected) => {
    expect(parseRetryAfter(header, NOW_MS, serverDate)).toBe(expected);
  });

  test('is GMT in every format, in every time zone', () => {
    vi.stubEnv('TZ', 'America/New_York');
    expect(new Date(NOW_MS).getHours()).toBe(2);
    expect(parseRetryAfter('Friday, 20-Nov-26 07:23:40 GMT', NOW_MS)).toBe(60_000);
  });

  test('is between 1 second and 5 minutes, or ignored, for any header', () => {
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
