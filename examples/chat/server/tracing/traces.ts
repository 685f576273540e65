import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { configure, shutdown } from 'runspan';
import { RunspanCallbackHandler } from 'runspan/langchain';
import { createReceiver, MemoryStore, SqliteStore } from 'runspan/receiver';
import { isLoopback } from '../http/loopback-hosts.ts';
import type { Handlers } from '../protocol/agent.ts';
import { TraceService } from './trace-service.ts';

/** The tracing of the chat. */
export interface Traces {
  readonly service: TraceService;
  readonly callbacks: Handlers;
  /** Delivers what has not arrived yet. */
  close(): Promise<void>;
}

export interface TracesOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly tracePort: number;
  /** Keeps them, where a receiver is started. */
  readonly data: string | undefined;
}

const PROJECT = 'chat';

/** Traces go where RUNSPAN_ENDPOINT says; without it to a receiver beside the chat, in the same process. */
export async function openTraces({ env, tracePort, data }: TracesOptions): Promise<Traces> {
  const { RUNSPAN_ENDPOINT: endpoint, RUNSPAN_API_KEY: apiKey, RUNSPAN_WORKSPACE_ID: workspaceId } = env;
  const callbacks = [new RunspanCallbackHandler()];
  if (endpoint) {
    const project = env.RUNSPAN_PROJECT || PROJECT;
    configure({ project });
    const viewerUrl = env.CHAT_VIEWER_URL || (isLoopback(new URL(endpoint).hostname) ? endpoint : undefined);
    return {
      service: new TraceService({ endpoint, apiKey, workspaceId, project, viewerUrl }),
      callbacks,
      close: delivered,
    };
  }
  const store = data === undefined ? new MemoryStore() : await storeIn(data);
  const receiver = await createReceiver({ port: tracePort, store });
  configure({ endpoint: receiver.url, project: PROJECT, tracing: true });
  return {
    service: new TraceService({ endpoint: receiver.url, project: PROJECT, viewerUrl: receiver.url }),
    callbacks,
    close: async () => {
      await delivered();
      await receiver.close();
      if (store instanceof SqliteStore) await store.close();
    },
  };
}

async function delivered(): Promise<void> {
  await shutdown();
}

async function storeIn(folder: string): Promise<SqliteStore> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return SqliteStore.open(join(folder, 'traces.db'));
}
