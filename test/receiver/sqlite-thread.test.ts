import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import { sentError, WorkerThread } from '#src/receiver/store/sqlite/thread.ts';
import { StoreError } from '#src/receiver.ts';

interface Calls {
  echo(...words: string[]): string[];
  refuse(): void;
  wait(): void;
  die(): void;
}

async function open(path = 'store') {
  const told: unknown[] = [];
  const link = await WorkerThread.open<Calls>(
    { path },
    (change) => told.push(change),
    (problem) => told.push(problem),
    () => new Worker(new URL('../fixtures/store-thread.mjs', import.meta.url)),
  );
  onTestFinished(() => link.close());
  return { link, told };
}

describe('a thread of a store', () => {
  test('returns the result of each call, and reports changes first', async () => {
    const { link, told } = await open();
    expect(await Promise.all([link.call('echo', 'a'), link.call('echo', 'b', 'c')])).toEqual([['a'], ['b', 'c']]);
    expect(told).toEqual([
      { tenant: 'default', traces: ['a'] },
      { tenant: 'default', traces: ['b', 'c'] },
    ]);
  });

  test('rejects with the reason, the message and the delay of a StoreError', async () => {
    const { link } = await open();
    const refused = { name: 'StoreError', reason: 'busy', message: 'too many', retryAfterS: 3 };
    await expect(link.call('refuse')).rejects.toMatchObject(refused);
    expect(sentError(new StoreError('busy', 'too many', 3))).toMatchObject({ reason: 'busy', retryAfterS: 3 });
  });

  test('that cannot open its file reports the reason', async () => {
    await expect(open('refuse')).rejects.toMatchObject({ code: 'RUNSPAN_STORE_IN_USE', message: 'in use' });
    await expect(open('throw')).rejects.toMatchObject({
      code: 'RUNSPAN_STORE_FAILED',
      message: expect.stringContaining('cannot begin'),
    });
  });

  test('that fails rejects pending and later calls, and reports the problem once', async () => {
    const { link, told } = await open();
    const failed = {
      code: 'RUNSPAN_STORE_FAILED',
      message: 'The store cannot be used: its thread failed (out of order)',
    };
    const waiting = link.call('wait');
    await Promise.all([
      expect(waiting).rejects.toMatchObject(failed),
      expect(link.call('die')).rejects.toMatchObject(failed),
    ]);
    await expect(link.call('echo', 'a')).rejects.toMatchObject(failed);
    expect(told).toEqual(['out of order']);
    await link.close();
  });

  test('that is closed rejects calls', async () => {
    const { link, told } = await open();
    await link.close();
    await expect(link.call('echo', 'a')).rejects.toThrow('The store cannot be used: it is closed');
    expect(told).toEqual([]);
  });
});
