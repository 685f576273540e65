import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished, vi } from 'vitest';
import { ClickHouse } from '#src/receiver/store/clickhouse/connection.ts';
import { migrate } from '#src/receiver/store/clickhouse/schema.ts';
import { startNode } from '../../support/program.ts';

const SHIM = fileURLToPath(new URL('./shim.mjs', import.meta.url));
/** A shim that hangs is killed after this time. */
const LIFE_MAX_MS = 900_000;

/** A ClickHouse that runs inside another process (see shim.mjs), with an empty database. */
export interface Server {
  readonly url: string;
  /** Sets the failures of later queries. See `faults` in shim.mjs. */
  setFaults(...faults: readonly Readonly<Record<string, unknown>>[]): Promise<void>;
  stop(): Promise<void>;
}

/** A server, and a connection to its database with the tables of the store. */
export interface Database extends Server {
  readonly db: ClickHouse;
}

/** A file system in memory. */
const MEMORY = '/dev/shm';
const MEMORY_BYTES_MIN = 2_000_000_000;

/** Returns the parent of data folders. ClickHouse writes many small files, which some disks create slowly. */
function dataRoot(): string {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize < MEMORY_BYTES_MIN ? tmpdir() : MEMORY;
}

/** Moves the clock of open stores until the test ends, or the returned function is called. */
export function moveClock(byMs: number): () => void {
  const now = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + byMs);
  onTestFinished(() => spy.mockRestore());
  return () => spy.mockRestore();
}

export async function startServer(): Promise<Server> {
  const folder = mkdtempSync(join(dataRoot(), 'runspan-clickhouse-'));
  const { child, printed, ended } = startNode([SHIM, folder], {}, undefined, LIFE_MAX_MS);
  const [url] = await printed(/http:\S+/);
  return {
    url,
    setFaults: async (...faults) => {
      await fetch(new URL('/fault', url.replace('default:@', '')), { method: 'POST', body: JSON.stringify(faults) });
    },
    stop: async () => {
      child.stdin?.end();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function startDatabase(): Promise<Database> {
  const server = await startServer();
  const db = await ClickHouse.connect(server.url);
  await migrate(db);
  const stop = async (): Promise<void> => {
    await db.close();
    await server.stop();
  };
  return { ...server, db, stop };
}
