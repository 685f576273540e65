// The store in ClickHouse, with a ClickHouse that runs inside another process (see clickhouse/shim.mjs).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, onTestFinished, test } from 'vitest';
import { ClickHouseStore } from '../../src/receiver/store/clickhouse/clickhouse-store.ts';
import { ClickHouse, sql } from '../../src/receiver/store/clickhouse/connection.ts';
import { migrate } from '../../src/receiver/store/clickhouse/schema.ts';
import type { Store } from '../../src/receiver.ts';
import { storeCases } from '../../src/store-testing.ts';
import { startNode } from '../support/program.ts';

const shim = fileURLToPath(new URL('./clickhouse/shim.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'runspan-clickhouse-'));
const server = startNode([shim, folder], {}, undefined, 900_000);

let url: string;
let db: ClickHouse;
let tables: readonly { readonly name: string }[];

beforeAll(async () => {
  [url] = await server.printed(/http:\S+/);
  db = await ClickHouse.connect(url);
  await migrate(db);
  tables = await db.rows(
    sql("SELECT name FROM system.tables WHERE database = currentDatabase() AND name <> 'migrations'"),
  );
});

afterAll(async () => {
  await db.close();
  server.child.stdin?.end();
  await server.ended;
  rmSync(folder, { recursive: true, force: true });
});

// Creating another database takes ten times as long.
beforeEach(async () => {
  await Promise.all(tables.map(({ name }) => db.command(sql(`TRUNCATE TABLE ${name}`))));
});

async function openStore(): Promise<ClickHouseStore> {
  const store = await ClickHouseStore.open(url, { batchDelayMs: 0 });
  onTestFinished(() => store.close());
  return store;
}

const LATE_METHODS: readonly string[] = [
  'runs',
  'attachment',
  'projects',
  'traces',
  'threads',
  'list',
  'outline',
  'details',
  'payload',
  'statistics',
  'suggestions',
  'changes',
  'feedback',
  'removable',
  'remove',
] satisfies (keyof Store)[];

/** Returns a store whose queries wait until they see all earlier writes. */
function settling(store: ClickHouseStore): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const call = (target[name] as (...args: unknown[]) => unknown).bind(target);
      if (!LATE_METHODS.includes(name)) return call;
      if (name === 'runs') {
        return async function* (...args: unknown[]) {
          await target.settled();
          yield* call(...args) as ReturnType<Store['runs']>;
        };
      }
      return async (...args: unknown[]) => {
        await target.settled();
        return await call(...args);
      };
    },
  });
}

describe('a store in ClickHouse', () => {
  test.each(storeCases.map(({ title, run }) => [title, run] as const))('%s', async (_title, run) => {
    await run(settling(await openStore()));
  });
});
