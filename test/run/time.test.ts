import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import {
  canonicalId,
  compactTimestamp,
  dottedOrder,
  isoTimestamp,
  parseDottedOrder,
  parseIsoTimestamp,
} from '#src/run/time.ts';
import { forAll } from '../support/campaign.ts';

/** 2026-11-20T07:22:40Z */
const SECOND_US = 1_795_159_360_000_000;
const ROOT = '019a9f3c-1a00-7000-8000-000000000001';
const CHILD = '019a9f3c-1a00-7000-bfff-ffffffffffff';
const moment = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });

describe('a timestamp', () => {
  test.each<[number, string]>([
    [0, '1970-01-01T00:00:00.000000Z'],
    [SECOND_US - 1, '2026-11-20T07:22:39.999999Z'],
    [SECOND_US, '2026-11-20T07:22:40.000000Z'],
    [SECOND_US + 100_001, '2026-11-20T07:22:40.100001Z'],
    [1_835_395_200_000_000, '2028-02-29T00:00:00.000000Z'],
  ])('of %i µs is %s', (us, iso) => {
    expect(isoTimestamp(us)).toBe(iso);
  });

  test('is parsed to its time, and both formats have the same digits', () => {
    fc.assert(
      fc.property(moment, (us) => {
        expect(parseIsoTimestamp(isoTimestamp(us))).toBe(us);
        expect(compactTimestamp(us)).toBe(isoTimestamp(us).replaceAll(/[-:.]/g, ''));
        expect(isoTimestamp(us)).toBe(
          `${new Date(Math.floor(us / 1_000)).toISOString().slice(0, -1)}${String(us % 1_000).padStart(3, '0')}Z`,
        );
      }),
      { numRuns: 1_000 },
    );
  });

  test.each<[string, number]>([
    ['2026-11-20 07:22:40Z', SECOND_US],
    ['2026-11-20T07:22:40', SECOND_US],
    ['2026-11-20T07:22:40,5Z', SECOND_US + 500_000],
    ['2026-11-20T07:22:40.1234569Z', SECOND_US + 123_456],
    ['2026-11-20T12:52:40.000001+0530', SECOND_US + 1],
    ['2026-11-20T03:52:40-03:30', SECOND_US],
    ['1969-12-31T23:59:59.999999Z', -1],
  ])('is parsed from %s', (text, us) => {
    expect(parseIsoTimestamp(text)).toBe(us);
  });

  test.each(
    `2026-11-20 2026-11-20T07:22:40.Z 2026-11-20T07:22:40.1234567891Z 2026-11-20T07:22:40+99:99 2026-11-20T07:22:60Z
      2026-13-20T07:22:40Z 2026-02-30T07:22:40Z +02026-11-20T07:22:40Z`
      .split(/\s+/)
      .concat('', ' 2026-11-20T07:22:40Z', '2026-11-20T07:22:40Z\n'),
  )('is not parsed from %j', (text) => {
    expect(parseIsoTimestamp(text)).toBeUndefined();
  });

  test('without a zone is UTC, in any time zone of the process', () => {
    vi.stubEnv('TZ', 'America/New_York');
    expect(new Date(SECOND_US / 1_000).getHours()).toBe(2);
    expect(parseIsoTimestamp('2026-11-20T07:22:40')).toBe(SECOND_US);
    expect(isoTimestamp(SECOND_US + 3_600_000_000)).toBe('2026-11-20T08:22:40.000000Z');
  });

  test('does not depend on the global `Date`', () => {
    vi.stubGlobal('Date', class {});
    expect(isoTimestamp(1)).toBe('1970-01-01T00:00:00.000001Z');
    expect(parseIsoTimestamp('1970-01-01T00:00:01Z')).toBe(1_000_000);
  });
});

describe('a dotted order', () => {
  test('consists of the order of the parent, a dot, the start and the id', () => {
    const parent = dottedOrder(undefined, SECOND_US + 123_456, ROOT);
    expect(parent).toBe(`20261120T072240123456Z${ROOT}`);
    expect(dottedOrder(parent, SECOND_US + 123_457, CHILD)).toBe(`${parent}.20261120T072240123457Z${CHILD}`);
  });

  test('is parsed to its segments', () => {
    forAll(100, [fc.array(fc.tuple(moment, fc.uuid()), { minLength: 1 })], (given) => {
      const text = given.reduce<string | undefined>((parent, [us, id]) => dottedOrder(parent, us, id), undefined);
      expect(parseDottedOrder(text ?? '')).toEqual(given.map(([startUs, id]) => ({ startUs, id })));
    });
  });

  test('may have ids without hyphens, or in upper case', () => {
    const text = `20261120T072240000000Z${ROOT.replaceAll('-', '')}.20261120T072240000000Z${CHILD.toUpperCase()}`;
    expect(parseDottedOrder(text)?.map(({ id }) => id)).toEqual([ROOT, CHILD]);
    expect(canonicalId(ROOT)).toBe(ROOT);
  });

  test.each([
    ...['', ROOT, `20261120T072240123Z${ROOT}`, `20261120T072240123456${ROOT}`],
    ...[`20261120T072240123456Z${ROOT.slice(1)}`, `20261120T072240123456Z${ROOT}0`],
    ...[`20261120T072240123456Z${ROOT.replace('f', 'g')}`, `20260230T072240123456Z${ROOT}`],
    ...[`20261120T072240123456Z${ROOT}.`, ` 20261120T072240123456Z${ROOT}`],
  ])('is not %j', (text) => {
    expect(parseDottedOrder(text)).toBeUndefined();
  });
});
