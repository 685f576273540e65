import { expect, test, vi } from 'vitest';
import { env } from '#src/config/environment.ts';

function withProject(value: string | undefined): string | undefined {
  vi.stubEnv('RUNSPAN_PROJECT', value);
  return env('RUNSPAN_PROJECT');
}

test.each([
  [undefined, undefined],
  ['', undefined],
  [' \t\r\n', undefined],
  ['chat', 'chat'],
  ['  two words\n', 'two words'],
  ['false', 'false'],
  ['0', '0'],
])('%j in the environment is read as %j', (value, expected) => {
  expect(withProject(value)).toBe(expected);
});

test('the environment is read at each call, so a variable may be set after the import', () => {
  expect(withProject('early')).toBe('early');
  expect(withProject('late')).toBe('late');
});
