import { expect, test } from 'vitest';
import {
  ago,
  bytes,
  costFigure,
  countFigure,
  durationFigure,
  exact,
  latencyOf,
  millisecondsAt,
  plural,
  timeLabels,
} from '#src/viewer/elements/figures.ts';

const NOW_MS = Date.parse('2026-11-20T12:00:00Z');
const DAY_MS = 86_400_000;

test.each<[string, (value: number) => string, readonly number[], string]>([
  [
    'durations',
    durationFigure,
    [-5, 0, 0.42, 9.94, 9.96, 999.4, 999.6],
    '0 ms, 0 ms, 0.42 ms, 9.9 ms, 10 ms, 999 ms, 1 s',
  ],
  ['seconds', durationFigure, [1_240, 9_990, 59_900, 59_996], '1.24 s, 9.99 s, 59.9 s, 1 m 00 s'],
  ['minutes and hours', durationFigure, [123_000, 3_599_400, 3_720_000], '2 m 03 s, 59 m 59 s, 1 h 02 m'],
  ['small counts', countFigure, [0, 999, 99_999], '0, 999, 99,999'],
  ['large counts', countFigure, [100_000, 999_499, 999_500, 1_240_000], '100k, 999k, 1M, 1.2M'],
  [
    'costs',
    costFigure,
    [0, -0.25, 12.345, 1, 0.25, 0.0021, 0.000027, 0.00001, 0.0000004],
    '$0, -$0.25, $12.35, $1.00, $0.25, $0.0021, $0.00003, $0.00001, <$0.00001',
  ],
  ['sizes', bytes, [0, 999, 1_000, 999_499, 20_000_000], '0 B, 999 B, 1 kB, 999.5 kB, 20 MB'],
  ['times', (ms) => ago(NOW_MS - ms, NOW_MS), [-60_000, 0, 4_999, 5_000, 59_999], 'now, now, now, 5 s ago, 59 s ago'],
  [
    'long ago',
    (ms) => ago(NOW_MS - ms, NOW_MS),
    [60_000, 3_600_000, DAY_MS, 6.9 * DAY_MS],
    '1 m ago, 1 h ago, 1 d ago, 6 d ago',
  ],
  ['nouns', (value) => plural(value, 'run'), [0, 1, 1_000], '0 runs, 1 run, 1,000 runs'],
])('%s are printed', (_, print, values, expected) => {
  expect(values.map((value) => print(value)).join(', ')).toBe(expected);
});

test('times in the future or more than a week ago are shown as a local date', () => {
  for (const ms of [61_000, -7 * DAY_MS, -7.5 * DAY_MS]) {
    expect(ago(NOW_MS + ms, NOW_MS)).toBe(exact(new Date(NOW_MS + ms).toISOString()).slice(0, 10));
  }
});

test.each([
  ['2024-01-01T00:00', '2025-01-01T00:00', '2024-01, 2025-01'],
  ['2026-01-31T00:00', '2026-02-28T00:00', '2026-01, 2026-02'],
  ['2026-01-31T00:00', '2026-02-27T00:00', '01-31, 02-27'],
  ['2026-01-31T23:59', '2026-02-01T00:00', '23:59, 00:00'],
  ['2026-01-31T23:59:59', '2026-02-01T00:00', '23:59:59, 00:00:00'],
  ['2026-01-31T23:59:59.5', '2026-02-01T00:00', '59.500, 00.000'],
])('an axis with %s and %s has the labels %s', (first, second, labels) => {
  expect(timeLabels([first, second].map((time) => new Date(time).getTime())).join(', ')).toBe(labels);
});

test('times keep their microseconds', () => {
  expect(millisecondsAt('1970-01-01T00:00:01.234567Z')).toBeCloseTo(1_234.567, 6);
  expect(millisecondsAt('1970-01-01T00:00:01Z')).toBe(1_000);
});

test('the latency of a pending run is the time since its start', () => {
  const run = { start_time: '1970-01-01T00:00:10.000000Z', status: 'pending' };
  expect(latencyOf(run, 72_000)).toBe('1 m 02 s');
  expect(latencyOf({ ...run, status: 'interrupted' }, 72_000)).toBe('');
  expect(latencyOf({ ...run, status: 'success', end_time: '1970-01-01T00:00:12.500000Z' }, 72_000)).toBe('2.5 s');
});
