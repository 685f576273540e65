import { type Answer, ScriptedAgent } from './agent/scripted-agent.ts';
import { type ChatOptions, createChat } from './chat.ts';
import { MemoryStore } from './storage/memory-store.ts';

export interface ScriptedChatOptions extends Omit<ChatOptions, 'agent' | 'storage'> {
  /** Called for each turn. */
  readonly answer: Answer;
}

/** A chat without a database, a model and a server. */
export interface ScriptedChat {
  fetch(request: Request): Promise<Response>;
  close(): Promise<void>;
}

/** Creates a chat in memory whose answers come from a function. */
export async function createScriptedChat({ answer, ...options }: ScriptedChatOptions): Promise<ScriptedChat> {
  const agent = new ScriptedAgent(answer);
  const { app, close } = await createChat({
    ...options,
    agent,
    storage: { checkpointer: agent, store: new MemoryStore() },
  });
  return { fetch: async (request) => app.fetch(request), close };
}
