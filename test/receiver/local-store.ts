import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { SqliteConnection } from '../../src/receiver/store/sqlite-connection.ts';
import { Desk, type DeskOptions, type ReaderCalls, type WriterCalls } from '../../src/receiver/store/sqlite-desk.ts';
import { loadEngine } from '../../src/receiver/store/sqlite-engine.ts';
import { SqliteIndex } from '../../src/receiver/store/sqlite-index.ts';
import type { Link } from '../../src/receiver/store/sqlite-link.ts';
import { SqliteStore } from '../../src/receiver/store/sqlite-store.ts';
import { Subscribers } from '../../src/receiver/store/subscribers.ts';

export const LIMITS = { maxAgeMs: 365 * 24 * 3_600_000, maxBytes: 2 ** 40, prices: {} };

/** A path in a folder that is gone after the test. */
export function storePath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'runspan-store-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'runs.db');
}

/** A store whose threads are this one, since a worker could run only what has been built. */
export async function openLocalStore(path = storePath(), limits = LIMITS): Promise<SqliteStore> {
  const subscribers = new Subscribers();
  const open = async <Calls>(options: DeskOptions): Promise<Link<Calls>> => {
    const desk = await Desk.open(options, (change) => subscribers.tell(change));
    return {
      call: (name, ...args) => desk.answer(name, structuredClone(args)) as never,
      close: () => desk.close(),
    };
  };
  const owner = { pid: process.pid, started_at: '2026-11-20T07:00:00.000Z' };
  const writer = await open<WriterCalls>({ path, write: { ...limits, owner } });
  const openReader = () => open<ReaderCalls>({ path });
  const store = new SqliteStore(path, { writer, reader: await openReader(), openSlowReader: openReader }, subscribers);
  onTestFinished(() => store.close());
  return store;
}

/** Puts all that waits into the index, by a connection of its own. */
export async function indexAll(path: string): Promise<void> {
  const { DatabaseSync } = await loadEngine();
  const connection = new SqliteConnection(new DatabaseSync(path));
  const index = new SqliteIndex(connection);
  while (index.waiting > 0) index.step(1_000);
  connection.close();
}
