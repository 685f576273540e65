import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { loadEngine, SqliteConnection } from '#src/receiver/store/sqlite/file/database.ts';
import { openToWrite, realPathOf } from '#src/receiver/store/sqlite/file/file.ts';
import { SqliteIndex } from '#src/receiver/store/sqlite/reads/search.ts';
import { type ReaderCalls, SqliteStore, type WriterCalls } from '#src/receiver/store/sqlite/sqlite-store.ts';
import { StatisticsCache } from '#src/receiver/store/sqlite/statistics-cache.ts';
import type { ConnectionOptions, Thread } from '#src/receiver/store/sqlite/threads/thread.ts';
import { openHandler } from '#src/receiver/store/sqlite/threads/worker.ts';
import { Subscribers } from '#src/receiver/store/subscribers.ts';
import type { PriceOptions } from '#src/receiver.ts';
import { temporaryFolder } from '../support/folders.ts';

export { runsOf as runsIn } from './conformance/support.ts';

export const LIMITS = { maxAgeMs: 365 * 24 * 3_600_000, projectMaxAgeMs: {}, maxBytes: 2 ** 40 };

/** Calls a function after the test, or after all tests of a file. */
type WhenDone = (work: () => Promise<void> | void) => void;

export function storePath(whenDone: WhenDone = onTestFinished): string {
  const folder = temporaryFolder();
  whenDone(folder.remove);
  return join(folder.path, 'runs.db');
}

/** Opens a store file for writing, and creates it if it does not exist. */
export async function openConnection(
  path = storePath(),
  whenDone: WhenDone = onTestFinished,
): Promise<SqliteConnection> {
  const { connection, lock } = openToWrite(await loadEngine(), path);
  whenDone(() => {
    connection.close();
    lock.close();
  });
  return connection;
}

/** Opens a store that runs in this thread, because a worker could run only built code. By default, it keeps no statistics. */
export async function openLocalStore(
  given = storePath(),
  limits: typeof LIMITS & PriceOptions = LIMITS,
  whenDone: WhenDone = onTestFinished,
  cache: StatisticsCache = new StatisticsCache(0),
): Promise<SqliteStore> {
  const path = realPathOf(given);
  const subscribers = new Subscribers();
  const open = async <Calls>(options: ConnectionOptions): Promise<Thread<Calls>> => {
    const handler = await openHandler(options, (change) => subscribers.report(change));
    return {
      call: (name, ...args) => handler.call(name, structuredClone(args)) as never,
      hasEnded: false,
      close: async () => handler.close(),
    };
  };
  const owner = { pid: process.pid, started_at: '2026-11-20T07:00:00.000Z' };
  const writer = await open<WriterCalls>({ path, write: { ...limits, owner } });
  const reader = await open<ReaderCalls>({ path });
  const openSlowReader = (ended: Int32Array) => open<ReaderCalls>({ path, ended });
  const store = new SqliteStore(path, { writer, reader, openSlowReader }, subscribers, cache);
  store.checkAge();
  whenDone(() => store.close());
  return store;
}

export async function indexAll(path: string): Promise<void> {
  const connection = new SqliteConnection(await loadEngine(), path);
  connection.exec('BEGIN IMMEDIATE');
  const index = new SqliteIndex(connection);
  while (index.waiting > 0) index.step(1_000);
  connection.exec('COMMIT');
  connection.close();
}
