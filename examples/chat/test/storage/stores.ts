import { join } from 'node:path';
import { Pool } from 'pg';
import { MemorySessions } from '../../server/storage/memory-sessions.ts';
import { MemoryThreads } from '../../server/storage/memory-threads.ts';
import { POSTGRES_SCHEMA, preparePostgres } from '../../server/storage/postgres-schema.ts';
import { PostgresSessions } from '../../server/storage/postgres-sessions.ts';
import { PostgresThreads } from '../../server/storage/postgres-threads.ts';
import { RedisSessions } from '../../server/storage/redis-sessions.ts';
import type { NewEvent, SessionLimits, SessionStore } from '../../server/storage/session-store.ts';
import { SqliteDatabase } from '../../server/storage/sqlite-database.ts';
import { SqliteSessions } from '../../server/storage/sqlite-sessions.ts';
import { SqliteThreads } from '../../server/storage/sqlite-threads.ts';
import type { ThreadIndex } from '../../server/storage/thread-index.ts';
import { temporaryFolder } from '../support/folder.ts';
import { type StoreServer, startPostgres, startRedis } from '../support/server-process.ts';

/** A kind of store, as the suites that all of them have to pass use it. */
export interface StoreKind {
  readonly server?: StoreServer;
  /** With bounds of its own it is a store by itself, where its kind cannot be shared. */
  sessions(limits?: Partial<SessionLimits>): Promise<SessionStore>;
  readonly threads?: ThreadIndex;
  close(): Promise<void>;
}

/** Each kind, by how it is started. Two that are shared are two instances of the application. */
export const STORE_KINDS: Readonly<Record<string, () => Promise<StoreKind>>> = {
  memory: async () => {
    const shared = new MemorySessions();
    return {
      sessions: async (limits) => (limits === undefined ? shared : new MemorySessions(limits)),
      threads: new MemoryThreads(),
      close: () => shared.close(),
    };
  },

  SQLite: async () => {
    const folder = temporaryFolder();
    const databases = [SqliteDatabase.open(folder.path)];
    const shared = new SqliteSessions(databases[0] as SqliteDatabase);
    return {
      sessions: async (limits) => {
        if (limits === undefined) return shared;
        const own = SqliteDatabase.open(join(folder.path, `${databases.length}`));
        databases.push(own);
        return new SqliteSessions(own, limits);
      },
      threads: new SqliteThreads(databases[0] as SqliteDatabase),
      close: async () => {
        for (const database of databases) database.close();
        folder[Symbol.dispose]();
      },
    };
  },

  PostgreSQL: async () => {
    const server = await startPostgres();
    const config = { connectionString: server.url, connectionTimeoutMillis: 5_000, query_timeout: 10_000 };
    const pool = new Pool({ ...config, max: 10 });
    pool.on('error', () => {});
    await preparePostgres(pool, async () => void (await pool.query(`CREATE SCHEMA ${POSTGRES_SCHEMA}`)));
    const opened: SessionStore[] = [];
    return {
      server,
      sessions: async (limits) => {
        opened.push(await PostgresSessions.open(pool, config, limits));
        return opened.at(-1) as SessionStore;
      },
      threads: new PostgresThreads(pool),
      close: async () => {
        for (const store of opened) await store.close();
        await pool.end();
        await server.close();
      },
    };
  },

  Redis: async () => {
    const server = await startRedis();
    const opened: SessionStore[] = [];
    return {
      server,
      sessions: async (limits) => {
        opened.push(await RedisSessions.open(server.url, limits));
        return opened.at(-1) as SessionStore;
      },
      close: async () => {
        for (const store of opened) await store.close();
        await server.close();
      },
    };
  },
};

/** Those of which several instances see the same. */
export const SHARED_KINDS: ReadonlySet<string> = new Set(['PostgreSQL', 'Redis']);

/** As `takeCutRuns` sees it, a lease that has run out when it is given. */
export const RUN_OUT: Partial<SessionLimits> = { leaseMs: -1_000 };

/** The event that a run ends with. */
export const LAST: NewEvent = { channel: 'lifecycle', namespace: [], body: '{}' };
