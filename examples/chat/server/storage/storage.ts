import { type BaseCheckpointSaver, MemorySaver } from '@langchain/langgraph';
import { MemorySessions } from './memory-sessions.ts';
import { MemoryThreads } from './memory-threads.ts';
import type { SessionLimits, SessionStore } from './session-store.ts';
import { SqliteDatabase } from './sqlite-database.ts';
import { SqliteSaver } from './sqlite-saver.ts';
import { SqliteSessions } from './sqlite-sessions.ts';
import { SqliteThreads } from './sqlite-threads.ts';
import type { ThreadIndex } from './thread-index.ts';

/** Where a chat keeps what it knows. */
export interface Storage {
  readonly checkpointer: BaseCheckpointSaver;
  readonly threads: ThreadIndex;
  readonly sessions: SessionStore;
  close(): Promise<void>;
}

/** In this process, as long as it runs. */
export function memoryStorage(limits: Partial<SessionLimits> = {}): Storage {
  const sessions = new MemorySessions(limits);
  return { checkpointer: new MemorySaver(), threads: new MemoryThreads(), sessions, close: () => sessions.close() };
}

/** In the file `chat.db` of a folder, for one process at a time. */
export function sqliteStorage(folder: string, limits: Partial<SessionLimits> = {}): Storage {
  const database = SqliteDatabase.open(folder);
  return {
    checkpointer: new SqliteSaver(database),
    threads: new SqliteThreads(database),
    sessions: new SqliteSessions(database, limits),
    close: async () => database.close(),
  };
}
