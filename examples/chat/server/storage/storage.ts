import type { BaseCheckpointSaver } from '@langchain/langgraph';
import { StoreError } from './database.ts';
import { PostgresDatabase } from './postgres.ts';
import type { StoreLimits } from './schema.ts';
import { SqliteDatabase } from './sqlite.ts';
import { SqliteSaver } from './sqlite-saver.ts';
import { Store } from './store.ts';

/** The persistent parts of a chat. */
export interface Storage {
  /** Keeps the states of threads. */
  readonly checkpointer: BaseCheckpointSaver;
  /** Keeps the list of threads, their events and their runs. Closing it closes the checkpointer as well. */
  readonly store: Store;
}

export interface StorageChoice {
  /** A folder, for one process. @default memory */
  readonly data?: string | undefined;
  /** `postgres://user:password@host/database`, for several processes. */
  readonly postgres?: string | undefined;
}

/** Opens SQLite, or PostgreSQL. Rejects with an error that names the option to change, or the store that cannot be used. */
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
    return { checkpointer: database.checkpointer, store: new Store(database, limits) };
  }
  const database = SqliteDatabase.open(data);
  const store = new Store(database, limits);
  // The lock on the file guarantees that the processes of these runs have ended.
  await store.expireAll();
  return { checkpointer: new SqliteSaver(database), store };
}
