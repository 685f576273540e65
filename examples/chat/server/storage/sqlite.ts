import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite';
import { type Database, type Query, type SqlValue, StoreError, unusableStore } from './database.ts';
import { saverTables } from './saver.ts';
import { STORE_TABLES } from './schema.ts';

/**
 * Application id, by which files of this application are distinguished from other SQLite files
 * (https://sqlite.org/pragma.html#pragma_application_id).
 */
const APPLICATION_ID = 0x72_73_63_68;
const VERSION = 4;
const SQLITE_BUSY = 5;

/**
 * An SQLite database: the file `chat.db` in a folder, which only one process at a time can use, or a database in
 * memory.
 */
export class SqliteDatabase implements Database {
  readonly nowMs = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
  readonly #database: DatabaseSyncInstance;
  readonly #lock: DatabaseSyncInstance | undefined;
  readonly #statements = new Map<string, StatementSyncInstance>();
  #onMessage: (message: string) => void = () => {};
  /**
   * Promise of the last statement. Statements run one after the other, so that none runs within another caller's
   * transaction.
   */
  #last: Promise<unknown> = Promise.resolve();

  /**
   * Opens the database, and creates the folder and the file if they are missing. Throws if another process uses the
   * file. If `folder` is undefined, data is kept in memory.
   */
  static open(folder: string | undefined): SqliteDatabase {
    if (folder === undefined) return new SqliteDatabase(openFile(':memory:'), undefined);
    const path = join(folder, 'chat.db');
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const lock = takeLock(path);
      try {
        return new SqliteDatabase(openFile(path), lock);
      } catch (error) {
        lock.close();
        throw error;
      }
    } catch (error) {
      throw unusableStore(`SQLite at ${path}`, error);
    }
  }

  private constructor(database: DatabaseSyncInstance, lock: DatabaseSyncInstance | undefined) {
    this.#database = database;
    this.#lock = lock;
  }

  readonly query: Query = (sql, ...values) => this.#inTurn(async () => this.#run(sql, values));

  transaction<Result>(work: (query: Query) => Promise<Result>): Promise<Result> {
    return this.#inTurn(async () => {
      this.#database.exec('BEGIN IMMEDIATE');
      try {
        const result = await work(async (sql, ...values) => this.#run(sql, values));
        this.#database.exec('COMMIT');
        return result;
      } catch (error) {
        // SQLite may already have rolled back the transaction, for example because the disk is full.
        if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
        throw error;
      }
    });
  }

  async notify(message: string): Promise<void> {
    // Listeners are called after the current transaction, because they read the data that it writes.
    void this.#inTurn(async () => this.#onMessage(message));
  }

  listen(onMessage: (message: string) => void): void {
    this.#onMessage = onMessage;
  }

  async close(): Promise<void> {
    await this.#inTurn(async () => {
      this.#statements.clear();
      this.#database.close();
      this.#lock?.close();
    });
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  #run<Row>(sql: string, values: readonly SqlValue[]): readonly Row[] {
    const statement = this.#statements.get(sql) ?? this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    const named = Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]));
    return statement.all(named) as Row[];
  }
}

/**
 * Takes the lock by locking a separate file through SQLite. The operating system releases the lock when the process
 * ends. The file is never deleted. Otherwise, two processes could each lock a different file with this name.
 */
function takeLock(path: string): DatabaseSyncInstance {
  const file = `${path}-lock`;
  closeSync(openSync(file, 'a', 0o600));
  const lock = new DatabaseSync(file);
  try {
    lock.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    // The higher bits of the code contain only details.
    if ((((error as { errcode?: number }).errcode ?? 0) & 0xff) !== SQLITE_BUSY) throw error;
    throw new StoreError(
      `${path} is open in another process. Stop that chat, choose another folder with --data, or use --postgres for several instances.`,
    );
  }
}

function openFile(path: string): DatabaseSyncInstance {
  if (path !== ':memory:') {
    // The file is created here, because SQLite would create it readable by other users.
    closeSync(openSync(path, 'a', 0o600));
    chmodSync(path, 0o600);
  }
  const database = new DatabaseSync(path);
  try {
    prepare(database, path);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function prepare(database: DatabaseSyncInstance, path: string): void {
  const [version, application] = [pragma(database, 'user_version'), pragma(database, 'application_id')];
  const { tables } = database.prepare('SELECT count(*) AS tables FROM sqlite_master').get() as { tables: number };
  if (application !== APPLICATION_ID && tables > 0) throw new StoreError(`${path} is not a file of this application.`);
  if (version !== 0 && version !== VERSION)
    throw new StoreError(`${path} has version ${version}. This application needs version ${VERSION}.`);
  database.exec(`
    PRAGMA busy_timeout = 5000;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA application_id = ${APPLICATION_ID};
  `);
  if (version === 0)
    database.exec(`BEGIN IMMEDIATE; ${saverTables('BLOB')} ${STORE_TABLES} PRAGMA user_version = ${VERSION}; COMMIT`);
}

function pragma(database: DatabaseSyncInstance, name: string): number {
  return Number(Object.values(database.prepare(`PRAGMA ${name}`).get() as object)[0]);
}
