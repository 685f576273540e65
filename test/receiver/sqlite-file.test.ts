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
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { loadEngine, SqliteConnection } from '#src/receiver/store/sqlite/file/database.ts';
import { currentOwner, openToRead, openToWrite, setOwner } from '#src/receiver/store/sqlite/file/file.ts';
import { FORMAT_VERSION } from '#src/receiver/store/sqlite/file/schema.ts';
import { DEFAULT_SCOPE, parsedQuery } from '#src/receiver.ts';
import { simple } from './conformance/support.ts';
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
  vi.spyOn(process, 'getBuiltinModule').mockReturnValue(builtin);
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
  file.lock.close();
}

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
    ...[FORMAT_VERSION - 1, FORMAT_VERSION + 1].map((version): [string, (path: string) => void, string] => [
      `a store of format version ${version}`,
      (path) => {
        const file = open(path);
        file.connection.exec(`PRAGMA user_version = ${version}; PRAGMA wal_checkpoint(TRUNCATE)`);
        close(file);
      },
      `has format version ${version}, and this version of runspan supports ${FORMAT_VERSION}: use the version that`,
    ]),
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
    const created = open(path);
    const page = created.connection.number("SELECT pageno FROM dbstat WHERE name = 'unindexed'");
    close(created);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0xff, (page - 1) * 16_384, page * 16_384));
    const store = await openLocalStore(path).catch((error: unknown) => error);
    expect(store).toEqual(damaged);
  });
});

test('runs that exceeded the limits may be sent again after a restart', async () => {
  const path = storePath();
  const run = simple(1);
  const first = await openLocalStore(path);
  await first.apply(DEFAULT_SCOPE, [run]);
  await first.close();
  // The process ended while it deleted the trace because of the limits.
  const file = new SqliteConnection(engine, path);
  file.exec("UPDATE traces SET id = x'08'; INSERT INTO hidden SELECT n, 1 FROM traces");
  file.close();

  const store = await openLocalStore(path);
  const list = async () => (await store.list(DEFAULT_SCOPE, parsedQuery({}))).items.map(({ id }) => id);
  await expect.poll(list).toEqual([]);
  await store.apply(DEFAULT_SCOPE, [run]);
  expect(await list()).toEqual([run.id]);
});
