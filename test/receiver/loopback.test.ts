import { expect, test } from 'vitest';
import { isLoopback, isOwnAuthority } from '../../src/receiver/loopback.ts';

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
  ['127.0.0.1.evil.example', false],
  ['', false],
])('%s is a loopback host: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});

test.each([
  ['127.0.0.1:4777', 4777, true],
  ['localhost:4777', 4777, true],
  ['[::1]:4777', 4777, true],
  ['localhost', 80, true],
  ['localhost', 4777, false],
  ['localhost:4778', 4777, false],
  ['::1:4777', 4777, false],
  ['localhost:', 4777, false],
  ['evil.example:4777', 4777, false],
  ['127.0.0.1:4777@evil.example', 4777, false],
  [undefined, 4777, false],
])('%s is our own on port %i: %s', (authority, port, expected) => {
  expect(isOwnAuthority(authority, port)).toBe(expected);
});
