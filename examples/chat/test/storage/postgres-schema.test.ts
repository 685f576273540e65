import { Pool } from 'pg';
import { expect, test } from 'vitest';
import { preparePostgres } from '../../server/storage/postgres-schema.ts';
import { PostgresSessions } from '../../server/storage/postgres-sessions.ts';
import { startPostgres } from '../support/server-process.ts';

test('tables that cannot be made are told of by what stands in their way, and hold nobody up', async () => {
  const server = await startPostgres();
  const pool = new Pool({ connectionString: server.url });
  const sql = async (text: string): Promise<void> => void (await pool.query(text));
  await expect(preparePostgres(pool, () => sql('CREATE SCHEMA chat; CREATE TABLE chat.threads ()'))).rejects.toThrow(
    'relation "threads" already exists',
  );
  await preparePostgres(pool, () => sql('DROP TABLE chat.threads'));
  // Those that start at the same time wait for each other.
  await Promise.all([1, 2, 3].map(() => preparePostgres(pool, () => sql('SELECT 1'))));
  await pool.end();
  await server.close();
});

test('tables that an older version has made have what they had', async () => {
  const server = await startPostgres();
  const pool = new Pool({ connectionString: server.url });
  const sql = async (text: string): Promise<void> => void (await pool.query(text));
  await preparePostgres(pool, () => sql('CREATE SCHEMA chat'));
  await sql(
    'ALTER TABLE chat.sessions DROP COLUMN waiting, DROP COLUMN waits; DELETE FROM chat.migrations WHERE version = 2',
  );
  await sql("INSERT INTO chat.sessions (thread_id, last_seq, run_id, lease_until) VALUES ('t', 7, 'run', now())");
  await preparePostgres(pool, () => sql('SELECT 1'));
  const sessions = await PostgresSessions.open(pool, { connectionString: server.url });
  expect(await sessions.lastSeq('t')).toBe(7);
  expect(await sessions.claim('t', 'next', 'last')).toBe('run');
  expect(await sessions.takeCutRuns()).toEqual([{ threadId: 't', runId: 'run' }]);
  await sessions.end('t', 'run', { channel: 'lifecycle', namespace: [], body: '{}' });
  expect(await sessions.renew('t', 'next')).toBe('held');
  await sessions.close();
  await pool.end();
  await server.close();
});
