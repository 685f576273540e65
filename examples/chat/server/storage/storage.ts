import type { BaseCheckpointSaver } from '@langchain/langgraph';
import { StoreError } from './database.ts';
import { PostgresDatabase } from './postgres.ts';
import { Saver } from './saver.ts';
import type { StoreLimits } from './schema.ts';
import { SqliteDatabase } from './sqlite.ts';
import { Store, type ThreadStore } from './store.ts';

/** The parts of a chat that store data. */
export interface ChatStorage {
  readonly checkpointer: Pick<BaseCheckpointSaver, 'deleteThread'>;
  readonly store: ThreadStore;
}

/** The storage in a database. */
export interface Storage extends ChatStorage {
  /** Stores the states of threads. */
  readonly checkpointer: BaseCheckpointSaver;
  /** Stores the list of threads, their events and their runs. Closing the store closes the checkpointer too. */
  readonly store: Store;
}

export interface StorageChoice {
  /** Folder for an SQLite file, which one process can use. @default data is kept in memory */
  readonly data?: string | undefined;
  /** URL of a PostgreSQL database, which several processes can use: `postgres://user:password@host/database`. */
  readonly postgres?: string | undefined;
}

/**
 * Opens SQLite or PostgreSQL. Rejects with an error that names the option to change or the store that cannot be used.
 */
export async function openStorage(choice: StorageChoice, limits: Partial<StoreLimits> = {}): Promise<Storage> {
  const { data, postgres } = choice;
  if (data !== undefined && postgres !== undefined)
    throw new StoreError('Choose either a folder (--data) or PostgreSQL (--postgres).');
  if (postgres !== undefined) {
    if (!/^postgres(ql)?:\/\//.test(postgres) || !URL.canParse(postgres))
      throw new StoreError(
        'Expected the address of PostgreSQL to be a URL that begins with postgres:// or postgresql://.',
      );
    const database = await PostgresDatabase.open(postgres);
    return { checkpointer: new Saver(database), store: new Store(database, limits) };
  }
  const database = SqliteDatabase.open(data);
  const store = new Store(database, limits);
  // Because this process holds the file's lock, the processes of all stored runs have ended.
  await store.expireAll();
  return { checkpointer: new Saver(database), store };
}
