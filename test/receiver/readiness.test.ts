import { describe, expect, test, vi } from 'vitest';
import { DEFAULT_SCOPE, MemoryStore, type Store, StoreError } from '#src/receiver.ts';
import { openLocalStore } from './local-store.ts';
import { call, makeRun, sendJson, start, startWithin } from './wire.ts';

/** Starts a receiver whose store writes with `apply`. `later` moves the clock. */
async function startWith(apply: Store['apply'], readyMs?: number) {
  vi.useFakeTimers({ toFake: ['performance'] });
  const store = new MemoryStore();
  const write = vi.fn(apply);
  store.apply = write;
  const receiver = await startWithin(store, {}, { ...(readyMs !== undefined && { readyMs }) });
  const ready = async () => {
    const { status, body } = await call(`${receiver.url}/readyz`, 'GET');
    return [status, body.status ?? body.detail];
  };
  return { receiver, write, ready, later: (ms: number) => void vi.advanceTimersByTime(ms) };
}

const READY = [200, 'ready'];
const full = async () => {
  throw new StoreError('unavailable', 'Runs cannot be stored: /data/runs.db is full', 10);
};

describe('/readyz', () => {
  test('tests a write at most every 10 s, also for concurrent requests', async () => {
    const { write, ready, later } = await startWith(async () => undefined);
    expect(await Promise.all([ready(), ready(), ready()])).toEqual([READY, READY, READY]);
    later(9_999);
    expect(await ready()).toEqual(READY);
    expect(write).toHaveBeenCalledOnce();
    later(1);
    expect(await ready()).toEqual(READY);
    expect(write.mock.calls).toEqual([
      [DEFAULT_SCOPE, []],
      [DEFAULT_SCOPE, []],
    ]);
  });

  test('is 503 with a reason while the store cannot write, without names of files, and reads go on', async () => {
    const { receiver, write, ready, later } = await startWith(full);
    for (let second = 0; second < 9; second += 1) {
      expect(await ready()).toEqual([503, 'Runs cannot be stored']);
      later(1_000);
    }
    expect(write).toHaveBeenCalledOnce();
    expect((await call(`${receiver.url}/query/runs`, 'GET')).status).toBe(200);
    write.mockImplementation(async () => undefined);
    later(1_000);
    expect(await ready()).toEqual(READY);
    write.mockImplementation(async () => {
      throw new Error('EROFS /data');
    });
    later(10_000);
    expect(await ready()).toEqual([503, 'The store cannot write']);
  });

  test('is 503 while the store holds a write, and 200 when the write has ended', async () => {
    let release = (): void => {};
    const written = new Promise<undefined>((resolve) => {
      release = () => resolve(undefined);
    });
    const { write, ready } = await startWith(() => written, 50);
    const reason = 'The store has not written within 0.05 s';
    expect(await Promise.all([ready(), ready()])).toEqual([
      [503, reason],
      [503, reason],
    ]);
    release();
    expect(await ready()).toEqual(READY);
    expect(write).toHaveBeenCalledOnce();
  });

  test.each([
    [413, new StoreError('too_large', 'The run has too many attachments')],
    [503, new StoreError('unavailable', 'Runs cannot be stored')],
  ])('is not affected by the writes of clients, here with %i', async (status, error) => {
    const { receiver, write, ready } = await startWith(async () => undefined);
    expect(await ready()).toEqual(READY);
    write.mockRejectedValue(error);
    expect((await sendJson(receiver, 'POST', '/runs', makeRun({ inputs: {} }))).status).toBe(status);
    expect(await ready()).toEqual(READY);
  });

  test('leaves nothing that users see in an SQLite file', async () => {
    const store = await openLocalStore();
    const heard = vi.fn();
    store.subscribe(DEFAULT_SCOPE, heard);
    const receiver = await start({ store });
    expect((await call(`${receiver.url}/readyz`, 'GET')).status).toBe(200);
    expect(await store.tenants()).toEqual([]);
    expect(heard).not.toHaveBeenCalled();
  });
});
