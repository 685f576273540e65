import { parentPort, workerData } from 'node:worker_threads';
import { SqliteCommits } from './commits.ts';
import { loadEngine } from './database.ts';
import { toStoreError } from './errors.ts';
import { clearOwner, currentOwner, openToRead, openToWrite, setOwner } from './file.ts';
import { SqliteReader } from './reader.ts';
import { type ConnectionOptions, type Request, type Response, sentError } from './thread.ts';
import type { TenantChange } from './writer.ts';

/** Executes the calls of a thread. */
export interface CallHandler {
  call(name: string, args: readonly unknown[]): Promise<unknown>;
  close(): void;
}

export async function openHandler(
  { path, write }: ConnectionOptions,
  report: (change: TenantChange) => void,
): Promise<CallHandler> {
  const engine = await loadEngine();
  if (write === undefined) {
    const connection = openToRead(engine, path);
    const reader = new SqliteReader(connection, () => currentOwner(engine, path));
    return { call: callsOf(reader, path), close: () => connection.close() };
  }
  const { connection, lock } = openToWrite(engine, path);
  const close = (): void => {
    connection.close();
    lock.release();
  };
  try {
    setOwner(connection, write.owner);
    const commits = new SqliteCommits(connection, write, Date.now, report);
    return {
      call: callsOf(commits, path),
      close: () => {
        commits.close();
        clearOwner(connection);
        close();
      },
    };
  } catch (error) {
    close();
    throw toStoreError(error, path);
  }
}

function callsOf(target: SqliteCommits | SqliteReader, path: string): CallHandler['call'] {
  const methods = target as unknown as Readonly<Record<string, (...args: readonly unknown[]) => unknown>>;
  return async (name, args) => {
    try {
      return await methods[name]?.(...args);
    } catch (error) {
      throw toStoreError(error, path);
    }
  };
}

/** Answers the messages of the main thread. */
async function serve(options: ConnectionOptions): Promise<void> {
  const send = (response: Response): void => parentPort?.postMessage(response);
  try {
    const handler = await openHandler(options, (change) => send({ kind: 'change', change }));
    parentPort?.on('message', (request: Request) => void respond(handler, request, send));
    send({ kind: 'open' });
  } catch (error) {
    send({ kind: 'failure', error: sentError(error) });
  }
}

async function respond(handler: CallHandler, request: Request, send: (response: Response) => void): Promise<void> {
  if (request === 'close') {
    handler.close();
    // The thread ends, because nothing else keeps it alive.
    parentPort?.close();
    return;
  }
  const { id, name, args } = request;
  try {
    send({ kind: 'result', id, value: await handler.call(name, args) });
  } catch (error) {
    send({ kind: 'result', id, error: sentError(error) });
  }
}

const { store } = (workerData ?? {}) as { readonly store?: ConnectionOptions };
if (store !== undefined) void serve(store);
