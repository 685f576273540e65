import { expect, test } from 'vitest';
import { guard, ignoreRejection } from '#src/base/guard.ts';
import { logLines } from '../support/log-lines.ts';
import { hostileValues } from './hostile.ts';
import { unhandledRejections } from './rejections.ts';

test('guard returns the result, or undefined for an error, which is logged once per place', () => {
  const lines = logLines();
  const fail = (): number => {
    throw new TypeError('no such key');
  };
  expect([guard('set', () => 7), guard('set', fail), guard('set', fail), guard('end', fail)]).toEqual([
    7,
    undefined,
    undefined,
    undefined,
  ]);
  expect(lines).toEqual([
    'warn: set failed, the application is not affected: no such key',
    'warn: end failed, the application is not affected: no such key',
  ]);
});

test('guard accepts every thrown value', () => {
  logLines();
  for (const [index, make] of hostileValues.entries()) {
    expect(() =>
      guard(`place ${index}`, () => {
        throw make();
      }),
    ).not.toThrow();
  }
});

test('ignoreRejection marks the rejection of a promise as handled, and accepts every other value', async () => {
  const rejections = unhandledRejections();
  ignoreRejection(Promise.reject(new Error('mine')));
  for (const result of [undefined, null, 5, 'text', {}, Promise.resolve(1)]) ignoreRejection(result);
  expect(await rejections()).toEqual([]);
});
