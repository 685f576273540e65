import { closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RunspanError } from '../../base/errors.ts';
import { messageOf } from '../../base/text.ts';
import { SqliteConnection } from './sqlite-connection.ts';
import type { Engine } from './sqlite-engine.ts';
import { SqliteLock } from './sqlite-lock.ts';
import { APPLICATION_ID, MIGRATIONS } from './sqlite-schema.ts';
import { isNoDatabase, isOfTheFile, troubleOf } from './sqlite-trouble.ts';

/** Who has a store open to write. */
export interface StoreOwner {
  readonly pid: number;
  /** ISO 8601. */
  readonly started_at: string;
  /** Where its receiver listens, if it has said so. */
  readonly address?: string;
}

/** A store that is open to write, and the lock that nobody else has meanwhile. */
export interface OpenFile {
  readonly connection: SqliteConnection;
  readonly lock: SqliteLock;
}

/** How long a statement waits for another connection. */
const BUSY_MS = 5_000;
/** What the file beside the database is cut back to after its content has gone over. */
const WAL_BYTES = 64 * 1024 * 1024;
const CACHE_KIB = 64 * 1024;

/**
 * Opens a store to write, and makes it where there is none. Throws a RunspanError for a file that is none of ours, which
 * stays as it is, and for one that another process has open.
 */
export function openToWrite(engine: Engine, path: string, migrations: readonly string[] = MIGRATIONS): OpenFile {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    checkHeader(engine, path, migrations.length);
    const lock = SqliteLock.take(engine, path);
    if (lock === undefined) throw inUse(path, ownerOf(engine, path));
    try {
      if (sizeOf(path) === 0) make(engine, path, migrations);
      return { connection: openOwn(engine, path, migrations), lock };
    } catch (error) {
      lock.release();
      throw error;
    }
  } catch (error) {
    throw troubleOf(error, path);
  }
}

/** Opens a store beside whoever writes to it. */
export function openToRead(engine: Engine, path: string, migrations: readonly string[] = MIGRATIONS): SqliteConnection {
  try {
    if (sizeOf(path) === 0) throw new RunspanError('RUNSPAN_STORE_FAILED', `There is no store at ${path}`);
    checkHeader(engine, path, migrations.length);
    const connection = new SqliteConnection(new engine.DatabaseSync(path, { readOnly: true }));
    try {
      connection.exec(
        `PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA cache_size = -${CACHE_KIB}; PRAGMA temp_store = MEMORY`,
      );
      const version = checkedVersion(connection, path, migrations.length);
      if (version === migrations.length) return connection;
      const message = `The store ${path} is of version ${version}, and this runspan reads ${migrations.length}: open it to write once, for example with \`runspan dev\``;
      throw new RunspanError('RUNSPAN_STORE_INVALID', message);
    } catch (error) {
      connection.close();
      throw error;
    }
  } catch (error) {
    throw troubleOf(error, path);
  }
}

/** Writes a copy of the store to a new file. Throws a RunspanError if the file exists or cannot be written. */
export function copyTo(connection: SqliteConnection, path: string): void {
  if (existsSync(path)) throw new RunspanError('RUNSPAN_STORE_FAILED', `${path} exists; name another file`);
  try {
    const aside = `${path}-${process.pid}`;
    makeEmpty(aside);
    try {
      connection.run('VACUUM INTO ?', aside);
      renameSync(aside, path);
    } catch (error) {
      rmSync(aside, { force: true });
      throw error;
    }
  } catch (cause) {
    throw new RunspanError('RUNSPAN_STORE_FAILED', `Cannot write ${path}: ${messageOf(cause)}`, { cause });
  }
}

/** Who has the store open to write, if anybody has. */
export function currentOwner(engine: Engine, path: string): StoreOwner | undefined {
  const lock = SqliteLock.take(engine, path);
  if (lock === undefined) return ownerOf(engine, path);
  lock.release();
  return undefined;
}

/** Says in the file whose it is. */
export function setOwner(connection: SqliteConnection, owner: StoreOwner): void {
  connection.run("INSERT OR REPLACE INTO meta VALUES ('owner', ?)", JSON.stringify(owner));
}

export function clearOwner(connection: SqliteConnection): void {
  connection.run("DELETE FROM meta WHERE key = 'owner'");
}

function ownerOf(engine: Engine, path: string): StoreOwner | undefined {
  try {
    const connection = new SqliteConnection(new engine.DatabaseSync(path, { readOnly: true }));
    try {
      const row = connection.one<{ value: string }>("SELECT value FROM meta WHERE key = 'owner'");
      return row && JSON.parse(row.value);
    } finally {
      connection.close();
    }
  } catch {
    // It is being made just now, or cannot be read; that somebody has it is certain all the same.
    return undefined;
  }
}

