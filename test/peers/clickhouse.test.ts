// The store in ClickHouse, with a ClickHouse that runs inside another process (see clickhouse/shim.mjs).
import { randomBytes } from 'node:crypto';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import { ClickHouseStore } from '#src/receiver/store/clickhouse/clickhouse-store.ts';
import { sql, string } from '#src/receiver/store/clickhouse/connection.ts';
import { migrate, statements } from '#src/receiver/store/clickhouse/schema.ts';
import { createReceiver, type Receiver } from '#src/receiver.ts';
import { checkDeletions } from '../receiver/conformance/deletions.ts';
import { checkFigures } from '../receiver/conformance/figures.ts';
import { anySteps, callSteps, identitySteps, withoutDeletions } from '../receiver/conformance/generated.ts';
import { compareWithMemory, MODEL_TIMEOUT_MS } from '../receiver/conformance/model.ts';
import { checkDeletedOrders, checkOrders } from '../receiver/conformance/orders.ts';
import { storeCases } from '../receiver/conformance/store-cases.ts';
import { id, patch, post, SCOPE, second, simple, withOwnTenants } from '../receiver/conformance/support.ts';
import { applyTexts, expectWords } from '../receiver/conformance/word-cases.ts';
import { expectExactNumbers } from '../receiver/numbers.ts';
import { call } from '../receiver/wire.ts';
import { cases } from '../support/campaign.ts';
import { startDatabase } from './clickhouse/database.ts';
import { settling } from './clickhouse/stores.ts';

const { url, db, stop } = await startDatabase();
/** The stores of two receivers with the same database. */
const stores = [await openStore(), await openStore()] as const;
const [store] = stores;
afterAll(async () => {
  await Promise.all(stores.map((one) => one.close()));
  await stop();
});

function openStore(): Promise<ClickHouseStore> {
  return ClickHouseStore.open(url, { batchDelayMs: 0 });
}

async function settle(): Promise<void> {
  for (const one of stores) await one.settled();
}

describe('a store in ClickHouse', () => {
  test.each(storeCases.map(({ title, run }) => [title, run] as const))('%s', (title, run) =>
    run(settling(withOwnTenants(store, title))),
  );

  test('every number is received and returned with all its digits', { timeout: MODEL_TIMEOUT_MS }, () =>
    expectExactNumbers(settling(withOwnTenants(store, 'numbers'))),
  );

  test('runs of simple ingestion are in the traces of the order parent first', { timeout: MODEL_TIMEOUT_MS }, () =>
    checkOrders(settling(withOwnTenants(store, 'orders')), cases(5)),
  );

  test(
    'a key that is limited to a project sees figures of the runs in the project only',
    { timeout: MODEL_TIMEOUT_MS },
    () => checkFigures(settling(withOwnTenants(store, 'figures')), cases(3)),
  );

  test('a deleted trace stays deleted, and covers no run above it', { timeout: MODEL_TIMEOUT_MS }, () =>
    checkDeletedOrders(settling(withOwnTenants(store, 'deleted orders')), cases(5)),
  );
});

const ENDED = { end_time: second(3), outputs: { b: 2 } };

describe('two stores with the same database', () => {
  const tested = (name: string) => ({ stores: stores.map((one) => withOwnTenants(one, name)), afterStep: settle });

  test('answer like a store in memory after any messages in any order', { timeout: MODEL_TIMEOUT_MS }, () =>
    compareWithMemory(tested('any'), withoutDeletions(anySteps), cases(10)),
  );

  test('answer like a store in memory after runs and spans of the same traces, and restarts', {
    timeout: MODEL_TIMEOUT_MS,
  }, async () => {
    const open = async () => withOwnTenants(await openStore(), 'identity');
    const own = [withOwnTenants(store, 'identity'), await open()] as [ClickHouseStore, ClickHouseStore];
    const restart = async (): Promise<void> => {
      await own[0].settled();
      await own[1].close();
      own[1] = await open();
    };
    await compareWithMemory({ stores: own, afterStep: restart }, withoutDeletions(identitySteps), cases(20));
    await own[1].close();
  });

  test(
    'answer like a store in memory after messages of runs that record the same calls',
    { timeout: MODEL_TIMEOUT_MS },
    () => compareWithMemory(tested('calls'), withoutDeletions(callSteps), cases(10)),
  );

  test('keep exactly the traces that no deletion selects', { timeout: MODEL_TIMEOUT_MS }, async () => {
    const own = [await openStore(), await openStore()];
    let at = 0;
    const next = async (): Promise<ClickHouseStore> => {
      for (const one of [...own, ...own]) await one.settled();
      at += 1;
      return own[at % own.length] ?? store;
    };
    const restart = async (): Promise<void> => {
      await own[0]?.close();
      own[0] = await openStore();
    };
    await checkDeletions(() => ({ store: next, restart }), cases(10));
    await Promise.all(own.map((one) => one.close()));
  });
});

