import { expect, test } from 'vitest';
import { maskOf, passwordsOf } from '../server/secrets.ts';

test('what is secret is taken out of a text wherever it stands', () => {
  const mask = maskOf(['sk-123', undefined, 'sk-123-456']);
  expect(mask('sk-123 of sk-123-456, not sk-12')).toBe('[Redacted] of [Redacted], not sk-12');
});

test('what is too short for a secret stays', () => {
  expect(maskOf(['abcde'])('abcde')).toBe('abcde');
  expect(maskOf(['abcdef'])('abcdef')).toBe('[Redacted]');
  expect(maskOf([''])('ab')).toBe('ab');
});

test('a password is found in an address, in both forms', () => {
  expect(passwordsOf('postgres://user:p%40ssword@host/db')).toEqual(['p%40ssword', 'p@ssword']);
  expect(passwordsOf('redis://:100%25%zz@host')).toEqual(['100%25%zz']);
  expect(passwordsOf('no address')).toEqual([]);
  expect(passwordsOf(undefined)).toEqual([]);
});
