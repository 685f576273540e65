import { closeSync, openSync } from 'node:fs';
import type { Database, Engine } from './sqlite-engine.ts';
import { isBusy } from './sqlite-trouble.ts';

/**
 * Holds a store for one process, by a lock on a small file beside it. It is a lock of the operating system, taken through
 * SQLite: it ends with the process, however that ends, which a file with a number in it does not.
 */
export class SqliteLock {
  readonly #database: Database;

  /** Undefined when another holds it. */
  static take({ DatabaseSync }: Engine, path: string): SqliteLock | undefined {
    const file = lockFileOf(path);
    makeFile(file);
    const database = new DatabaseSync(file);
    try {
      database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE');
      return new SqliteLock(database);
    } catch (error) {
      database.close();
      if (isBusy(error)) return undefined;
      throw error;
    }
  }

  private constructor(database: Database) {
    this.#database = database;
  }

  release(): void {
    this.#database.close();
  }
}

/**
 * Creates a file that only its owner can read. SQLite itself would create it readable by other users. An existing file
 * is not opened, since closing it would release a lock held by another thread of this process.
 */
function makeFile(file: string): void {
  try {
    closeSync(openSync(file, 'ax', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** It stays where it is: were it taken away, two could hold locks on two files of the same name. */
export function lockFileOf(path: string): string {
  return `${path}-lock`;
}
