import type { Counters } from './counters.ts';
import type { SqliteConnection } from './database.ts';
import { contributionOf, DELETE_TAG } from './stored-run.ts';

/** Deletes a run and all that belongs to it, and subtracts it from the counters. */
export function deleteRun(connection: SqliteConnection, counters: Counters, n: number): void {
  const row = connection.one('SELECT * FROM runs WHERE n = ?', n);
  if (row === undefined) return;
  const { tenant = null, id = null, start_us: startUs = null } = row;
  if (startUs !== null) {
    counters.add(contributionOf(row), -1);
    const fields = connection.one<{ fields: string }>('SELECT fields FROM details WHERE n = ?', n)?.fields ?? '{}';
    const { tags = [] } = JSON.parse(fields) as { tags?: string[] };
    for (const tag of tags) connection.run(DELETE_TAG, tenant, tag, startUs, n);
  }
  connection.run('DELETE FROM payloads WHERE n >= ? AND n < ?', n * 4, n * 4 + 4);
  for (const sql of OF_A_RUN) connection.run(sql, n);
  connection.run('DELETE FROM tokens WHERE tenant = ? AND run_id = ?', tenant, id);
}

const OF_A_RUN: readonly string[] = [
  'DELETE FROM words WHERE rowid = ?',
  'DELETE FROM unindexed WHERE n = ?',
  'DELETE FROM attachments WHERE run = ?',
  'DELETE FROM feedback WHERE run = ?',
  'DELETE FROM details WHERE n = ?',
  'DELETE FROM runs WHERE n = ?',
];
