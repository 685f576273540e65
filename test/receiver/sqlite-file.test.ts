import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { loadEngine, SqliteConnection } from '#src/receiver/store/sqlite/database.ts';
import { currentOwner, openToRead, openToWrite, setOwner } from '#src/receiver/store/sqlite/file.ts';
import { FORMAT_VERSION } from '#src/receiver/store/sqlite/schema.ts';
import { DEFAULT_SCOPE, parsedQuery, type RunOperation } from '#src/receiver.ts';
import { openLocalStore, storePath } from './local-store.ts';

const engine = await loadEngine();

test('a Node whose SQLite lacks FTS5 uses the SQLite package', async () => {
  class WithoutFts5 {
    exec(): void {
      throw new Error('no such module: fts5');
    }
    close(): void {}
  }
  const builtin = { DatabaseSync: WithoutFts5 } as never;
  const spy = vi.spyOn(process, 'getBuiltinModule').mockReturnValue(builtin);
  onTestFinished(() => spy.mockRestore());
  expect((await loadEngine()).DatabaseSync).not.toBe(WithoutFts5);
});

type OpenFile = ReturnType<typeof openToWrite>;

function open(path: string): OpenFile {
  const file = openToWrite(engine, path);
  onTestFinished(() => close(file));
  return file;
}

const closed = new WeakSet<OpenFile>();
function close(file: OpenFile): void {
  if (closed.has(file)) return;
  closed.add(file);
  file.connection.close();
  file.lock.release();
}

/** Returns the contents of all files in the folder of a file. */
function contents(path: string): Record<string, string> {
  const folder = dirname(path);
  return Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'latin1')]));
}

