// LangSmith's client reads from a receiver with the store in ClickHouse.
import { Client } from 'langsmith';
import { afterAll, describe } from 'vitest';
import { STORE_METHODS } from '#src/receiver/store/store.ts';
import type { Store } from '#src/receiver.ts';
import { testReads } from '../receiver/langsmith-reads.ts';
import { startDatabase } from './clickhouse/database.ts';
import { openStore, settling } from './clickhouse/stores.ts';

const { url, stop } = await startDatabase();
afterAll(stop);

async function open(): Promise<Store> {
  const store = settling(await openStore(url));
  // An async function cannot return the store itself, because it has no property `then`.
  return Object.fromEntries(STORE_METHODS.map((name) => [name, store[name]])) as unknown as Store;
}

describe('the LangSmith client', () => testReads(Client, [['ClickHouseStore', open]]));
