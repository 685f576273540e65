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
  const hides = { inputs: isHidden(env, 'INPUTS'), outputs: isHidden(env, 'OUTPUTS') };
  const endpoint = env.RUNSPAN_ENDPOINT?.trim();
  if (endpoint) {
    if (!URL.canParse(endpoint)) throw new SettingsError(`RUNSPAN_ENDPOINT is no address: ${endpoint}`);
    const { username, password } = new URL(endpoint);
    if (username !== '' || password !== '')
      throw new SettingsError(
        'RUNSPAN_ENDPOINT has a user or a password, which it must not; a key goes into RUNSPAN_API_KEY.',
      );
    const project = env.RUNSPAN_PROJECT || PROJECT;
    configure({ project });
    const viewerUrl = env.CHAT_VIEWER_URL || (isLoopback(new URL(endpoint).hostname) ? endpoint : undefined);
    const { RUNSPAN_WORKSPACE_ID: workspaceId } = env;
    return {
      service: new TraceService({ endpoint, apiKey: keyFor(endpoint, env), workspaceId, project, viewerUrl, hides }),
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
    service: new TraceService({ endpoint: receiver.url, project: PROJECT, viewerUrl: receiver.url, hides }),
    callbacks,
    close: async () => {
      await delivered();
      await receiver.close();
      if (store instanceof SqliteStore) await store.close();
    },
  };
}

/** As the library has it for the runs of the agent: what cannot be read hides. */
function isHidden(env: NodeJS.ProcessEnv, what: 'INPUTS' | 'OUTPUTS'): boolean {
  const said = env[`RUNSPAN_HIDE_${what}`]?.trim() || env[`LANGSMITH_HIDE_${what}`]?.trim() || 'false';
  return said !== 'false';
}

/** A key is sent in the clear nowhere but to this machine, unless that is allowed. */
function keyFor(endpoint: string, env: NodeJS.ProcessEnv): string | undefined {
  const { protocol, hostname } = new URL(endpoint);
  const isSafe = protocol === 'https:' || isLoopback(hostname) || env.RUNSPAN_ALLOW_INSECURE === 'true';
  return isSafe ? env.RUNSPAN_API_KEY : undefined;
}

async function delivered(): Promise<void> {
  await shutdown();
}

async function storeIn(folder: string): Promise<SqliteStore> {
  makeFolder(folder);
  return SqliteStore.open(join(folder, 'traces.db'));
}
