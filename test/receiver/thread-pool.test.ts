import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WorkerThread } from '#src/receiver/store/sqlite/thread.ts';
import { ThreadPool } from '#src/receiver/store/sqlite/thread-pool.ts';

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
  const read = (name: string, signal?: AbortSignal) => pool.call(signal, 'read', name);
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
    const start = () => new Worker(new URL('../fixtures/store-thread.mjs', import.meta.url));
    const pool = new ThreadPool<{ echo(word: string): string[]; die(): void }>(
      (ended) =>
        WorkerThread.open(
          { path: 'store', ended },
          () => {},
          (problem) => problems.push(problem),
          start,
        ),
      1,
    );
    onTestFinished(() => pool.close());
    const dying = pool.call(undefined, 'die');
    const waiting = ['a', 'b'].map((word) => pool.call(undefined, 'echo', word));
    await expect(dying).rejects.toMatchObject({ code: 'RUNSPAN_STORE_FAILED' });
    expect(await Promise.all([...waiting, pool.call(undefined, 'echo', 'c')])).toEqual([['a'], ['b'], ['c']]);
    await expect(pool.call(undefined, 'die')).rejects.toThrow('out of order');
    expect(await pool.call(undefined, 'echo', 'd')).toEqual(['d']);
    expect(problems).toEqual(['out of order', 'out of order']);
  });
});
