import { expect, test } from 'vitest';
import { errorCodes, RunspanError } from '../../src/base/errors.ts';

test('an error has its code, its message, a name and the error underneath', () => {
  const cause = new Error('EADDRINUSE');
  const error = new RunspanError('RUNSPAN_ADDRESS_IN_USE', 'Port 4777 is taken', { cause });
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({ code: 'RUNSPAN_ADDRESS_IN_USE', message: 'Port 4777 is taken', cause });
  expect(String(error)).toBe('RunspanError: Port 4777 is taken');
});

test('an error without one underneath has no cause', () => {
  expect('cause' in new RunspanError('RUNSPAN_INVALID_OPTION', 'x')).toBe(false);
});

test('every code is explained in a sentence', () => {
  for (const condition of Object.values(errorCodes)) expect(condition).toMatch(/^[A-Z].+\.$/);
});
