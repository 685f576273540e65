import { expect, it, onTestFinished } from 'vitest';
import { ignoreRejection } from '../../src/base/guard.ts';

it('ignores the rejection of a promise, and whatever is none', async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => {
    unhandled.push(reason);
  };
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  ignoreRejection(Promise.reject(new Error('mine')));
  for (const answer of [undefined, null, 5, 'text', {}, Promise.resolve(1)]) ignoreRejection(answer);
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));

  expect(unhandled).toEqual([]);
});
