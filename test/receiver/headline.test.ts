import { createServer } from 'node:net';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { errorText } from '#src/payload/errors.ts';
import { headlineOf } from '#src/receiver/domain/trace/headline.ts';
import { listen } from '../support/listen.ts';

test('of a failed request names the address, as runspan records the error and as Node prints it', async () => {
  const server = createServer();
  const { host, port } = new URL(await listen(server));
  await new Promise((resolve) => server.close(resolve));
  const failed: Error = await fetch(`http://127.0.0.1:${port}`).catch((error) => error);
  const headline = `TypeError: fetch failed ← Error: connect ECONNREFUSED 127.0.0.1:${port}`;
  expect(host).toBe(`127.0.0.1:${port}`);
  expect([headlineOf(errorText(failed)), headlineOf(inspect(failed))]).toEqual([headline, headline]);
});

test.each([
  ['Error: no\n    at a (b.js:1:2)', 'Error: no'],
  ['\r\n\r\nTimeout\r\nat b', 'Timeout'],
  ['A: a\n  at x\nCaused by: B: b\n  at y\nCaused by: C: c\n  at z', 'A: a ← C: c'],
  [
    'com.a.Failed: a\r\n\tat x\r\nCaused by: java.io.IOException: b\r\n\tat y',
    'com.a.Failed: a ← java.io.IOException: b',
  ],
  ['Error: no answer: too late\nCaused by: TimeoutError: too late', 'Error: no answer: too late'],
  [' \n\t\n ', 'error without a message'],
  [`${' '.repeat(40_000)}Error: late`, 'Error: late'],
  ['Error: a\n  it was Caused by: b', 'Error: a'],
  [`Error: ${'x'.repeat(300)}`, `Error: ${'x'.repeat(193)}…`],
  [`${'x'.repeat(300)}\nCaused by: ${'y'.repeat(300)}`, `${'x'.repeat(95)}… ← ${'y'.repeat(100)}…`],
  [`a\n${' '.repeat(10_000_000)}\nCaused by: b`, 'a'],
])('of the error %j is %s', (error, headline) => {
  expect(headlineOf(error)).toBe(headline);
});
