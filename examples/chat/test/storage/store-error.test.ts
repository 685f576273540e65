import { expect, test } from 'vitest';
import { isAway } from '../../server/storage/store-error.ts';

const failure = (message: string, code?: string): Error => Object.assign(new Error(message), { code });

test.each([
  failure('connect ECONNREFUSED', 'ECONNREFUSED'),
  failure('the database system is starting up', '57P03'),
  failure('sorry, too many clients already', '53300'),
  failure('Connection terminated unexpectedly'),
  failure('timeout exceeded when trying to connect'),
  failure('LOADING Redis is loading the dataset in memory'),
  failure("READONLY You can't write against a read only replica."),
  failure('cannot execute UPDATE in a read-only transaction', '25006'),
  failure('connect EHOSTDOWN', 'EHOSTDOWN'),
  failure('Cannot use a pool after calling end on the pool'),
  failure('The client is closed'),
])('a store that does not answer is away: %s', (error) => {
  expect(isAway(error)).toBe(true);
});

test.each([
  failure('duplicate key', '23505'),
  failure('permission denied', '42501'),
  failure('database is locked', 'ERR_SQLITE_ERROR'),
  failure('WRONGTYPE Operation against a key'),
  failure('The socket of the lamp is broken'),
  'Socket closed',
])('a store that answers is not: %s', (error) => {
  expect(isAway(error)).toBe(false);
});
