import { join } from 'node:path';
import { configure, shutdown } from 'runspan';
import { RunspanCallbackHandler } from 'runspan/langchain';
import { createReceiver, MemoryStore, SqliteStore } from 'runspan/receiver';
import { isLoopback } from '../http/allowed-hosts.ts';
import type { Handlers } from '../protocol/agent.ts';
import { SettingsError } from '../settings.ts';
import { makeFolder } from '../storage/folder.ts';
import { TraceService } from './trace-service.ts';

/** The tracing of the chat. */
export interface Traces {
  /** Undefined where nothing is to be traced. */
  readonly service: TraceService | undefined;
  readonly callbacks: Handlers;
  /** Delivers what has not arrived yet. */
  close(): Promise<void>;
}

export interface TracesOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly tracePort: number;
  /** Keeps them, where a receiver is started. */
  readonly data?: string | undefined;
}

const PROJECT = 'chat';

/** Traces go where RUNSPAN_ENDPOINT says; without it to a receiver beside the chat, in the same process. None are made where RUNSPAN_TRACING is `false`. */
export async function openTraces({ env, tracePort, data }: TracesOptions): Promise<Traces> {
  if (env.RUNSPAN_TRACING?.trim() === 'false') return { service: undefined, callbacks: [], close: delivered };
  const callbacks = [new RunspanCallbackHandler()];
  const endpoint = env.RUNSPAN_ENDPOINT?.trim();
  if (endpoint) {
    if (!URL.canParse(endpoint)) throw new SettingsError(`RUNSPAN_ENDPOINT is not a URL: ${endpoint}`);
    const { username, password } = new URL(endpoint);
    if (username !== '' || password !== '')
      throw new SettingsError(
        'RUNSPAN_ENDPOINT has a user or a password, which it must not; a key goes into RUNSPAN_API_KEY.',
      );
    configure({ project: env.RUNSPAN_PROJECT || PROJECT });
    const viewerUrl = env.CHAT_VIEWER_URL || (isLoopback(new URL(endpoint).hostname) ? endpoint : undefined);
    const { RUNSPAN_API_KEY: apiKey, RUNSPAN_WORKSPACE_ID: workspaceId } = env;
    const allowInsecure = env.RUNSPAN_ALLOW_INSECURE === 'true';
    return {
      service: new TraceService({ endpoint, apiKey, allowInsecure, workspaceId, viewerUrl }),
      callbacks,
      close: delivered,
    };
  }
  const store = data === undefined ? new MemoryStore() : await storeIn(data);
  const receiver = await createReceiver({ port: tracePort, store }).catch(async (error: unknown) => {
    if (store instanceof SqliteStore) await store.close();
    if ((error as { readonly code?: string }).code !== 'RUNSPAN_ADDRESS_IN_USE') throw error;
    throw new Error(`port ${tracePort} is taken; choose another one for the traces with --trace-port`);
  });
  configure({ endpoint: receiver.url, project: PROJECT, tracing: true });
  return {
    service: new TraceService({ endpoint: receiver.url, viewerUrl: receiver.url }),
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
  makeFolder(folder);
  return SqliteStore.open(join(folder, 'traces.db'));
}
