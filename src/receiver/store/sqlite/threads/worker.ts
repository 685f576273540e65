import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { exactJson } from '../../../../payload/fields.ts';
import { PriceList } from '../../../domain/cost/prices.ts';
import type { TenantChange } from '../../subscribers.ts';
import { SqliteCommits } from '../commits.ts';
import { loadEngine, toStoreError } from '../file/database.ts';
import { clearOwner, currentOwner, openBeside, openToRead, openToWrite, setOwner } from '../file/file.ts';
import { SqliteKeys } from '../keys.ts';
import { SqliteReader } from '../reads/reader.ts';
import { SqliteRepricing } from '../repricing.ts';
import { SqliteRetentionTime } from '../retention.ts';
import { type ConnectionOptions, EXIT, type Request, type Response, type StoreThread, sentError } from './thread.ts';

interface CallHandler {
  call(name: string, args: readonly unknown[]): Promise<unknown>;
  close(): void;
}

export async function openHandler(
  { path, write, ended, reprice, keys, retention }: ConnectionOptions,
  report: (change: TenantChange) => void,
): Promise<CallHandler> {
  const engine = await loadEngine();
  if (keys ?? reprice ?? retention) {
    const connection = openBeside(engine, path, keys?.create === true);
    const close = (): void => connection.close();
    if (keys !== undefined) return { call: callsOf(new SqliteKeys(connection), path), close };
    if (retention) return { call: callsOf(new SqliteRetentionTime(connection), path), close };
    return { call: callsOf(new SqliteRepricing(connection, new PriceList(reprice)), path), close };
  }
  if (write === undefined) {
    const connection = openToRead(engine, path);
    const reader = new SqliteReader(connection, () => currentOwner(engine, path), ended);
    const call = callsOf(reader, path);
    return { call: (name, args) => reader.limited(name, () => call(name, args)), close: () => connection.close() };
  }
  const prices = new PriceList(write);
  const { connection, lock } = openToWrite(engine, path);
  const close = (): void => {
    connection.close();
    lock.close();
  };
  try {
    setOwner(connection, write.owner);
    const commits = new SqliteCommits(connection, { ...write, prices }, Date.now, report);
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

function callsOf(
  target: SqliteCommits | SqliteReader | SqliteRepricing | SqliteKeys | SqliteRetentionTime,
  path: string,
): CallHandler['call'] {
  const methods = target as unknown as Readonly<Record<string, (...args: readonly unknown[]) => unknown>>;
  return async (name, args) => {
    try {
      return await methods[name]?.(...args);
    } catch (error) {
      throw toStoreError(error, path);
    }
  };
}

/** Calls whose result may contain an `ExactNumber`. Messages between threads do not preserve its class. */
const JSON_CALLS: ReadonlySet<string> = new Set(['details', 'feedback', 'feedbackWithId', 'mergedRuns']);

/** Executes requests from the main thread. The first request is `open`. */
function serve(port: MessagePort, exit: Int32Array): void {
  let opening: Promise<CallHandler> | undefined;
  const send = (response: Response): void => port.postMessage(response);
  const respond = async ({ id, name, args }: Exclude<Request, 'close'>): Promise<void> => {
    try {
      if (name === 'open') {
        opening = openHandler(args[0] as ConnectionOptions, (change) => send({ change }));
        await opening;
        send({ id });
      } else {
        const value = await (await opening)?.call(name, args);
        send(JSON_CALLS.has(name) ? { id, json: exactJson(value) } : { id, value });
      }
    } catch (error) {
      send({ id, error: sentError(error) });
      if (name === 'open') port.close();
    }
  };
  const close = async (): Promise<void> => {
    try {
      (await opening)?.close();
    } finally {
      // After the port is closed, nothing keeps the thread alive, so the thread ends.
      port.close();
    }
  };
  port.on('message', (request: Request) => {
    if (request === 'close') void close();
    else if (Atomics.load(exit, 0) === EXIT.none) void respond(request);
  });
  process.on('exit', () => {
    Atomics.store(exit, 0, EXIT.done);
    Atomics.notify(exit, 0);
  });
}

const { storeExit }: Partial<StoreThread> = workerData ?? {};
if (parentPort !== null && storeExit !== undefined) serve(parentPort, storeExit);
