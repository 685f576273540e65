import { closeSync, openSync, writeSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Metrics } from '#src/receiver/http/server/metrics.ts';
import { loadEngine, SqliteConnection } from '#src/receiver/store/sqlite/file/database.ts';
import { DEFAULT_SCOPE } from '#src/receiver.ts';
import { logLines } from '../support/log-lines.ts';
import { id, post } from './conformance/support.ts';
import { indexAll, openLocalStore, storePath } from './local-store.ts';
import { call, makeRun, sendJson, start } from './wire.ts';

const RUNS = 1_000;
const DAMAGED = 'The store is damaged: see the log of the receiver';

/** Starts a receiver with a store of 1,000 runs, in which the details of the first runs are overwritten. */
async function startDamaged({ isIndexed = true } = {}) {
  const path = storePath();
  const filled = await openLocalStore(path);
  const posts = Array.from({ length: RUNS }, (_, at) => post(at + 1, { inputs: { at }, session_name: 'old' }));
  await filled.apply({ tenant: 'acme' }, posts);
  await filled.close();
  if (isIndexed) await indexAll(path);
  const connection = new SqliteConnection(await loadEngine(), path);
  connection.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const sql = "SELECT pageno AS page FROM dbstat WHERE name = 'details' AND pagetype = 'leaf' ORDER BY path LIMIT 2";
  const leaves = connection.all<{ page: number }>(sql);
  const bytes = connection.number('PRAGMA page_size');
  connection.close();
  const file = openSync(path, 'r+');
  for (const { page } of leaves) writeSync(file, Buffer.alloc(bytes, 0xa5), 0, bytes, (page - 1) * bytes);
  closeSync(file);
  const lines = logLines('warn');
  const store = await openLocalStore(path);
  const receiver = await start({ store });
  return {
    store,
    ready: async () => (await call(`${receiver.url}/readyz`, 'GET')).status,
    get: async (route: string) => (await call(`${receiver.url}${route}`, 'GET')).status,
    send: () => sendJson(receiver, 'POST', '/runs', makeRun({ inputs: {} })),
    metrics: async () => new Metrics().text(0, await store.status()),
    stopLines: () => lines.filter((line) => line.includes('stores no more runs')),
  };
}

describe('a store whose file is damaged', () => {
  test('acknowledges no run after a query has found the damage, and reading goes on', async () => {
    const { store, ready, get, send, metrics, stopLines } = await startDamaged();
    expect((await send()).status).toBe(202);
    expect(await metrics()).toContain('\nrunspan_store_damaged 0\n');
    await expect(store.details({ tenant: 'acme' }, id(1))).rejects.toThrow('is damaged');
    const refused = { status: 503, body: { detail: DAMAGED }, headers: { 'retry-after': '10' } };
    expect(await send()).toMatchObject(refused);
    expect(await ready()).toBe(503);
    expect(await metrics()).toContain('\nrunspan_store_damaged 1\n');
    for (const write of [
      store.remove({ tenant: 'bolt' }, { kind: 'trace', id: id(1) }),
      store.revokeTokens(DEFAULT_SCOPE, id(1), 1),
    ]) {
      await expect(write).rejects.toMatchObject({ reason: 'unavailable', message: DAMAGED });
    }
    expect(await get('/query/runs')).toBe(200);
    expect((await store.details({ tenant: 'acme' }, id(RUNS)))?.id).toBe(id(RUNS));
    await expect(store.details({ tenant: 'acme' }, id(2))).rejects.toThrow('is damaged');
    expect(stopLines()).toEqual([expect.stringMatching(/^error: .*runs\.db is damaged .*recover/)]);
  });

  test('acknowledges no run after a background step has found the damage', async () => {
    const { send } = await startDamaged({ isIndexed: false });
    await expect.poll(async () => (await send()).status).toBe(503);
    expect((await send()).status).toBe(503);
  });

  test('does not acknowledge a run that was written while a query found the damage', async () => {
    const { store } = await startDamaged();
    const found = store.details({ tenant: 'acme' }, id(1));
    const written = store.apply(DEFAULT_SCOPE, [post(3_000)]);
    await expect(found).rejects.toThrow('is damaged');
    await expect(written).rejects.toMatchObject({ message: DAMAGED });
  });

  test('acknowledges no run after a write has found the damage', async () => {
    const { store, send, stopLines } = await startDamaged();
    const patch = { kind: 'patch' as const, id: id(1), fields: { outputs: {} }, attachments: [] };
    const both = [store.apply({ tenant: 'acme' }, [patch]), store.apply(DEFAULT_SCOPE, [post(3_000)])];
    for (const write of both) await expect(write).rejects.toMatchObject({ message: DAMAGED });
    expect((await send()).status).toBe(503);
    expect(stopLines()).toHaveLength(1);
  });
});