describe('a new store', () => {
  test('is created with its folders, readable only by its owner', () => {
    const path = join(dirname(storePath()), 'a', 'b', 'runs.db');
    open(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(`${path}-lock`).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
  });

  test('uses incremental vacuum and a WAL', () => {
    const { connection } = open(storePath());
    expect(connection.number('PRAGMA auto_vacuum')).toBe(2);
    expect(connection.one('PRAGMA journal_mode')).toEqual({ journal_mode: 'wal' });
    expect(connection.number('PRAGMA synchronous')).toBe(1);
    expect(connection.number('PRAGMA user_version')).toBe(FORMAT_VERSION);
  });

  test('replaces an interrupted creation and an empty file', () => {
    const path = storePath();
    writeFileSync(`${path}-new`, 'half of it');
    writeFileSync(path, '');
    expect(open(path).connection.number('SELECT count(*) FROM runs')).toBe(0);
    expect(existsSync(`${path}-new`)).toBe(false);
  });
});

describe('a store that is open', () => {
  test('cannot be opened again, and the error names the process and the address', () => {
    const path = storePath();
    const { connection } = open(path);
    setOwner(connection, { pid: 4711, started_at: '2026-11-20T07:00:00.000Z', address: 'http://127.0.0.1:4777' });
    const message = `The store ${path} is open in process 4711, started 2026-11-20T07:00:00.000Z, whose receiver listens on http://127.0.0.1:4777: send the runs there, stop that process, or use another file`;
    expect(() => openToWrite(engine, path)).toThrow(expect.objectContaining({ code: 'RUNSPAN_STORE_IN_USE', message }));
    expect(currentOwner(engine, path)?.pid).toBe(4711);
  });

  test('can be opened again after it is closed, even if the file names an owner', () => {
    const path = storePath();
    const file = open(path);
    setOwner(file.connection, { pid: 4711, started_at: '2026-11-20T07:00:00.000Z' });
    close(file);
    expect(currentOwner(engine, path)).toBeUndefined();
    open(path);
  });

  test('can be read but not written by other connections', () => {
    const path = storePath();
    const { connection } = open(path);
    const reader = openToRead(engine, path);
    onTestFinished(() => reader.close());
    connection.run("INSERT INTO meta VALUES ('a', 1)");
    expect(reader.one("SELECT value FROM meta WHERE key = 'a'")).toEqual({ value: 1 });
    expect(() => reader.run("INSERT INTO meta VALUES ('b', 1)")).toThrow('readonly');
  });
});

describe('a symbolic link', () => {
  function link(target: string): string {
    const path = storePath();
    symlinkSync(target, path);
    return path;
  }

  test.each<[string, (target: string) => void]>([
    ['a missing file', () => {}],
    ['an empty file', (target) => writeFileSync(target, '')],
    ['a file in a missing folder', (target) => rmSync(dirname(target), { recursive: true })],
  ])('to %s is kept, and its target becomes the store', async (_, prepare) => {
    const target = storePath();
    const path = link(target);
    prepare(target);
    await (await openLocalStore(path)).close();
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    expect(readdirSync(dirname(path))).toEqual(['runs.db']);
    expect(() => open(target)).not.toThrow();
  });

  test('shares the lock of its target', async () => {
    const target = storePath();
    const store = await openLocalStore(link(target));
    await expect(openLocalStore(target)).rejects.toThrow(`The store ${target} is open in process ${process.pid}`);
    await expect(openLocalStore(link(link(target)))).rejects.toThrow(`The store ${target} is open in process`);
    await store.close();
  });

  test('may be relative to a linked folder', async () => {
    const target = storePath();
    mkdirSync(join(dirname(target), 'a'));
    symlinkSync('../runs.db', join(dirname(target), 'a', 'link.db'));
    const folder = link(join(dirname(target), 'a'));
    await (await openLocalStore(join(folder, 'link.db'))).close();
    expect(existsSync(target)).toBe(true);
  });

  test('to itself is reported', async () => {
    const path = storePath();
    symlinkSync(path, path);
    await expect(openLocalStore(path)).rejects.toThrow(
      expect.objectContaining({ code: 'RUNSPAN_STORE_FAILED', message: expect.stringContaining('ELOOP') }),
    );
  });

  test('is not replaced by a backup', async () => {
    const path = link(storePath());
    const store = await openLocalStore();
    await expect(store.backup(path)).rejects.toThrow(`${path} already exists`);
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
  });
});

describe('a file that is not a store', () => {
  test.each<[string, (path: string) => void, string]>([
    ['text', (path) => writeFileSync(path, 'dear diary, '.repeat(100)), 'is not a runspan store'],
    ['a few bytes', (path) => writeFileSync(path, 'x'), 'is not a runspan store'],
    [
      'a database of another application',
      (path) => {
        const other = new SqliteConnection(engine, path);
        other.exec('CREATE TABLE runs (a); PRAGMA user_version = 1');
        other.close();
      },
      'is not a runspan store',
    ],
    [
      'a store of a later version',
      (path) => {
        const file = open(path);
        file.connection.exec(`PRAGMA user_version = ${FORMAT_VERSION + 1}; PRAGMA wal_checkpoint(TRUNCATE)`);
        close(file);
      },
      `has format version ${FORMAT_VERSION + 1}, and this version of runspan supports ${FORMAT_VERSION}: use the later version`,
    ],
  ])('%s is rejected and not changed, and no files are created next to it', (_, make, message) => {
    const path = storePath();
    make(path);
    const before = contents(path);
    for (const opener of [openToWrite, openToRead]) {
      expect(() => opener(engine, path)).toThrow(
        expect.objectContaining({ code: 'RUNSPAN_STORE_INVALID', message: expect.stringContaining(message) }),
      );
      expect(contents(path)).toEqual(before);
    }
  });

  test('a folder, and a missing or empty file to read, are rejected', () => {
    const path = storePath();
    mkdirSync(path);
    expect(() => openToWrite(engine, path)).toThrow(`${path} is a folder: use the path of a file`);
    expect(() => openToRead(engine, `${path}-none`)).toThrow(`There is no store at ${path}-none`);
    expect(existsSync(`${path}-none`)).toBe(false);
    writeFileSync(`${path}-empty`, '');
    expect(() => openToRead(engine, `${path}-empty`)).toThrow(`${path}-empty is empty`);
  });

  test.skipIf(process.platform === 'win32')(
    'a FIFO and a file with a second name are rejected and not changed',
    async () => {
      const [fifo, file] = [storePath(), storePath()];
      execFileSync('mkfifo', [fifo]);
      await (await openLocalStore(file)).close();
      linkSync(file, `${file}-2`);
      for (const opener of [openToWrite, openToRead]) {
        expect(() => opener(engine, fifo)).toThrow(`${fifo} is not a regular file: use the path of a file`);
        expect(() => opener(engine, file)).toThrow(`${file} has 2 hard links: delete the other links`);
      }
      expect(lstatSync(fifo).isFIFO()).toBe(true);
    },
  );

  test('an invalid folder is reported', () => {
    const path = storePath();
    writeFileSync(path, '');
    expect(() => openToWrite(engine, join(path, 'runs.db'))).toThrow(
      expect.objectContaining({ code: 'RUNSPAN_STORE_FAILED', message: `${path} is not a folder` }),
    );
  });

  test.skipIf(process.platform !== 'linux')('a folder that cannot be created is reported', () => {
    expect(() => openToWrite(engine, '/proc/x/y/runs.db')).toThrow(
      expect.objectContaining({ code: 'RUNSPAN_STORE_FAILED', message: expect.stringContaining('ENOENT') }),
    );
  });

  // Permissions do not apply to root.
  test.skipIf(process.getuid?.() === 0)('a folder without write permission is reported', () => {
    const folder = dirname(storePath());
    chmodSync(folder, 0o500);
    onTestFinished(() => chmodSync(folder, 0o700));
    expect(() => openToWrite(engine, join(folder, 'runs.db'))).toThrow(
      expect.objectContaining({ code: 'RUNSPAN_STORE_FAILED' }),
    );
  });
});

describe('a damaged store', () => {
  const damaged = expect.objectContaining({
    code: 'RUNSPAN_STORE_INVALID',
    message: expect.stringMatching(
      /is damaged \(.+\): move it and .+-wal to another folder to start with an empty store, and recover/,
    ),
  });

  test('is reported when it is opened, and not changed', () => {
    const path = storePath();
    close(open(path));
    const bytes = readFileSync(path);
    // The tables of the schema, behind the header.
    bytes.fill(0xff, 100, 4_096);
    writeFileSync(path, bytes);
    expect(() => openToWrite(engine, path)).toThrow(damaged);
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });

  test('is reported when it is read', async () => {
    const path = storePath();
    await (await openLocalStore(path)).close();
    truncateSync(path, statSync(path).size - 16_384);
    const store = await openLocalStore(path).catch((error: unknown) => error);
    expect(store).toEqual(damaged);
  });
});

test('a store of an earlier build opens and counts as before, and its new traces count repeated calls once', async () => {
  const path = storePath();
  const id = (digit: number) => `0193b3a0-0000-7000-8000-00000000000${digit}`;
  const call = (at: number, trace: number, source: string, parent?: number): RunOperation => ({
    kind: 'post',
    id: id(at),
    fields: {
      name: 'chat',
      run_type: 'llm',
      trace_id: id(trace),
      ...(parent !== undefined && { parent_run_id: id(parent) }),
      start_time: `2026-11-20T07:00:0${at}.000000Z`,
      outputs: { usage_metadata: { total_tokens: 10, input_tokens: 9, input_token_details: { cache_read: 8 } } },
      extra: { metadata: { recorded_by: [source], user_id: 'ada' } },
    },
    attachments: [],
  });
  const first = await openLocalStore(path);
  await first.apply(DEFAULT_SCOPE, [call(1, 1, 'langchain'), call(2, 1, 'langchain', 1)]);
  await first.close();
  const file = new SqliteConnection(engine, path);
  for (const column of ['call', 'same_call', 'is_repeated']) file.exec(`ALTER TABLE runs DROP COLUMN ${column}`);
  file.exec('ALTER TABLE traces DROP COLUMN sources');
  for (const table of ['runs', 'traces', 'counters', 'user_counters']) {
    for (const column of ['cached_tokens', 'cache_savings']) file.exec(`ALTER TABLE ${table} DROP COLUMN ${column}`);
  }
  file.close();
  expect(() => openToRead(engine, path)).toThrow('open it for writing once to upgrade it');

  const store = await openLocalStore(path);
  const minute = { filter: 'since:2026-11-20T07:00:00Z before:2026-11-20T07:01:00Z', buckets: 1 };
  const counted = async (groupBy: 'name' | 'tag') => {
    const { usage, model_calls } = (await store.statistics(DEFAULT_SCOPE, parsedQuery({ ...minute, groupBy }))).total;
    return [usage?.total_tokens, usage?.cached_tokens, model_calls.runs];
  };
  expect([await counted('name'), await counted('tag')]).toEqual([
    [20, undefined, 2],
    [20, undefined, 2],
  ]);
  await store.apply(DEFAULT_SCOPE, [call(3, 1, 'openai', 2), call(5, 5, 'langchain'), call(6, 5, 'openai', 5)]);
  expect([await counted('name'), await counted('tag')]).toEqual([
    [40, 16, 4],
    [40, 16, 4],
  ]);
});

test('a store of an earlier build keeps the runs below its removed runs, and does not restore the removed runs', async () => {
  const path = storePath();
  const id = (digit: number) => `0193b3a0-0000-7000-8000-00000000000${digit}`;
  const run = (at: number, parent?: number, trace_id?: string): RunOperation => ({
    kind: 'post',
    id: id(at),
    fields: {
      name: 'run',
      run_type: 'chain',
      ...(trace_id !== undefined && { trace_id }),
      ...(parent !== undefined && { parent_run_id: id(parent) }),
      start_time: `2026-11-20T07:00:0${at}.000000Z`,
    },
    attachments: [],
  });
  const runs = [run(1, undefined, id(1)), run(2, 1, id(1)), run(3, 2, id(1)), run(4), run(5, 4)];
  const first = await openLocalStore(path);
  await first.apply(DEFAULT_SCOPE, runs);
  await first.close();
  // The process ended while it deleted run 2 without run 3, and the whole trace of run 4.
  const file = new SqliteConnection(engine, path);
  file.exec(`
    INSERT INTO traces (n, tenant, id, seq, changed_ms, runs, pending, errors) VALUES (9, 1, x'09', -3, 0, 0, 0, 0);
    INSERT INTO removed (tenant, id, kind) SELECT tenant, id, 0 FROM runs WHERE n = 2;
    UPDATE runs SET trace = 9 WHERE n = 2;
    INSERT INTO removed (tenant, id, kind) SELECT tenant, id, 2 FROM traces WHERE id = (SELECT id FROM runs WHERE n = 4);
    UPDATE traces SET seq = -2, id = x'08' WHERE id = (SELECT id FROM runs WHERE n = 4);
    ALTER TABLE runs DROP COLUMN cache_savings`);
  file.close();

  const store = await openLocalStore(path);
  const shown = async () => {
    const { items } = await store.list(DEFAULT_SCOPE, parsedQuery({ order: 'ascending' }));
    return items.map((item) => [Number(item.id.at(-1)), item.trace_id === id(1), ...(item.tags ?? [])]);
  };
  const kept = [
    [1, true],
    [3, true],
  ];
  await expect.poll(shown).toEqual(kept);
  await store.apply(DEFAULT_SCOPE, [...runs, run(6, 2, id(1)), run(7, 4), run(8, 5)]);
  expect(await shown()).toEqual(kept);
  await store.apply(DEFAULT_SCOPE, [{ ...run(3, 2, id(1)), kind: 'patch' }, run(9, 3, id(1))]);
  expect(await shown()).toEqual([...kept, [9, true]]);
});

test('runs that exceeded the limits may be sent again after a restart, also if a call of `remove` waited for them', async () => {
  const path = storePath();
  const run: RunOperation = {
    kind: 'post',
    id: '0193b3a0-0000-7000-8000-000000000001',
    fields: { name: 'run', run_type: 'chain', start_time: '2026-11-20T07:00:00.000000Z' },
    attachments: [],
  };
  const first = await openLocalStore(path);
  await first.apply(DEFAULT_SCOPE, [run]);
  await first.close();
  // The process ended while it deleted the trace because of the limits.
  const file = new SqliteConnection(engine, path);
  file.exec("UPDATE traces SET seq = -2, id = x'08'");
  file.close();

  const store = await openLocalStore(path);
  const list = async () => (await store.list(DEFAULT_SCOPE, parsedQuery({}))).items.map(({ id }) => id);
  await expect.poll(list).toEqual([]);
  await store.apply(DEFAULT_SCOPE, [run]);
  expect(await list()).toEqual([run.id]);
});

test('a file whose upgrade was interrupted cannot be opened to read', async () => {
  const path = storePath();
  await (await openLocalStore(path)).close();
  const file = new SqliteConnection(engine, path);
  file.exec('ALTER TABLE runs DROP COLUMN cache_savings');
  file.close();
  expect(() => openToRead(engine, path)).toThrow(/early form of format version 2.*open it for writing once/);
});

describe('a store of an earlier version', () => {
  /** Writes the store file of version 0.1.0, as the process that wrote it left it. */
  function earlier(): string {
    const path = storePath();
    const fixture = new URL('../fixtures/0.1.0/store.db.gz', import.meta.url);
    writeFileSync(path, gunzipSync(readFileSync(fixture)));
    return path;
  }

  test('cannot be opened to read', () => {
    expect(() => openToRead(engine, earlier())).toThrow(
      `has format version 1, and this version of runspan reads ${FORMAT_VERSION}: open it for writing once`,
    );
  });

  test('is replaced by an upgraded copy when it is opened to write', () => {
    const path = earlier();
    // A connection of its own file, because the SQLite package closes connections late.
    const before = new SqliteConnection(engine, earlier());
    const ids = (connection: SqliteConnection) => connection.all('SELECT id, start_us, end_us FROM runs ORDER BY id');
    const expected = ids(before);
    const traces = before.all('SELECT id, seq, changed_ms, runs, errors, total_tokens FROM traces ORDER BY id');
    before.close();
    const { connection } = open(path);
    expect(connection.number('PRAGMA user_version')).toBe(FORMAT_VERSION);
    expect(ids(connection)).toEqual(expected);
    expect(connection.all('SELECT id, seq, changed_ms, runs, errors, total_tokens FROM traces ORDER BY id')).toEqual(
      traces,
    );
    expect(connection.one('PRAGMA integrity_check')).toEqual({ integrity_check: 'ok' });
    expect(existsSync(`${path}-new`)).toBe(false);
  });

  test('is not changed if the upgrade fails', () => {
    const path = earlier();
    const file = new SqliteConnection(engine, path);
    file.exec("UPDATE details SET posted = '{'");
    file.close();
    expect(() => openToWrite(engine, path)).toThrow('JSON');
    expect(() => openToRead(engine, path)).toThrow('has format version 1');
    expect(new SqliteConnection(engine, path).number('SELECT count(*) FROM runs')).toBe(6);
  });
});

test('a run is removed by any spelling of its id', async () => {
  const store = await openLocalStore(storePath());
  const id = '0193b3a0-0000-7000-8000-00000000000a';
  const fields = { name: 'run', run_type: 'chain', start_time: '2026-11-20T07:00:00.000000Z' };
  await store.apply(DEFAULT_SCOPE, [{ kind: 'post', id, fields, attachments: [] }]);
  const target = { kind: 'run', id: id.toUpperCase() } as const;
  expect(await store.removable(DEFAULT_SCOPE, target)).toEqual({ runs: 1, traces: 1 });
  expect(await store.remove(DEFAULT_SCOPE, target)).toEqual({ runs: 1, traces: 1 });
});
