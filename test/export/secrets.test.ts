import { expect, it } from 'vitest';
import { withoutSecrets } from '../../src/export/secrets.ts';

const headers = { 'x-api-key': 'lsv2_canary', 'x-team': 'abc', 'user-agent': 'runspan', cookie: 'c=123456' };

it.each([
  ['connect ECONNREFUSED 127.0.0.1:9', 'connect ECONNREFUSED 127.0.0.1:9'],
  ['invalid header value lsv2_canary, lsv2_canary', 'invalid header value [hidden], [hidden]'],
  ['cookie c=123456 is too long', 'cookie [hidden] is too long'],
  // Too short to be told from words, and who we are.
  ['abc: runspan was refused', 'abc: runspan was refused'],
  ['proxy http://user:pa55@proxy:8080/a failed', 'proxy http://proxy:8080/a failed'],
  ['no host at https://token@host and http://a@b', 'no host at https://host and http://b'],
])('%j is told as %j', (message, told) => {
  expect(withoutSecrets(message, headers)).toBe(told);
});
