import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RunspanError } from '../../../../base/errors.ts';
import { messageOf } from '../../../../base/text.ts';
import { type Engine, hasCode, isOfTheFile, SqliteConnection, toStoreError } from './database.ts';
import { APPLICATION_ID, FORMAT_VERSION, SCHEMA } from './schema.ts';

/** The process that has a store open for writing. */
export interface StoreOwner {
  readonly pid: number;
  /** ISO 8601 timestamp. */
  readonly started_at: string;
  /** Address of the receiver in this process, if known. */
  readonly address?: string;
}

/** Maximum time that a statement waits for another connection, in milliseconds. */
const BUSY_MS = 5_000;
/** Size to which the write-ahead log (WAL) is truncated after a checkpoint, in bytes. */
const WAL_BYTES = 64 * 1024 * 1024;
const PRAGMAS = `PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA cache_size = -${64 * 1024}; PRAGMA temp_store = MEMORY`;
const WRITER_PRAGMAS = `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = ${WAL_BYTES}`;

/**
 * Returns the path of a store without symbolic links, even if the file does not exist yet. All processes must use this
 * path, because the lock and the WAL are in the same folder.
 */
export function realPathOf(path: string): string {
  try {
    return resolvedPath(path);
  } catch (error) {
    throw toStoreError(error, path);
  }
}

function resolvedPath(path: string): string {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return realpathSync(path);
  // On Windows, the drive may be missing.
  if (dirname(path) === path) return path;
  const folder = resolvedPath(dirname(path));
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink ? resolvedPath(resolve(folder, readlinkSync(path))) : join(folder, basename(path));
}

/**
 * Opens a store for writing. Creates the file if it is missing. Throws a RunspanError and leaves the file unchanged if the
 * file is not a store, has another format, or another process has it open.
 */
export function openToWrite(engine: Engine, path: string): { connection: SqliteConnection; lock: SqliteConnection } {
  try {
    makeFolder(dirname(path));
    checkHeader(engine, path);
    const lock = takeLock(engine, path);
    if (lock === undefined) throw inUse(path, ownerOf(engine, path));
    try {
      if (sizeOf(path) === 0) create(engine, path);
      const prepare = (connection: SqliteConnection): void => {
        prepareChecked(connection, path);
        connection.exec(WRITER_PRAGMAS);
      };
      return { connection: connect(engine, path, prepare), lock };
    } catch (error) {
      lock.close();
      throw error;
    }
  } catch (error) {
    throw toStoreError(error, path);
  }
}

/** `mkdirSync` with `recursive` retries forever if `mkdir` fails although the parent exists, as in `/proc`. */
function makeFolder(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found !== undefined) throw failed(`${path} is not a folder`);
  if (dirname(path) !== path) makeFolder(dirname(path));
  unlessItExists(() => mkdirSync(path, { mode: 0o700 }));
}

/** Opens a store for reading, even while another process writes to it. */
export function openToRead(engine: Engine, path: string): SqliteConnection {
  try {
    if (sizeOf(path) === 0) {
      const problem = existsSync(path) ? `${path} is empty` : `There is no store at ${path}`;
      throw failed(problem);
    }
    checkHeader(engine, path);
    return connect(engine, path, (connection) => prepareChecked(connection, path), { readOnly: true });
  } catch (error) {
    throw toStoreError(error, path);
  }
}

/**
 * Opens a store to change its keys or its costs, even while another process has the store open for writing. Each change
 * must be a short transaction. If `create` is set, creates a missing store.
 */
export function openBeside(engine: Engine, path: string, create: boolean): SqliteConnection {
  if (create && sizeOf(path) === 0) {
    const { connection, lock } = openToWrite(engine, path);
    connection.close();
    lock.close();
  }
  openToRead(engine, path).close();
  return connect(engine, path, (connection) => connection.exec(`PRAGMA busy_timeout = ${BUSY_MS}`));
}

/** Writes a copy of the store to a new file. Throws a RunspanError if the file exists or cannot be written. */
export function copyTo(connection: SqliteConnection, path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined)
    throw failed(`${path} already exists: choose another file`);
  if (!existsSync(dirname(path))) throw failed(`The folder ${dirname(path)} does not exist`);
  const aside = `${path}-${process.pid}`;
  try {
    makeEmpty(aside);
    try {
      connection.run('VACUUM INTO ?', aside);
      renameSync(aside, path);
    } catch (error) {
      rmSync(aside, { force: true });
      throw error;
    }
  } catch (cause) {
    throw failed(`Cannot write ${path}: ${messageOf(cause).replaceAll(aside, path)}`, { cause });
  }
}

/** Returns the process that has the store open for writing, or undefined if there is none. */
export function currentOwner(engine: Engine, path: string): StoreOwner | undefined {
  const lock = takeLock(engine, path);
  if (lock === undefined) return ownerOf(engine, path);
  lock.close();
  return undefined;
}

export function setOwner(connection: SqliteConnection, owner: StoreOwner): void {
  connection.run("INSERT OR REPLACE INTO meta VALUES ('owner', ?)", JSON.stringify(owner));
}

export function clearOwner(connection: SqliteConnection): void {
  connection.run("DELETE FROM meta WHERE key = 'owner'");
}

function ownerOf(engine: Engine, path: string): StoreOwner | undefined {
  try {
    const sql = "SELECT value FROM meta WHERE key = 'owner'";
    const read = (connection: SqliteConnection) => connection.one<{ value: string }>(sql);
    const row = withConnection(engine, path, read, { readOnly: true });
    return row && JSON.parse(row.value);
  } catch {
    // The file is still being created, or cannot be read.
    return undefined;
  }
}

