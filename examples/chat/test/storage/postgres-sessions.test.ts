import { Pool } from 'pg';
import { expect, test } from 'vitest';
import { POSTGRES_SCHEMA, preparePostgres } from '../../server/storage/postgres-schema.ts';
import { PostgresSessions } from '../../server/storage/postgres-sessions.ts';
import { startPostgres } from '../support/server-process.ts';

test('events that are kept are told as kept, also where the oldest cannot be taken away', async () => {
  const server = await startPostgres();
  const pool = new Pool({ connectionString: server.url });
  await preparePostgres(pool, async () => void (await pool.query(`CREATE SCHEMA ${POSTGRES_SCHEMA}`)));
  const sessions = await PostgresSessions.open(pool, { connectionString: server.url }, { bytesMax: 10 });
  const event = { channel: 'values', namespace: [], body: '{"n":1}' };
  const append = (): Promise<void> => sessions.append('t', [event]);
  await append();
  await pool.query(`CREATE RULE kept AS ON DELETE TO chat.events DO INSTEAD SELECT 1 / 0`);
  await append();
  expect((await sessions.read('t', 0, 10)).events).toHaveLength(2);
  await pool.query('DROP RULE kept ON chat.events');
  await append();
  expect((await sessions.read('t', 0, 10)).events).toHaveLength(1);
  await sessions.close();
  await pool.end();
  await server.close();
});
