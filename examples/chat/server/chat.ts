import type { BaseCallbackHandler } from '@langchain/core/callbacks/base';
import { Hono } from 'hono';
import { protocolRoutes } from './http/routes.ts';
import type { Agent } from './protocol/agent.ts';
import { Commands } from './protocol/commands.ts';
import { Runs } from './protocol/runs.ts';
import { ThreadStates } from './protocol/thread-state.ts';
import type { Storage } from './storage/storage.ts';

export interface ChatOptions {
  readonly agent: Agent;
  readonly storage: Storage;
  /** Told of everything that the agent does. */
  readonly callbacks?: readonly BaseCallbackHandler[];
  /** Told of what goes wrong beside any request. @default a line to stderr */
  readonly log?: (line: string) => void;
}

/** A chat as a handler of standard requests: `chat.app.fetch` is what a host calls. */
export interface Chat {
  readonly app: Hono;
  /** Ends the runs that are under way here, which is told to their threads, and closes the storage. */
  close(): Promise<void>;
}

/** Puts the parts of a chat together. Its end points are below `/api`. */
export async function createChat({ agent, storage, callbacks = [], log = defaultLog }: ChatOptions): Promise<Chat> {
  const runs = new Runs({ agent, storage, callbacks, log });
  await runs.tellCutRuns();
  const parts = { commands: new Commands(agent, runs), runs, states: new ThreadStates(agent), storage, log };
  return {
    app: new Hono().route('/api', protocolRoutes(parts)),
    close: async () => {
      await runs.close();
      await storage.close();
    },
  };
}

function defaultLog(line: string): void {
  process.stderr.write(`chat: ${line}\n`);
}
