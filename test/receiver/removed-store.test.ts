import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { DEFAULT_SCOPE } from '#src/receiver.ts';
import { logLines } from '../support/log-lines.ts';
import { id, post } from './conformance/support.ts';
import { openLocalStore, storePath } from './local-store.ts';
import { call, makeRun, sendJson, start } from './wire.ts';

const DETAIL = 'The file of the store was removed or replaced';

async function startWithFile() {
  const path = storePath();
  const lines = logLines('warn');
  const store = await openLocalStore(path);
  const receiver = await start({ store });
  const get = async (route: string) => {
    const { status, body } = await call(`${receiver.url}${route}`, 'GET');
    return [status, body.detail];
  };
  return { path, lines, store, get, send: () => sendJson(receiver, 'POST', '/runs', makeRun({ inputs: {} })) };
}

// Windows does not remove open files.
describe.skipIf(process.platform === 'win32')('a store whose file is removed or replaced while it is open', () => {
  test.each<[string, (path: string) => void]>([
    ['removed', (path) => rmSync(path)],
    ['replaced', (path) => [rmSync(path), writeFileSync(path, '')]],
    ['renamed', (path) => renameSync(path, `${path}-old`)],
    ['kept without its write-ahead log', (path) => rmSync(`${path}-wal`)],
  ])('acknowledges no write after the file was %s, says why, and reading goes on', async (_, change) => {
    const { path, lines, store, get, send } = await startWithFile();
    expect((await send()).status).toBe(202);
    expect((await get('/readyz'))[0]).toBe(200);
    change(path);
    const body = { detail: `${DETAIL}: see the log of the receiver` };
    expect(await send()).toMatchObject({ status: 503, body, headers: { 'retry-after': '10' } });
    expect(await get('/readyz')).toEqual([503, DETAIL]);
    await expect(store.revokeTokens(DEFAULT_SCOPE, id(1), 1)).rejects.toMatchObject({ reason: 'unavailable' });
    expect((await get('/query/runs'))[0]).toBe(200);
    expect(lines).toEqual([expect.stringMatching(/^error: runs cannot be stored: \S*runs\.db .*removed/)]);
  });

  test('does not acknowledge a run whose write was going on', async () => {
    const { path, store } = await startWithFile();
    const written = store.apply(DEFAULT_SCOPE, [post(1)]);
    rmSync(path);
    await expect(written).rejects.toMatchObject({ reason: 'unavailable' });
  });

  test('accepts writes again when the file is back', async () => {
    const { path, get, send } = await startWithFile();
    renameSync(path, `${path}-old`);
    expect((await send()).status).toBe(503);
    renameSync(`${path}-old`, path);
    expect((await send()).status).toBe(202);
    expect((await get('/readyz'))[0]).toBe(200);
  });
});
