import { expect, it } from 'vitest';
import { durationText } from '../../src/cli/duration.ts';

it.each<[number, string]>([
  [-5, '0.0 ms'],
  [0, '0.0 ms'],
  [49, '0.0 ms'],
  [9_949, '9.9 ms'],
  [9_950, '10 ms'],
  [999_499, '999 ms'],
  [999_500, '1.00 s'],
  [59_994_000, '59.99 s'],
  [59_995_000, '1 min 0 s'],
  [125_000_000, '2 min 5 s'],
  [3_599_499_000, '59 min 59 s'],
  [3_599_500_000, '1 h 0 min'],
  [90_061_000_000, '25 h 1 min'],
])('%i µs read as %s', (us, text) => {
  expect(durationText(us)).toBe(text);
});