function inUse(path: string, owner: StoreOwner | undefined): RunspanError {
  const who = owner === undefined ? 'another process' : `process ${owner.pid}, started ${owner.started_at}`;
  const where = owner?.address === undefined ? '' : `, whose receiver listens on ${owner.address}`;
  const message = `The store ${path} is open in ${who}${where}: send the runs there, stop that process, or use another file`;
  return new RunspanError('RUNSPAN_STORE_IN_USE', message);
}

/** Creates a store in a temporary file, then renames the file. No incomplete store ever appears at the path. */
function create(engine: Engine, path: string): void {
  const aside = `${path}-new`;
  rmSync(aside, { force: true });
  makeEmpty(aside);
  withConnection(engine, aside, (connection) => {
    // After a failure, nobody uses this file, so it is written to the disk once instead of after each statement.
    connection.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF');
    connection.exec(
      `PRAGMA page_size = 16384; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = ${APPLICATION_ID}`,
    );
    connection.exec(`BEGIN; ${SCHEMA}; PRAGMA user_version = ${FORMAT_VERSION}; COMMIT`);
  });
  const file = openSync(aside, 'r+');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(aside, path);
}

/** Creates an empty file that only the file's owner can read. Throws if the file already exists. */
function makeEmpty(path: string): void {
  closeSync(openSync(path, 'wx', 0o600));
}

/** Opens a connection and passes it to `prepare`. Closes the connection if `prepare` throws. */
function connect(
  engine: Engine,
  path: string,
  prepare: (connection: SqliteConnection) => void,
  options: { readonly readOnly?: boolean } = {},
): SqliteConnection {
  const connection = new SqliteConnection(engine, path, options);
  try {
    prepare(connection);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

function withConnection<Result>(
  engine: Engine,
  path: string,
  use: (connection: SqliteConnection) => Result,
  options: { readonly readOnly?: boolean } = {},
): Result {
  const connection = new SqliteConnection(engine, path, options);
  try {
    return use(connection);
  } finally {
    connection.close();
  }
}

/** Sets the options of a connection, then checks the format of its file. The check needs the busy timeout. */
function prepareChecked(connection: SqliteConnection, path: string): void {
  connection.exec(PRAGMAS);
  checkFormat(connection, path);
}

/** Throws if a file belongs to another application, or its format is not that of this version of runspan. */
function checkFormat(connection: SqliteConnection, path: string): void {
  if (connection.number('PRAGMA application_id') !== APPLICATION_ID) throw notOurs(path);
  const version = connection.number('PRAGMA user_version');
  if (version === FORMAT_VERSION) return;
  const message = `The store ${path} has format version ${version}, and this version of runspan supports ${FORMAT_VERSION}: use the version that created it, or another file`;
  throw new RunspanError('RUNSPAN_STORE_INVALID', message);
}

/**
 * Checks the format of a file through an immutable SQLite connection, which takes no lock and creates no files. Do not use
 * Node's file functions here. When a process closes any descriptor of a file, POSIX releases all locks that the process
 * holds on that file. SQLite can only take its own descriptors into account.
 */
function checkHeader(engine: Engine, path: string): void {
  if (sizeOf(path) === 0) return;
  try {
    const uri = `${pathToFileURL(path).href}?immutable=1`;
    withConnection(engine, uri, (connection) => checkFormat(connection, path), { readOnly: true });
  } catch (error) {
    if (hasCode(error, 'noDatabase')) throw notOurs(path);
    // This connection takes no lock, so the file may appear damaged while another connection writes to it. Real damage
    // is reported by the next connection, which takes locks.
    if (!isOfTheFile(error)) throw error;
  }
}

function notOurs(path: string): RunspanError {
  const message = `${path} is not a runspan store: use another file, or move this file away`;
  return new RunspanError('RUNSPAN_STORE_INVALID', message);
}

/** Returns 0 if the file does not exist. Throws if it is not a regular file or has hard links. */
function sizeOf(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return 0;
  if (found.isDirectory()) throw failed(`${path} is a folder: use the path of a file`);
  if (!found.isFile()) throw failed(`${path} is not a regular file: use the path of a file`);
  // A process that opened the file under another name would use a different lock and WAL.
  if (found.nlink > 1)
    throw failed(`${path} has ${found.nlink} hard links: delete the other links, or use another file`);
  return found.size;
}

/**
 * Locks a store with an operating system lock on a small file next to the store, until the returned connection is closed.
 * The lock is released when the process ends, even if the process is killed. Returns undefined if another process holds the lock.
 */
function takeLock(engine: Engine, path: string): SqliteConnection | undefined {
  // Never delete the lock file, because two processes could then each lock a different file with this name.
  const file = `${path}-lock`;
  // SQLite would create a file that other users can read. An existing file is not opened, because closing it would
  // release the lock of another thread in this process.
  unlessItExists(() => makeEmpty(file));
  try {
    return connect(engine, file, (lock) => lock.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE'));
  } catch (error) {
    if (hasCode(error, 'busy')) return undefined;
    throw error;
  }
}

/** Another process may create the file or folder first. */
function unlessItExists(create: () => void): void {
  try {
    create();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function failed(problem: string, options?: ErrorOptions): RunspanError {
  return new RunspanError('RUNSPAN_STORE_FAILED', problem, options);
}