function inUse(path: string, owner: StoreOwner | undefined): RunspanError {
  const who = owner === undefined ? 'another process' : `process ${owner.pid}, started ${owner.started_at}`;
  const where = owner?.address === undefined ? '' : `, whose receiver listens on ${owner.address}`;
  const message = `The store ${path} is open in ${who}${where}: send runs there, end that process, or take another file`;
  return new RunspanError('RUNSPAN_STORE_IN_USE', message);
}

/** Made aside and put in its place when it is whole, so that nobody ever finds a part of it. */
function make({ DatabaseSync }: Engine, path: string, migrations: readonly string[]): void {
  const aside = `${path}-new`;
  for (const file of [aside, `${aside}-journal`]) rmSync(file, { force: true });
  makeEmpty(aside);
  const connection = new SqliteConnection(new DatabaseSync(aside));
  try {
    connection.exec(
      `PRAGMA page_size = 16384; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = ${APPLICATION_ID}`,
    );
    checkAbilities(connection);
    migrate(connection, 0, migrations);
  } finally {
    connection.close();
  }
  renameSync(aside, path);
}

/** Creates an empty file that only its owner can read. Throws if the file exists. */
function makeEmpty(path: string): void {
  closeSync(openSync(path, 'wx', 0o600));
}

function openOwn({ DatabaseSync }: Engine, path: string, migrations: readonly string[]): SqliteConnection {
  const connection = new SqliteConnection(new DatabaseSync(path));
  try {
    connection.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    const version = checkedVersion(connection, path, migrations.length);
    checkAbilities(connection);
    connection.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      PRAGMA journal_size_limit = ${WAL_BYTES};
      PRAGMA cache_size = -${CACHE_KIB};
      PRAGMA temp_store = MEMORY;
    `);
    migrate(connection, version, migrations);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

function migrate(connection: SqliteConnection, from: number, migrations: readonly string[]): void {
  for (const [at, migration] of migrations.entries()) {
    if (at < from) continue;
    connection.exec('BEGIN IMMEDIATE');
    try {
      connection.exec(`${migration}; PRAGMA user_version = ${at + 1}; COMMIT`);
    } catch (error) {
      connection.exec('ROLLBACK');
      throw error;
    }
  }
}

/** The words are kept in a table of a kind that not every SQLite has, and in a form that is younger than it. */
function checkAbilities(connection: SqliteConnection): void {
  const hasFts5 = connection.one("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'") !== undefined;
  const version = connection.one<{ version: string }>('SELECT sqlite_version() AS version')?.version ?? '';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (hasFts5 && (major > 3 || (major === 3 && minor >= 43))) return;
  const message = `SQLite ${version} ${hasFts5 ? 'is older than 3.43' : 'has no FTS5'}: install the package @photostructure/sqlite, or use a Node as nodejs.org builds it`;
  throw new RunspanError('RUNSPAN_SQLITE_MISSING', message);
}

/** Returns the version of a store. Throws if this version of runspan does not support it. */
function checkedVersion(connection: SqliteConnection, path: string, known: number): number {
  if (connection.number('PRAGMA application_id') !== APPLICATION_ID) throw notOurs(path);
  const version = connection.number('PRAGMA user_version');
  if (version <= known) return version;
  const message = `The store ${path} is of version ${version}, and this runspan knows ${known}: use the newer runspan that made it, or take another file`;
  throw new RunspanError('RUNSPAN_STORE_INVALID', message);
}

/**
 * Refuses files of another application or a later version. The check uses an immutable connection, which takes no lock
 * and creates no files next to the database. The file must be opened through SQLite only. When a process closes any
 * descriptor of a file, POSIX releases all its locks on that file, and SQLite can only account for its own descriptors.
 */
function checkHeader({ DatabaseSync }: Engine, path: string, known: number): void {
  if (sizeOf(path) === 0) return;
  try {
    const uri = `${pathToFileURL(path).href}?immutable=1`;
    const connection = new SqliteConnection(new DatabaseSync(uri, { readOnly: true }));
    try {
      checkedVersion(connection, path, known);
    } finally {
      connection.close();
    }
  } catch (error) {
    if (isNoDatabase(error)) throw notOurs(path);
    // Without locks, a file may appear damaged while another connection is writing to it. A later connection with locks
    // decides.
    if (!isOfTheFile(error)) throw error;
  }
}

function notOurs(path: string): RunspanError {
  const message = `${path} is not a runspan store: use another file, or move this one away`;
  return new RunspanError('RUNSPAN_STORE_INVALID', message);
}

/** 0 where there is no file. */
function sizeOf(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return 0;
  if (found.isDirectory()) throw new RunspanError('RUNSPAN_STORE_FAILED', `${path} is a folder: name a file in it`);
  return found.size;
}
