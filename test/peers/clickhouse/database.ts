import { randomUUID } from 'node:crypto';
import { inject, onTestFinished, vi } from 'vitest';
import { ClickHouseStore } from '#src/receiver/store/clickhouse/clickhouse-store.ts';
import { ClickHouse, sql } from '#src/receiver/store/clickhouse/connection.ts';
import { migrate } from '#src/receiver/store/clickhouse/schema.ts';
import { startProcess } from './server.ts';

/** An empty database in a ClickHouse that runs inside another process (see shim.mjs). */
export interface Server {
  readonly url: string;
  /** Sets the failures of later queries. See `setFaults` in shim.mjs. */
  setFaults(...faults: readonly Readonly<Record<string, unknown>>[]): Promise<void>;
  stop(): Promise<void>;
}

/** A server, and a connection to its database with the tables of the store. */
export interface Database extends Server {
  readonly db: ClickHouse;
  /** Opens a store that is closed when the test has finished. */
  openStore(): Promise<ClickHouseStore>;
}

/** Moves the clock of open stores until the test ends, or the returned function is called. */
export function moveClock(byMs: number): () => void {
  const now = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + byMs);
  return () => spy.mockRestore();
}

/** Creates a database in the process that the files of a project share (see server.ts), or starts a process. */
export async function startServer(): Promise<Server> {
  const shared: string | undefined = inject('clickHouse');
  const { url, stop } = shared === undefined ? await startProcess() : await createDatabase(shared);
  return {
    url,
    setFaults: async (...faults) => {
      const { origin, pathname } = new URL(url);
      const target = `${origin}/fault?database=${pathname.slice(1)}`;
      await fetch(target, { method: 'POST', body: JSON.stringify(faults) });
    },
    stop,
  };
}

async function createDatabase(shared: string): Promise<Pick<Server, 'url' | 'stop'>> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const command = async (text: string): Promise<void> => {
    const db = await ClickHouse.connect(shared);
    await db.command(sql(text));
    await db.close();
  };
  await command(`CREATE DATABASE ${name}`);
  return { url: shared.replace('/runspan', `/${name}`), stop: () => command(`DROP DATABASE ${name}`) };
}

export async function startDatabase(): Promise<Database> {
  const server = await startServer();
  const db = await ClickHouse.connect(server.url);
  await migrate(db);
  const stop = async (): Promise<void> => {
    await db.close();
    await server.stop();
  };
  const openStore = async (): Promise<ClickHouseStore> => {
    const store = await ClickHouseStore.open(server.url, { batchDelayMs: 0 });
    onTestFinished(() => store.close());
    return store;
  };
  return { ...server, db, openStore, stop };
}