test('A change inserts rows for the changed runs and the root of their trace only', async () => {
  const tenant = { tenant: 'rows' };
  const stored = async (): Promise<number> => {
    const [row] = await db.rows<{ n: number }>(sql("SELECT count() AS n FROM runs WHERE tenant = 'rows'"));
    return row?.n ?? 0;
  };
  // A merge would delete earlier versions of rows.
  await db.command(sql('SYSTEM STOP MERGES runs'));
  onTestFinished(() => db.command(sql('SYSTEM START MERGES runs')));
  await store.apply(tenant, [post(1), ...Array.from({ length: 50 }, (_, at) => post(2 + at, { parent: 1 }))]);
  await store.settled();
  expect(await stored()).toBe(51);
  await store.apply(tenant, [patch(7, ENDED)]);
  await store.settled();
  expect(await stored()).toBe(53);
  // The usage of the parent no longer counts, because its child has usage.
  const usage = { outputs: { usage_metadata: { input_tokens: 3 } } };
  await store.apply(tenant, [patch(8, usage)]);
  await store.settled();
  expect(await stored()).toBe(55);
  await store.apply(tenant, [post(60, { parent: 1, parent_run_id: id(8), ...usage })]);
  await store.settled();
  expect(await stored()).toBe(58);
});

test('ClickHouse can parse the statements for a cluster, and each creates a replicated table on all servers', async () => {
  const all = statements("eu 'west'");
  expect(all.filter((text) => text.startsWith('INSERT'))).toEqual(['INSERT INTO migrations (version) VALUES (8)']);
  const changes = all.filter((text) => !text.startsWith('INSERT'));
  expect(changes.length).toBeGreaterThan(10);
  for (const statement of changes) {
    const [row] = await db.rows<{ text: string }>(sql('SELECT formatQuery(?) AS text', string(statement)));
    expect(row?.text).toMatch(/^CREATE (TABLE|MATERIALIZED VIEW) IF NOT EXISTS \w+ ON CLUSTER `eu 'west'`\s/);
    if (statement.startsWith('CREATE TABLE')) expect(row?.text).toMatch(/ENGINE = Replicated\w*MergeTree/);
  }
});

test('a database without tables is refused until it is migrated, and one of a build before the first release always', async () => {
  await db.command(sql('ALTER TABLE migrations DELETE WHERE 1 SETTINGS mutations_sync = 2'));
  await expect(openStore()).rejects.toThrow('run `runspan store migrate`');
  expect(await migrate(db)).toBe(1);
  await (await openStore()).close();
  await db.command(sql('ALTER TABLE migrations DELETE WHERE 1 SETTINGS mutations_sync = 2'));
  await db.insert('migrations', [{ version: 7 }]);
  const early = 'created by a build of runspan before its first release: use a new database';
  await expect(openStore()).rejects.toThrow(early);
  await expect(migrate(db)).rejects.toThrow(early);
  await db.insert('migrations', [{ version: 8 }]);
});

test('merged messages have an index of characters, which finds the same words', async () => {
  const own = settling(withOwnTenants(store, 'words'));
  await applyTexts(own);
  await db.command(sql('OPTIMIZE TABLE messages FINAL'));
  const size = sql(`SELECT data_compressed_bytes AS bytes FROM system.data_skipping_indices
    WHERE database = currentDatabase() AND name = 'by_character'`);
  const bytes = async () => (await db.rows<{ bytes: number }>(size))[0]?.bytes;
  await expect.poll(bytes, { timeout: 20_000 }).toBeGreaterThan(0);
  await expectWords(own, ['订单退款', '号款', '東区', '格', 'GPT格式化v2', 'フォ', 'เงินคืน', 'ค', '환불', 'cafe']);
});

test('log records that arrive at one receiver are added to spans that arrive at another at the same time', async () => {
  const [first, second] = await Promise.all(stores.map((store) => createReceiver({ store })));
  onTestFinished(async () => void (await Promise.all([first?.close(), second?.close()])));
  const traceId = randomBytes(16).toString('hex');
  const digits = Array.from({ length: 20 }, (_, at) => at.toString(16).padStart(16, 'a'));
  const send = (at: Receiver | undefined, path: string, body: object) =>
    call(`${at?.url}${path}`, 'POST', JSON.stringify(body), { 'content-type': 'application/json' });
  await Promise.all(
    digits.flatMap((spanId) => {
      const startTimeUnixNano = `${BigInt(Date.now()) * BigInt(1_000_000)}`;
      const span = { traceId, spanId, name: 'chat', startTimeUnixNano, endTimeUnixNano: startTimeUnixNano };
      const record = (content: string, timeUnixNano: string) => ({
        ...{ traceId, spanId, timeUnixNano, eventName: 'gen_ai.user.message' },
        attributes: [{ key: 'content', value: { stringValue: content } }],
      });
      const logs = (logRecord: object) => ({ resourceLogs: [{ scopeLogs: [{ logRecords: [logRecord] }] }] });
      return [
        send(first, '/v1/traces', { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }),
        send(second, '/v1/logs', logs(record('a', '1900000000000000001'))),
        send(first, '/v1/logs', logs(record('b', '1900000000000000002'))),
      ];
    }),
  );
  const runs = await stores[0].mergedRuns(
    SCOPE,
    digits.map((spanId) => ({ traceId, spanId })),
  );
  const messages = ['a', 'b'].map((content) => ({ role: 'user', content }));
  expect(runs.map(({ fields }) => fields.inputs)).toEqual(Array(20).fill({ messages }));
});

test('runs of more months than ClickHouse accepts in one insert are stored', async () => {
  const tenant = { tenant: 'months' };
  const months = Array.from({ length: 120 }, (_, at) => {
    const start_time = `${2010 + Math.floor(at / 12)}-${`${1 + (at % 12)}`.padStart(2, '0')}-01T00:00:00.000000Z`;
    return simple(at + 1, { start_time });
  });
  await store.apply(tenant, months);
  await store.settled();
  const { total } = await store.statistics(tenant, parsedQuery({}));
  expect(total.runs).toBe(120);
});
