import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import { sentError, WorkerThread } from '#src/receiver/store/sqlite/threads/thread.ts';
import { ThreadPool } from '#src/receiver/store/sqlite/threads/thread-pool.ts';
import { DEFAULT_SCOPE, StoreError } from '#src/receiver.ts';

const startFixture = () => new Worker(new URL('../fixtures/store-thread.mjs', import.meta.url));

interface Calls {
  read(name: string): string;
}

/** A pool of at most two threads whose calls end when the test ends them, or when they are told to. */
function make() {
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const flags: Int32Array[] = [];
  const failures: Error[] = [];
  const pool = new ThreadPool<Calls>(async (ended) => {
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
    const number = flags.push(ended);
    return {
      call: ((_: string, name: string) => {
        started.push(`${name} in thread ${number}`);
        return new Promise((resolve) => ends.set(name, () => resolve(name)));
      }) as never,
      hasEnded: false,
      close: async () => void started.push(`close thread ${number}`),
    };
  }, 2);
  const read = (name: string, signal?: AbortSignal, tenant = 'acme') => pool.call({ tenant, signal }, 'read', name);
  const end = (name: string) => ends.get(name)?.();
  return { pool, read, end, started, flags, failures };
}

describe('a pool of threads', () => {
  test('executes one call per thread, and other calls in their order when a thread is free', async () => {
    const { read, end, started } = make();
    const calls = ['a', 'b', 'c', 'd'].map((name) => read(name));
    await expect.poll(() => started).toEqual(['a in thread 1', 'b in thread 2']);
    end('b');
    expect(await calls[1]).toBe('b');
    await expect.poll(() => started.slice(2)).toEqual(['c in thread 2']);
    end('c');
    await expect.poll(() => started.slice(3)).toEqual(['d in thread 2']);
    end('a');
    end('d');
    expect(await Promise.all(calls)).toEqual(['a', 'b', 'c', 'd']);
    void read('e');
    await expect.poll(() => started).toHaveLength(5);
  });

  test('gives a tenant half of the threads while another has calls, and waiting tenants take turns', async () => {
    const { read, end, started } = make();
    const names = () => started.map((line) => line.replace(/ in.*/, ''));
    for (const name of ['a1', 'a2', 'a3', 'a4']) void read(name);
    for (const name of ['b1', 'b2']) void read(name, undefined, 'bolt');
    void read('c1', undefined, 'cobalt');
    await expect.poll(names).toEqual(['a1', 'a2']);
    const next = ['b1', 'c1', 'a3', 'b2', 'a4'];
    for (const [at, name] of ['a2', 'b1', 'a1', 'c1', 'a3'].entries()) {
      end(name);
      await expect.poll(() => names().slice(2)).toEqual(next.slice(0, at + 1));
    }
    // Others had to wait in the last minute, so one thread stays free for them.
    end('b2');
    void read('a5');
    void read('b3', undefined, 'bolt');
    await expect.poll(() => names().slice(7)).toEqual(['b3']);
  });

  test('tells a thread to end its call when the signal aborts, and only this call', async () => {
    const { read, end, started, flags } = make();
    const [first, second] = [new AbortController(), new AbortController()];
    const calls = [read('a', first.signal), read('b', second.signal)];
    await expect.poll(() => started).toHaveLength(2);
    first.abort();
    expect(flags.map(([flag]) => flag)).toEqual([1, 0]);
    end('a');
    await calls[0];
    void read('c');
    await expect.poll(() => started.at(-1)).toBe('c in thread 1');
    expect(flags.map(([flag]) => flag)).toEqual([0, 0]);
    end('b');
    await calls[1];
    second.abort();
    expect(flags.map(([flag]) => flag)).toEqual([0, 0]);
  });

  test('rejects a waiting call at once when its signal aborts, and a call whose signal has aborted', async () => {
    const { read, end, started } = make();
    const left = new AbortController();
    void read('a');
    void read('b');
    const waiting = [read('c', left.signal), read('d')];
    await expect.poll(() => started).toHaveLength(2);
    left.abort();
    for (const call of [waiting[0], read('e', left.signal)])
      await expect(call).rejects.toMatchObject({ reason: 'unavailable' });
    end('a');
    await expect.poll(() => started.slice(2)).toEqual(['d in thread 1']);
  });

  test('opens a thread for a waiting call if another thread could not be opened', async () => {
    const { read, started, failures } = make();
    failures.push(new Error('no thread'), new Error('no thread'));
    const calls = [read('a'), read('b')];
    void read('c');
    for (const call of calls) await expect(call).rejects.toThrow('no thread');
    await expect.poll(() => started).toEqual(['c in thread 1']);
  });

  test('ends all calls when it closes, and opens no thread for a later or waiting call', async () => {
    const { pool, read, started, flags } = make();
    for (const name of ['a', 'b']) void read(name);
    const waiting = [read('c'), read('d')];
    await expect.poll(() => started).toHaveLength(2);
    await pool.close();
    for (const call of [...waiting, read('e')]) await expect(call).rejects.toMatchObject({ reason: 'unavailable' });
    expect(flags.map(([flag]) => flag)).toEqual([1, 1]);
    expect(started.slice(2)).toEqual(['close thread 1', 'close thread 2']);
  });

  test('replaces a thread that fails, also for calls that wait', async () => {
    const problems: string[] = [];
    const onEnd = (problem: string) => void problems.push(problem);
    const pool = new ThreadPool<FixtureCalls>(
      (ended) => WorkerThread.open({ path: 'store', ended }, () => {}, onEnd, startFixture),
      1,
    );
    onTestFinished(() => pool.close());
    const dying = pool.call(DEFAULT_SCOPE, 'die');
    const waiting = ['a', 'b'].map((word) => pool.call(DEFAULT_SCOPE, 'echo', word));
    await expect(dying).rejects.toMatchObject({ code: 'RUNSPAN_STORE_FAILED' });
    expect(await Promise.all([...waiting, pool.call(DEFAULT_SCOPE, 'echo', 'c')])).toEqual([['a'], ['b'], ['c']]);
    await expect(pool.call(DEFAULT_SCOPE, 'die')).rejects.toThrow('out of order');
    expect(await pool.call(DEFAULT_SCOPE, 'echo', 'd')).toEqual(['d']);
    expect(problems).toEqual(['out of order', 'out of order']);
  });
});

interface FixtureCalls {
  echo(...words: string[]): string[];
  refuse(): void;
  wait(): void;
  die(): void;
}

async function open(path = 'store') {
  const told: unknown[] = [];
  const link = await WorkerThread.open<FixtureCalls>(
    { path },
    (change) => told.push(change),
    (problem) => told.push(problem),
    startFixture,
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
