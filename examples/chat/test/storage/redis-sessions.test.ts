import { randomUUID } from 'node:crypto';
import { createClient } from '@redis/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RedisSessions } from '../../server/storage/redis-sessions.ts';
import type { NewEvent } from '../../server/storage/session-store.ts';
import { type StoreServer, startRedis } from '../support/server-process.ts';

let redis: StoreServer;
let here: RedisSessions;
let there: RedisSessions;
beforeAll(async () => {
  redis = await startRedis();
  [here, there] = [await RedisSessions.open(redis.url), await RedisSessions.open(redis.url)];
});
afterAll(async () => {
  await Promise.all([here?.close(), there?.close()]);
  await redis?.close();
});

const EVENT: NewEvent = { channel: 'lifecycle', namespace: [], body: '{"method":"lifecycle"}' };

/** Has Redis lose all that it has. */
async function lose(): Promise<void> {
  const client = await createClient({ url: redis.url }).connect();
  await client.flushAll();
  client.destroy();
}

test('a run whose store has lost everything has its thread again by the next renewal', async () => {
  const [thread, run] = [randomUUID(), randomUUID()];
  await here.claim(thread, run);
  await here.append(thread, [EVENT]);
  const before = await here.lastSeq(thread);
  await lose();
  await here.append(thread, [EVENT]);
  expect(await here.activeRun(thread)).toBeUndefined();
  expect(await here.renew(thread, run)).toBe('held');
  expect(await there.activeRun(thread)).toBe(run);
  expect(await there.claim(thread, 'next')).toBe(run);
  expect(await here.lastSeq(thread)).toBeGreaterThan(before);
  // The lease is one as any other.
  expect(await there.cancel(thread, run)).toBe(true);
  expect(await here.renew(thread, run)).toBe('cancelled');
});

test('a run that ends before the next renewal is told of as well', async () => {
  const [thread, run] = [randomUUID(), randomUUID()];
  await here.claim(thread, run);
  await lose();
  expect(await here.end(thread, run, EVENT)).toBe(true);
  expect((await there.read(thread, 0, 10)).events.map(({ body }) => body)).toEqual([EVENT.body]);
  expect(await there.activeRun(thread)).toBeUndefined();
  expect(await here.end(thread, run, EVENT)).toBe(false);
});

test('where another run has the thread meanwhile, it keeps it', async () => {
  const [thread, run] = [randomUUID(), randomUUID()];
  await here.claim(thread, run);
  await lose();
  expect(await there.claim(thread, 'next')).toBe('next');
  expect(await here.renew(thread, run)).toBe('lost');
  expect(await here.end(thread, run, EVENT)).toBe(false);
  expect(await there.end(thread, 'next', EVENT)).toBe(true);
  expect(await here.renew(thread, run)).toBe('lost');
});

test('a thread that was deleted, or whose run was ended elsewhere, is lost all the same', async () => {
  const [deleted, ended, run, other] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  await here.claim(deleted, run);
  await here.append(deleted, [EVENT]);
  await there.delete(deleted);
  expect(await here.renew(deleted, run)).toBe('lost');
  await here.claim(ended, other);
  expect(await there.end(ended, other, EVENT)).toBe(true);
  expect(await here.end(ended, other, EVENT)).toBe(false);
});
