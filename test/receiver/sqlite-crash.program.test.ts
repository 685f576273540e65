import { existsSync, readFileSync, statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DEFAULT_SCOPE, parsedQuery } from '#src/receiver.ts';
import { moduleText, runNode, startNode } from '../support/program.ts';
import { expectWhole, killedUnderLoad, sendRequest } from './killed-store.ts';
import { openLocalStore, storePath } from './local-store.ts';

test('a killed receiver has all acknowledged runs when it starts again', async () => {
  const path = storePath();
  let next = 0;
  for (const afterMs of [150, 300, 600]) next = await killedUnderLoad(path, next, afterMs);
});

/** Another program that uses SQLite. `exec` leaves no statement open, so `close` really closes the file. */
const OTHER_PROGRAM = moduleText(`
  const { DatabaseSync } = process.getBuiltinModule?.('node:sqlite') ?? (await import('@photostructure/sqlite'));
  const database = new DatabaseSync(process.argv[1]);
  database.exec(process.argv[2]);
  database.close();
`);

test('a receiver keeps its lock and all acknowledged runs while other programs open its file', async () => {
  const path = storePath();
  const { child, printed, ended } = startNode(['test/fixtures/store-program.mjs', path]);
  const url = (await printed(/http:\S+/))[0];
  await sendRequest(url, 0);
  // Opens the second reader.
  for (const page of ['query/traces', 'query/statistics']) expect((await fetch(`${url}/${page}`)).status).toBe(200);
  if (process.platform === 'linux') expect(locksOf(child.pid, path)).toContain('READ');
  for (const sql of ['SELECT count(*) FROM runs', `VACUUM INTO '${path}-copy'`]) {
    expect(await runNode([...OTHER_PROGRAM, path, sql])).toMatchObject({ code: 0 });
    expect(existsSync(`${path}-wal`)).toBe(true);
  }
  const second = await runNode(['test/fixtures/store-program.mjs', path]);
  expect(second.stderr).toContain('RUNSPAN_STORE_IN_USE');
  for (const number of [1, 2, 3]) expect(await sendRequest(url, number)).toBe(202);
  expect((await fetch(`${url}/query/statistics`)).status).toBe(200);
  child.kill('SIGKILL');
  await ended;
  await expectWhole(path, [0, 1, 2, 3]);
  await expectWhole(`${path}-copy`, [0]);
});

/** Returns the kinds of locks that the process holds on the file, according to `/proc/locks`. */
function locksOf(pid: number | undefined, path: string): string[] {
  const file = new RegExp(`(READ|WRITE) +${pid} [^ ]*:${statSync(path).ino} `);
  return readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .flatMap((line) => file.exec(line)?.[1] ?? []);
}

const PROGRAM = `
  import { DEFAULT_SCOPE, parsedQuery, SqliteStore } from 'runspan/receiver';
  const store = await SqliteStore.open(process.argv[1]);
  store.subscribe(DEFAULT_SCOPE, ({ traceIds }) => console.log('changed', traceIds.length));
  const fields = { name: 'a', run_type: 'chain', start_time: '2026-11-20T07:00:00.000000Z', inputs: { a: 'zebra' } };
  const id = '00000000-0000-7000-8000-000000000001';
  await store.apply(DEFAULT_SCOPE, [{ kind: 'post', id, fields, attachments: [] }]);
  console.log((await store.list(DEFAULT_SCOPE, parsedQuery({ text: 'zebra' }))).items.length, (await store.statistics(DEFAULT_SCOPE, parsedQuery({}))).total.runs);
`;

test('a program with an open store ends by itself, with or without closing it, and prints nothing else', async () => {
  const path = storePath();
  for (const end of ['', 'await store.close();', 'await Promise.all([store.close(), store.close()]);']) {
    const ended = await runNode(['--input-type=module', '-e', PROGRAM + end, path]);
    expect(ended).toEqual({ code: 0, signal: null, stdout: 'changed 1\n1 1\n', stderr: '' });
  }
});

