import { expect, test } from 'vitest';
import { isLoopback } from '../../src/base/options.ts';

test.each([
  ['127.0.0.1', true],
  ['127.255.255.254', true],
  ['::1', true],
  ['[::1]', true],
  ['localhost', true],
  ['LOCALHOST', true],
  ['localhost.', false],
  ['localhost.evil.example', false],
  ['128.0.0.1', false],
  ['0.0.0.0', false],
  ['::', false],
  ['::ffff:127.0.0.1', false],
  ['2130706433', false],
  ['127.1', false],
  ['localhost.evil.com', false],
  ['::1.evil.com', false],
  ['127.0.0.1.evil.example', false],
  ['', false],
])('%s is a loopback host: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});
