import { type BaseCheckpointSaver, MemorySaver } from '@langchain/langgraph';
import { MemorySessions } from './memory-sessions.ts';
import { MemoryThreads } from './memory-threads.ts';
import { postgresStorage } from './postgres-storage.ts';
import { RedisSessions } from './redis-sessions.ts';
import type { SessionLimits, SessionStore } from './session-store.ts';
import { SqliteDatabase } from './sqlite-database.ts';
import { SqliteSaver } from './sqlite-saver.ts';
import { SqliteSessions } from './sqlite-sessions.ts';
import { SqliteThreads } from './sqlite-threads.ts';
import { StoreError } from './store-error.ts';
import type { ThreadIndex } from './thread-index.ts';

/** Where a chat keeps what it knows. */
export interface Storage {
  readonly checkpointer: BaseCheckpointSaver;
  readonly threads: ThreadIndex;
  readonly sessions: SessionStore;
  close(): Promise<void>;
}

/** Where a chat is to keep what it knows: in this process where nothing is said. */
export interface StorageChoice {
  /** A folder, for one process. */
  readonly data?: string | undefined;
  /** `postgres://user:password@host/database`, for several. */
  readonly postgres?: string | undefined;
  /** `redis://:password@host`, beside PostgreSQL, for the events of threads in use. */
  readonly redis?: string | undefined;
}

/** Opens what is chosen. Rejects with an error that says what is wrong with the choice, or which store cannot be used. */
export async function chooseStorage(
  { data, postgres, redis }: StorageChoice,
  limits: Partial<SessionLimits> = {},
): Promise<Storage> {
  if (data !== undefined && postgres !== undefined)
    throw new StoreError(
      'A folder (--data) is for one instance and PostgreSQL (--postgres) for several: choose one of them.',
    );
  if (redis !== undefined && postgres === undefined)
    throw new StoreError(
      'Redis (--redis) keeps what instances share while threads are in use: it needs PostgreSQL for the rest (--postgres).',
    );
  if (postgres !== undefined && !/^postgres(ql)?:\/\//.test(postgres))
    throw new StoreError('The address of PostgreSQL has to begin with postgres:// or postgresql://.');
  if (redis !== undefined && !/^rediss?:\/\//.test(redis))
    throw new StoreError('The address of Redis has to begin with redis:// or rediss://.');
  if (postgres !== undefined)
    return postgresStorage(postgres, limits, redis === undefined ? undefined : () => RedisSessions.open(redis, limits));
  return data === undefined ? memoryStorage(limits) : sqliteStorage(data, limits);
}

/** In this process, as long as it runs. */
export function memoryStorage(limits: Partial<SessionLimits> = {}): Storage {
  const sessions = new MemorySessions(limits);
  return { checkpointer: new MemorySaver(), threads: new MemoryThreads(), sessions, close: () => sessions.close() };
}

/** In the file `chat.db` of a folder, for one process at a time. */
export function sqliteStorage(folder: string, limits: Partial<SessionLimits> = {}): Storage {
  const database = SqliteDatabase.open(folder);
  const sessions = new SqliteSessions(database, limits);
  return {
    checkpointer: new SqliteSaver(database),
    threads: new SqliteThreads(database),
    sessions,
    close: async () => {
      await sessions.close();
      database.close();
    },
  };
}
