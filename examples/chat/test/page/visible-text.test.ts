import { expect, test } from 'vitest';
import { isBlank } from '../../page/visible-text.ts';

test.each([
  ['', true],
  [' \n\t\u00a0', true],
  ['\u200b\u200d\ufeff', true],
  ['\u202e\u2066 \u00ad\u0000', true],
  ['\u3164\ufe0f\u{e0041}', true],
  ['\u200b.', false],
  ['0', false],
  ['\ud800', false],
])('of %j nothing is seen: %j', (text, expected) => {
  expect(isBlank(text)).toBe(expected);
});
