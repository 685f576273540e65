import { expect, test } from 'vitest';
import { SqliteDatabase } from '../../server/storage/sqlite-database.ts';
import { SqliteSessions } from '../../server/storage/sqlite-sessions.ts';
import { temporaryFolder } from '../support/folder.ts';

test('an event of a thread that has all that it may have costs little, however much that is', async () => {
  using folder = temporaryFolder();
  const database = SqliteDatabase.open(folder.path);
  const sessions = new SqliteSessions(database);
  const body = JSON.stringify({ params: { data: 'x'.repeat(100_000) } });
  const event = { channel: 'values', namespace: [], body };
  for (let count = 0; count < 700; count += 70) await sessions.append('t', Array(70).fill(event));
  const startMs = performance.now();
  for (let count = 0; count < 30; count++) await sessions.append('t', [event]);
  // Some 20 ms of each, when all that is kept was looked through.
  expect(performance.now() - startMs).toBeLessThan(300);
  const { droppedThrough } = await sessions.read('t', 0, 1);
  expect((await sessions.lastSeq('t')) - droppedThrough).toBe(Math.floor((64 * 1024 * 1024) / body.length));
  await sessions.close();
  database.close();
});
