// The store in ClickHouse, with a ClickHouse that runs inside another process (see clickhouse/shim.mjs).
import { randomBytes } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import { sql, string } from '#src/receiver/store/clickhouse/connection.ts';
import { migrate, statements } from '#src/receiver/store/clickhouse/schema.ts';
import { MemoryStore } from '#src/receiver/store/memory-store.ts';
import { createReceiver, type Receiver, type RunFields, type RunOperation, type Store } from '#src/receiver.ts';
import { randomFrom } from '../faults/random.ts';
import { queryCases } from '../receiver/conformance/query-cases.ts';
import { removalCases } from '../receiver/conformance/removal-cases.ts';
import { storeCases } from '../receiver/conformance/store-cases.ts';
import { id, patch, post, SCOPE, second, simple } from '../receiver/conformance/support.ts';
import { call } from '../receiver/wire.ts';
import { startDatabase } from './clickhouse/database.ts';
import { openStore, settling } from './clickhouse/stores.ts';

const { url, db, stop } = await startDatabase();
afterAll(stop);
// All tenants share the secrets.
beforeEach(() => db.command(sql('TRUNCATE TABLE token_secrets')));

describe('a store in ClickHouse', () => {
  // Other files run these cases in parallel.
  const elsewhere = new Set([...queryCases, ...removalCases]);
  const cases = storeCases.filter((one) => !elsewhere.has(one));
  test.each(cases.map(({ title, run }) => [title, run] as const))('%s', async (_title, run) => {
    await run(settling(await openStore(url)));
  });
});

test('ClickHouse can parse the statements for a cluster, and each creates or changes a replicated table on all servers', async () => {
  const all = statements("eu 'west'");
  expect(all.filter((text) => text.startsWith('INSERT'))).toEqual(['INSERT INTO migrations (version) VALUES (5)']);
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
  await expect(openStore(url)).rejects.toThrow('run `runspan store migrate`');
  expect(await migrate(db)).toBe(1);
  await openStore(url);
  await db.command(sql('ALTER TABLE migrations DELETE WHERE 1 SETTINGS mutations_sync = 2'));
  await db.insert('migrations', [{ version: 4 }]);
  const early = 'created by a build of runspan before its first release: use a new database';
  await expect(openStore(url)).rejects.toThrow(early);
  await expect(migrate(db)).rejects.toThrow(early);
  await db.insert('migrations', [{ version: 5 }]);
});

test('log records that arrive at one receiver are added to spans that arrive at another at the same time', async () => {
  const stores = [await openStore(url), await openStore(url)] as const;
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
  const store = await openStore(url);
  const months = Array.from({ length: 120 }, (_, at) => {
    const start_time = `${2010 + Math.floor(at / 12)}-${`${1 + (at % 12)}`.padStart(2, '0')}-01T00:00:00.000000Z`;
    return simple(at + 1, { start_time });
  });
  await store.apply(SCOPE, months);
  await store.settled();
  const { total } = await store.statistics(SCOPE, parsedQuery({}));
  expect(total.runs).toBe(120);
});

/** Returns what queries return about the trace of run 1 and all runs. */
async function answers(store: Store): Promise<unknown> {
  const query = parsedQuery({});
  const all: unknown[] = [];
  for await (const text of store.runs(SCOPE, query)) all.push(JSON.parse(text));
  return {
    all,
    list: await store.list(SCOPE, query),
    traces: await store.traces(SCOPE, query),
    outline: (await store.outline(SCOPE, id(1))).map((text) => JSON.parse(text)),
    details: await store.details(SCOPE, id(3)),
    outputs: await store.payload(SCOPE, id(3), 'outputs'),
    statistics: await store.statistics(SCOPE, query),
  };
}

const ENDED = { end_time: second(3), outputs: { b: 2 } };

describe('two stores with the same database', () => {
  test.each([1, 2, 3, 4, 5, 6])(
    'return the same as a store in memory, whoever stores which message when (%i)',
    async (seed) => {
      const random = randomFrom(seed);
      const chance = (probability: number): boolean => random() < probability;
      const stores = [await openStore(url), await openStore(url)];
      const memory = new MemoryStore();
      const numbers = [1, 2, 3, 4, 5, 6];
      const messages = numbers.flatMap((number) => {
        const parent = number === 1 ? {} : { parent: 1 + Math.floor(random() * (number - 1)) };
        const trace = (): RunFields => (chance(0.4) ? { trace_id: id(1) } : {});
        const posted = simple(number, { ...parent, ...trace(), inputs: { number } });
        const patched = patch(number, {
          ...trace(),
          end_time: second(number),
          outputs: { number },
          tags: [`${number}`],
        });
        return [posted, patched, ...[posted, patched].filter(() => chance(0.3))];
      });
      const order = messages.map((message) => ({ message, at: random() })).sort((a, b) => a.at - b.at);
      for (const { message } of order) {
        await memory.apply(SCOPE, [structuredClone(message)]);
        await stores[+chance(0.5)]?.apply(SCOPE, [structuredClone(message)]);
        if (chance(0.2)) await stores[+chance(0.5)]?.settled();
      }
      // Deriving in one store may link groups that the other has to derive again.
      for (const store of [...stores, ...stores]) await store.settled();
      const expected = await answers(memory);
      for (const store of stores) expect(await answers(store)).toEqual(expected);
    },
  );

  test.each<[string, RunOperation[]]>([
    ['only the post names its trace', [post(1), simple(2, { trace_id: id(1) }), patch(2, ENDED)]],
    ['only the post names its trace, and it arrives later', [post(1), patch(2, ENDED), simple(2, { trace_id: id(1) })]],
    ['only the patch names its trace', [post(1), simple(2), patch(2, { ...ENDED, trace_id: id(1) })]],
    ['only the parent names its trace', [simple(2, { parent: 1 }), patch(2, ENDED), post(1)]],
  ])('complete a run that one has started and the other has ended, if %s', async (_title, operations) => {
    const stores = [await openStore(url), await openStore(url)];
    for (const [at, operation] of operations.entries()) {
      await stores[at % 2]?.apply(SCOPE, [operation]);
      await stores[at % 2]?.settled();
    }
    for (const store of stores) {
      expect((await store.outline(SCOPE, id(1))).map((text) => JSON.parse(text))).toMatchObject([
        { id: id(1) },
        { id: id(2), status: 'success' },
      ]);
      expect(await store.details(SCOPE, id(2))).toMatchObject({ trace_id: id(1), payload_sizes: { outputs: 7 } });
    }
  });

  test('return the same as a store in memory after a run has left its parent and come back', async () => {
    const stores = [await openStore(url), await openStore(url)];
    const memory = new MemoryStore();
    const moves = [1, 2, 1].map((parent, at) => patch(3, { parent_run_id: id(parent), tags: [`move ${at}`] }));
    const runs = [simple(1), simple(2), simple(3, { parent: 1 }), simple(4, { parent: 3 })];
    for (const [at, operation] of [...runs, ...moves].entries()) {
      await memory.apply(SCOPE, [structuredClone(operation)]);
      await stores[at % 2]?.apply(SCOPE, [operation]);
      for (const store of [...stores, ...stores]) await store.settled();
    }
    const expected = await answers(memory);
    for (const store of stores) expect(await answers(store)).toEqual(expected);
  });
});

test('A change inserts rows for the changed runs and the root of their trace only', async () => {
  const store = await openStore(url);
  const tenant = { tenant: 'rows' };
  const stored = async (): Promise<number> => {
    const [row] = await db.rows<{ n: number }>(sql("SELECT count() AS n FROM runs WHERE endsWith(tenant, ' rows')"));
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
