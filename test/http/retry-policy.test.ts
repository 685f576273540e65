import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { backoffMs, isTransient, parseRetryAfter } from '../../src/http/retry.ts';

describe('a status', () => {
  const ranges: [boolean, number[]][] = [
    [true, [100, 101, 199]],
    [false, [200, 201, 202, 204, 207, 299]],
    [false, [300, 301, 302, 303, 304, 307, 308]],
    [
      false,
      [
        400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 418, 422, 423, 424, 426, 428, 431,
        451,
      ],
    ],
    [true, [408, 425, 429]],
    [true, [500, 502, 503, 504, 507]],
    [false, [501, 505, 506, 508, 510, 511, 519]],
    [true, [520, 521, 522, 524, 529, 530, 598, 599]],
    [true, [600, 999]],
  ];
  test.each(ranges.flatMap(([expected, statuses]) => statuses.map((status) => [status, expected] as const)))(
    'of %i may pass: %s',
    (status, expected) => {
      expect(isTransient(status)).toBe(expected);
    },
  );
});

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
  ])('%.20j asks for %s ms [fault 17]', (header, expected) => {
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
    ['in the form of asctime', 'Fri Nov 20 07:23:40 2026', undefined, 60_000],
    ['that is none', 'Friday', undefined, undefined],
    ['with a day alone', 'Someday, 20 Nov 2026 07:23:40 GMT', undefined, undefined],
  ])('may be a date: one %s [fault 16]', (_, header, serverDate, expected) => {
    expect(parseRetryAfter(header, NOW_MS, serverDate)).toBe(expected);
  });

  test('is Greenwich time in every form, wherever the process runs', () => {
    vi.stubEnv('TZ', 'America/New_York');
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    expect(new Date(NOW_MS).getHours()).toBe(2);
    expect(parseRetryAfter('Fri Nov 20 07:23:40 2026', NOW_MS)).toBe(60_000);
    expect(parseRetryAfter('Fri, 20 Nov 2026 07:23:40 GMT', NOW_MS, 'Fri Nov 20 07:23:30 2026')).toBe(10_000);
  });

  test('is within its bounds, or not there, whatever it says [fault 17]', () => {
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

describe('the back-off', () => {
  test.each([
    [0, 500],
    [1, 1_000],
    [2, 2_000],
    [5, 16_000],
    [6, 30_000],
    [7, 30_000],
    [1_000, 30_000],
  ])('before attempt %i is up to %i ms', (attempt, longestMs) => {
    expect(backoffMs(attempt, 0, 500, 30_000)).toBe(0);
    expect(backoffMs(attempt, 0.5, 500, 30_000)).toBe(longestMs / 2);
    expect(backoffMs(attempt, 0.999_999_999, 500, 30_000)).toBe(longestMs - 1);
  });

  test('is whole milliseconds', () => {
    expect(backoffMs(0, 0.333, 500, 30_000)).toBe(166);
  });
});
