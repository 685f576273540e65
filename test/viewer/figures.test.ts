import { expect, test } from 'vitest';
import { ago, bytes, cost, count, duration, exact, millisecondsAt, plural } from '../../src/viewer/elements/figures.ts';

test('durations have the digits that a reader compares', () => {
  const told = [
    0, 0.42, 9.94, 9.96, 12.4, 999.4, 999.6, 1_240, 9_990, 59_900, 59_996, 123_000, 3_599_400, 3_720_000, -5,
  ];
  expect(told.map(duration)).toEqual([
    '0 ms',
    '0.42 ms',
    '9.9 ms',
    '10 ms',
    '12 ms',
    '999 ms',
    '1 s',
    '1.24 s',
    '9.99 s',
    '59.9 s',
    '1 m 00 s',
    '2 m 03 s',
    '59 m 59 s',
    '1 h 02 m',
    '0 ms',
  ]);
});

test('counts are whole as long as they fit a column', () => {
  expect([0, 999, 1_234, 99_999, 100_000, 999_499, 999_500, 1_240_000].map(count)).toEqual([
    '0',
    '999',
    '1,234',
    '99,999',
    '100k',
    '999k',
    '1M',
    '1.2M',
  ]);
});

test('costs keep two digits that say something', () => {
  expect([0, 12.345, 1, 0.25, 0.0021, 0.000027].map(cost)).toEqual([
    '$0',
    '$12.35',
    '$1.00',
    '$0.25',
    '$0.0021',
    '$0.000027',
  ]);
});

test('sizes are decimal', () => {
  expect([0, 999, 1_000, 999_499, 20_000_000].map(bytes)).toEqual(['0 B', '999 B', '1 kB', '999.5 kB', '20 MB']);
});

test('how long ago something was, in one word', () => {
  const now = Date.parse('2026-11-20T12:00:00Z');
  const told = [-5_000, 0, 4_999, 5_000, 59_999, 60_000, 3_600_000, 86_400_000, 6.9 * 86_400_000, 7 * 86_400_000];
  expect(told.map((ms) => ago(now - ms, now))).toEqual([
    'now',
    'now',
    'now',
    '5 s ago',
    '59 s ago',
    '1 m ago',
    '1 h ago',
    '1 d ago',
    '6 d ago',
    '2026-11-13',
  ]);
});

test('what is ahead of the clock by more than clocks differ has its date, in the time of this machine', () => {
  const now = Date.parse('2026-11-20T12:00:00Z');
  expect([60_000, 61_000].map((ms) => ago(now + ms, now))).toEqual(['now', exact('2026-11-20T12:01:01Z').slice(0, 10)]);
  const [early, late] = ['2026-01-31T00:30:00Z', '2026-01-31T23:30:00Z'];
  expect([early, late].map((iso) => ago(Date.parse(iso), now))).toEqual(
    [early, late].map((iso) => exact(iso).slice(0, 10)),
  );
});

test('times keep their microseconds', () => {
  expect(millisecondsAt('1970-01-01T00:00:01.234567Z')).toBeCloseTo(1_234.567, 6);
  expect(millisecondsAt('1970-01-01T00:00:01Z')).toBe(1_000);
});

test('one run, two runs', () => {
  expect([0, 1, 2, 1_000].map((value) => plural(value, 'run'))).toEqual(['0 runs', '1 run', '2 runs', '1,000 runs']);
});
