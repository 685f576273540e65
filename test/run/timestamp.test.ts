import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { compactTimestamp, isoTimestamp, parseIsoTimestamp } from '../../src/run/time.ts';

/** 2026-11-20T07:22:40Z */
const SECOND_US = 1_795_159_360_000_000;

describe('a moment is written', () => {
  test.each<[number, string, string]>([
    [0, '1970-01-01T00:00:00.000000Z', '19700101T000000000000Z'],
    [1, '1970-01-01T00:00:00.000001Z', '19700101T000000000001Z'],
    [SECOND_US - 1, '2026-11-20T07:22:39.999999Z', '20261120T072239999999Z'],
    [SECOND_US, '2026-11-20T07:22:40.000000Z', '20261120T072240000000Z'],
    [SECOND_US + 1, '2026-11-20T07:22:40.000001Z', '20261120T072240000001Z'],
    [SECOND_US + 123_456, '2026-11-20T07:22:40.123456Z', '20261120T072240123456Z'],
    [SECOND_US + 100_000, '2026-11-20T07:22:40.100000Z', '20261120T072240100000Z'],
    [SECOND_US + 999_999, '2026-11-20T07:22:40.999999Z', '20261120T072240999999Z'],
    [SECOND_US + 1_000_000, '2026-11-20T07:22:41.000000Z', '20261120T072241000000Z'],
    [1_798_761_599_999_999, '2026-12-31T23:59:59.999999Z', '20261231T235959999999Z'],
    [1_798_761_600_000_000, '2027-01-01T00:00:00.000000Z', '20270101T000000000000Z'],
    [1_835_395_200_000_000, '2028-02-29T00:00:00.000000Z', '20280229T000000000000Z'],
  ])('%i µs as %s and %s', (us, iso, compact) => {
    expect(isoTimestamp(us)).toBe(iso);
    expect(compactTimestamp(us)).toBe(compact);
  });

  test('the same, whichever second and form was asked for before', () => {
    const later = SECOND_US + 61_000_000;
    expect([
      isoTimestamp(SECOND_US),
      compactTimestamp(later),
      isoTimestamp(SECOND_US + 7),
      isoTimestamp(later),
    ]).toEqual([
      '2026-11-20T07:22:40.000000Z',
      '20261120T072341000000Z',
      '2026-11-20T07:22:40.000007Z',
      '2026-11-20T07:23:41.000000Z',
    ]);
  });
});

describe('a timestamp is read', () => {
  test.each<[string, number]>([
    ['2026-11-20T07:22:40Z', SECOND_US],
    ['2026-11-20 07:22:40Z', SECOND_US],
    ['2026-11-20T07:22:40', SECOND_US],
    ['2026-11-20T07:22:40.5Z', SECOND_US + 500_000],
    ['2026-11-20T07:22:40,5Z', SECOND_US + 500_000],
    ['2026-11-20T07:22:40.123Z', SECOND_US + 123_000],
    ['2026-11-20T07:22:40.000001Z', SECOND_US + 1],
    ['2026-11-20T07:22:40.123456', SECOND_US + 123_456],
    ['2026-11-20T07:22:40.1234569Z', SECOND_US + 123_456],
    ['2026-11-20T07:22:40.999999999Z', SECOND_US + 999_999],
    ['2026-11-20T08:22:40+01:00', SECOND_US],
    ['2026-11-20T12:52:40.000001+0530', SECOND_US + 1],
    ['2026-11-20T03:52:40-03:30', SECOND_US],
    ['2026-11-20T00:22:40-0700', SECOND_US],
    ['2028-02-29T00:00:00Z', 1_835_395_200_000_000],
    ['1970-01-01T00:00:00Z', 0],
    ['1969-12-31T23:59:59.999999Z', -1],
  ])('%s', (text, us) => {
    expect(parseIsoTimestamp(text)).toBe(us);
  });

  test.each([
    '',
    'yesterday',
    '1795159360',
    '2026-11-20',
    '2026-11-20T07:22Z',
    '2026-11-20T07:22:40.Z',
    '2026-11-20T07:22:40.1234567891Z',
    '2026-11-20T07:22:40+1',
    '2026-11-20T07:22:40+99:99',
    '2026-11-20T07:22:60Z',
    '2026-11-20T25:22:40Z',
    '2026-00-20T07:22:40Z',
    '2026-13-20T07:22:40Z',
    '2026-11-00T07:22:40Z',
    '2026-11-32T07:22:40Z',
    '2026-11-31T07:22:40Z',
    '2026-02-30T07:22:40Z',
    '2027-02-29T07:22:40Z',
    '+02026-11-20T07:22:40Z',
    ' 2026-11-20T07:22:40Z',
    '2026-11-20T07:22:40Z\n',
  ])('and %j is none', (text) => {
    expect(parseIsoTimestamp(text)).toBeUndefined();
  });

  test('as UTC when it names no zone, wherever the process runs [fault 107]', () => {
    vi.stubEnv('TZ', 'America/New_York');
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    expect(new Date(SECOND_US / 1_000).getHours()).toBe(2);
    expect(parseIsoTimestamp('2026-11-20T07:22:40')).toBe(SECOND_US);
    expect(isoTimestamp(SECOND_US + 3_600_000_000)).toBe('2026-11-20T08:22:40.000000Z');
  });

  test('as they are when the application has put something in the place of Date [fault 107]', () => {
    vi.stubGlobal(
      'Date',
      class {
        static now = () => Number.NaN;
        static parse = () => Number.NaN;
        toISOString(): never {
          throw new RangeError('Invalid time value');
        }
      },
    );
    onTestFinished(() => void vi.unstubAllGlobals());
    expect(isoTimestamp(1)).toBe('1970-01-01T00:00:00.000001Z');
    expect(parseIsoTimestamp('1970-01-01T00:00:01Z')).toBe(1_000_000);
  });

  test('as the moment that was written, and both forms have the same digits', () => {
    const moment = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
    fc.assert(
      fc.property(moment, (us) => {
        expect(parseIsoTimestamp(isoTimestamp(us))).toBe(us);
        expect(compactTimestamp(us)).toBe(isoTimestamp(us).replaceAll(/[-:.]/g, ''));
      }),
      { numRuns: 1_000 },
    );
  });
});