test('a program that exits while its store reads and writes ends with its own exit code, and has written what was acknowledged', async () => {
  const program = `
    import { DEFAULT_SCOPE, parsedQuery, SqliteStore } from 'runspan/receiver';
    const store = await SqliteStore.open(process.argv[1]);
    const fields = { name: 'a', run_type: 'chain', start_time: '2026-11-20T07:00:00.000000Z' };
    const post = (n) => ({ kind: 'post', id: '00000000-0000-7000-8000-' + String(n).padStart(12, '0'), fields, attachments: [] });
    let [written, read] = [0, 0];
    const onRead = () => (read += 1) === Number(process.argv[2]) && process.exit(written);
    await store.apply(DEFAULT_SCOPE, Array.from({ length: 200 }, (_, n) => post(1000 + n)));
    for (let n = 0; n < 200; n++) {
      store.apply(DEFAULT_SCOPE, [post(n)]).then(() => (written += 1));
      store.list(DEFAULT_SCOPE, parsedQuery({ limit: 100 })).then(onRead);
    }
  `;
  const exits = [1, 5, 10, 20, 30, 40, 60, 80].map(async (exitAt) => {
    const path = storePath();
    const ended = await runNode(['--input-type=module', '-e', program, path, `${exitAt}`]);
    expect(ended).toEqual({ code: expect.any(Number), signal: null, stdout: '', stderr: '' });
    const { total } = await (await openLocalStore(path)).statistics(DEFAULT_SCOPE, parsedQuery({}));
    expect(total.runs).toBeGreaterThanOrEqual(200 + (ended.code ?? 0));
  });
  await Promise.all(exits);
});

test('a store that is opened by a symbolic link stays the same for all threads if the link changes', async () => {
  const path = storePath();
  const program = `
    import { renameSync, symlinkSync } from 'node:fs';
    import { DEFAULT_SCOPE, parsedQuery, SqliteStore } from 'runspan/receiver';
    const [, path] = process.argv;
    await (await SqliteStore.open(path + '-other')).close();
    symlinkSync(path, path + '-link');
    const store = await SqliteStore.open(path + '-link');
    const fields = { name: 'a', run_type: 'chain', start_time: '2026-11-20T07:00:00.000000Z' };
    const id = '00000000-0000-7000-8000-000000000001';
    await store.apply(DEFAULT_SCOPE, [{ kind: 'post', id, fields, attachments: [] }]);
    symlinkSync(path + '-other', path + '-new');
    renameSync(path + '-new', path + '-link');
    console.log((await store.statistics(DEFAULT_SCOPE, parsedQuery({}))).total.runs);
  `;
  expect(await runNode(['--input-type=module', '-e', program, path])).toMatchObject({ stdout: '1\n', stderr: '' });
});

test('a program learns which process has its file open', async () => {
  const path = storePath();
  const program = `
    import { DEFAULT_SCOPE, parsedQuery, SqliteStore } from 'runspan/receiver';
    const store = await SqliteStore.open(process.argv[1]);
    await store.setAddress('http://127.0.0.1:4777');
    const reading = await SqliteStore.open(process.argv[1], { readOnly: true });
    console.log((await reading.owner()).pid === process.pid, (await store.list(DEFAULT_SCOPE, parsedQuery({}))).items.length);
    const isRefused = await reading.apply(DEFAULT_SCOPE, []).catch(({ message }) => message.includes('open read-only'));
    await SqliteStore.open(process.argv[1]).catch(({ code, message }) => console.log(isRefused, code, message.includes(':4777')));
    await reading.close();
    await store.close();
  `;
  const ended = await runNode(['--input-type=module', '-e', program, path]);
  expect(ended).toMatchObject({ stdout: 'true 0\ntrue RUNSPAN_STORE_IN_USE true\n', stderr: '' });
});
