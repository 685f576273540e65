import { chmodSync, closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite';
import { makeFolder } from './folder.ts';
import { SQLITE_MIGRATIONS } from './sqlite-schema.ts';
import { StoreError, unusable } from './store-error.ts';

export type SqlValue = null | number | string | Uint8Array;

/** Tells the file of this application from those of others (https://sqlite.org/pragma.html#pragma_application_id). */
const APPLICATION_ID = 0x72_73_63_68;
const BUSY_MS = 5_000;
/** What the file beside the database is cut back to after its content has gone over. */
const WAL_BYTES = 64 * 1024 * 1024;
const SQLITE_BUSY = 5;

/** The file `chat.db` of a folder, which one process has open at a time. */
export class SqliteDatabase {
  readonly #database: DatabaseSyncInstance;
  readonly #lock: DatabaseSyncInstance;
  readonly #statements = new Map<string, StatementSyncInstance>();

  /** Makes folder and file where there are none. Throws where another process has the file open, or where it is none of ours. */
  static open(folder: string): SqliteDatabase {
    const path = join(folder, 'chat.db');
    try {
      makeFolder(folder);
      return SqliteDatabase.#openLocked(path, takeLock(path));
    } catch (error) {
      throw unusable('SQLite', path, error);
    }
  }

  static #openLocked(path: string, lock: DatabaseSyncInstance): SqliteDatabase {
    try {
      return new SqliteDatabase(openFile(path), lock);
    } catch (error) {
      lock.close();
      throw error;
    }
  }

  private constructor(database: DatabaseSyncInstance, lock: DatabaseSyncInstance) {
    this.#database = database;
    this.#lock = lock;
  }

  one<Row>(sql: string, ...values: SqlValue[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined;
  }

  all<Row>(sql: string, ...values: SqlValue[]): Row[] {
    return this.#statement(sql).all(...values) as Row[];
  }

  /** The number of rows changed. */
  run(sql: string, ...values: SqlValue[]): number {
    return Number(this.#statement(sql).run(...values).changes);
  }

  /** Does all of it or nothing. */
  transaction<Result>(work: () => Result): Result {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      // Where the disk is full, SQLite has done so itself.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
    this.#lock.close();
  }

  #statement(sql: string): StatementSyncInstance {
    const statement = this.#statements.get(sql) ?? this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

/**
 * A lock of the operating system, taken through SQLite on a small file of its own: it ends with the process, however that ends. The file stays,
 * since two could otherwise hold locks on two files of one name.
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
    if (!isBusy(error)) throw error;
    throw new StoreError(
      `${path} is open in another process: another chat uses this folder. End that one, name another folder with --data, or use --postgres for several.`,
    );
  }
}

function openFile(path: string): DatabaseSyncInstance {
  // SQLite would make it readable for others.
  closeSync(openSync(path, 'a', 0o600));
  chmodSync(path, 0o600);
  const database = new DatabaseSync(path);
  try {
    const [version, application] = [pragma(database, 'user_version'), pragma(database, 'application_id')];
    const tables = database.prepare('SELECT count(*) AS n FROM sqlite_master').get() as { n: number };
    if (application !== APPLICATION_ID && tables.n > 0) throw new StoreError(`${path} is no file of this application.`);
    if (version > SQLITE_MIGRATIONS.length)
      throw new StoreError(
        `${path} is of version ${version}, and this application knows ${SQLITE_MIGRATIONS.length}: a newer one made it.`,
      );
    database.exec(`
      PRAGMA busy_timeout = ${BUSY_MS};
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      PRAGMA journal_size_limit = ${WAL_BYTES};
      PRAGMA application_id = ${APPLICATION_ID};
    `);
    for (const [at, migration] of SQLITE_MIGRATIONS.entries()) {
      if (at >= version) database.exec(`BEGIN IMMEDIATE; ${migration}; PRAGMA user_version = ${at + 1}; COMMIT`);
    }
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function pragma(database: DatabaseSyncInstance, name: string): number {
  return Number(Object.values(database.prepare(`PRAGMA ${name}`).get() as object)[0]);
}

function isBusy(error: unknown): boolean {
  // The higher bits only say more about it.
  return (((error as { errcode?: number }).errcode ?? 0) & 0xff) === SQLITE_BUSY;
}
