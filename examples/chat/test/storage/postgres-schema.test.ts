import { Pool } from 'pg';
import { expect, test } from 'vitest';
import { preparePostgres } from '../../server/storage/postgres-schema.ts';
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
