import { type ClientConfig, Pool } from 'pg';
import { endOf } from './postgres-end.ts';
import { ChatPostgresSaver } from './postgres-saver.ts';
import { POSTGRES_SCHEMA, preparePostgres } from './postgres-schema.ts';
import { PostgresSessions } from './postgres-sessions.ts';
import { PostgresThreads } from './postgres-threads.ts';
import type { SessionLimits, SessionStore } from './session-store.ts';
import type { Storage } from './storage.ts';
import { placeOf, unusable } from './store-error.ts';

const CONNECTIONS_MAX = 10;
const CONNECT_MS = 5_000;
const QUERY_MS = 10_000;
/** A connection that hangs is not used for longer. */
const CONNECTION_SECONDS_MAX = 600;

/** What several instances share in a database of PostgreSQL. The tables are made where they are missing; sessions may be elsewhere. */
export async function postgresStorage(
  url: string,
  limits: Partial<SessionLimits> = {},
  openSessions?: () => Promise<SessionStore>,
): Promise<Storage> {
  const config: ClientConfig = {
    connectionString: url,
    application_name: 'runspan chat',
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    keepAlive: true,
  };
  const pool = new Pool({ ...config, max: CONNECTIONS_MAX, maxLifetimeSeconds: CONNECTION_SECONDS_MAX });
  // A connection that breaks while nobody uses it is told here, and would end the process otherwise.
  pool.on('error', () => {});
  try {
    const checkpointer = new ChatPostgresSaver(pool, undefined, { schema: POSTGRES_SCHEMA });
    await preparePostgres(pool, () => checkpointer.setup());
    const sessions = await (openSessions?.() ?? PostgresSessions.open(pool, config, limits));
    return {
      checkpointer,
      threads: new PostgresThreads(pool),
      sessions,
      close: async () => {
        await sessions.close();
        await endOf(pool);
      },
    };
  } catch (error) {
    await endOf(pool);
    throw unusable('PostgreSQL', placeOf(url), error);
  }
}
