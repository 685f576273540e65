// The store in ClickHouse, with a ClickHouse that runs inside another process (see clickhouse/shim.mjs).
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { isObject } from '../../src/base/options.ts';
import type { FilterNode } from '../../src/receiver/query/filter.ts';
import { ClickHouseStore } from '../../src/receiver/store/clickhouse/clickhouse-store.ts';
import { sql, string } from '../../src/receiver/store/clickhouse/connection.ts';
import { statements } from '../../src/receiver/store/clickhouse/schema.ts';
import { feedback, id, patch, post, SCOPE, second, simple } from '../../src/receiver/store/conformance/support.ts';
import { MemoryStore } from '../../src/receiver/store/memory-store.ts';
import { ranged } from '../../src/receiver/store/run-filter.ts';
import type { RunFields, Store } from '../../src/receiver.ts';
import { storeCases } from '../../src/store-testing.ts';
import { randomFrom } from '../faults/random.ts';
import { startDatabase } from './clickhouse/database.ts';

const { url, db, stop } = await startDatabase();
afterAll(stop);

/** Number of the test. Each test has its own tenants, because creating or emptying tables takes longer than a test. */
let testNumber = 0;

beforeEach(async () => {
  testNumber += 1;
  // All tenants share the secrets.
  await db.command(sql('TRUNCATE TABLE token_secrets'));
});

/** Opens a store that adds the number of the test to the names of tenants. */
async function openStore(): Promise<ClickHouseStore> {
  const store = await ClickHouseStore.open(url, { batchDelayMs: 0 });
  onTestFinished(() => store.close());
  const ofTest = (value: unknown): unknown =>
    isObject(value) && 'tenant' in value ? { ...value, tenant: `${testNumber} ${value.tenant}` } : value;
  return new Proxy(store, {
    get(target, name: keyof ClickHouseStore) {
      const method: unknown = target[name];
      return typeof method === 'function' ? (...args: unknown[]) => method.apply(target, args.map(ofTest)) : method;
    },
  });
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
  let settled: Promise<void> | undefined;
  const settle = (): Promise<void> => {
    settled ??= store.settled();
    return settled;
  };
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const call = (target[name] as (...args: unknown[]) => unknown).bind(target);
      const isLate = LATE_METHODS.includes(name);
      if (name === 'runs') {
        return async function* (...args: unknown[]) {
          await settle();
          yield* call(...args) as ReturnType<Store['runs']>;
        };
      }
      if (!isLate && name !== 'apply' && name !== 'addFeedback') return call;
      return async (...args: unknown[]) => {
        if (isLate) await settle();
        const result = await call(...args);
        if (!isLate || name === 'remove') settled = undefined;
        return result;
      };
    },
  });
}

/** Texts with characters that SQL, JSON, URLs or patterns treat specially. The last one ends in a lone surrogate. */
const SPECIAL: readonly string[] = [
  "it's",
  'a "quoted" text',
  'back\\slash',
  "\\'",
  '\\n',
  'line\nbreak\ttab\r\n',
  'nul\0inside',
  '{x:String}',
  '{p0:String} ?',
  '100%',
  '_',
  '[a-z]*',
  '🦜',
  'e\u0301',
  'İstanbul ΟΔΟΣ',
  '東京',
  'NULL',
  '\\N',
  '1e21',
  "'; DROP TABLE runs; --",
  '  padded  ',
  'x'.repeat(100_000),
  '__proto__',
  '{"a":1}',
  'cut \ud83e',
];

/** Returns filters that compare each kind of field with a text. */
function filtersFor(text: string): FilterNode[] {
  const kinds = ['equal', 'prefix', 'suffix', 'contains'] as const;
  const names = kinds.map((kind): FilterNode => ({ field: 'name', values: [{ kind, text }] }));
  const values = [{ kind: 'equal' as const, text }];
  const others = (['model', 'thread', 'project', 'tag', 'trace', 'run'] as const).map((field) => ({ field, values }));
  const contains = [{ kind: 'contains' as const, text }];
  return [
    ...names,
    ...others,
    { not: { field: 'tag', values: contains } },
    { field: 'error', values: [{ kind: 'contains', text: text.toLowerCase() }] },
    { field: 'meta', key: text },
    { anyRun: { field: 'meta', key: 'key', values } },
    { not: { field: 'meta', key: 'key', values: contains } },
    { field: 'feedback', key: text.slice(0, 100), values },
  ];
}

test('Filters and searches with special characters match the same runs as in memory', async () => {
  const stores = [new MemoryStore(), settling(await openStore())];
  const runs = SPECIAL.map((text, at) =>
    post(at, {
      name: text,
      tags: [text, 'all'],
      error: `Error: ${text}`,
      session_name: text,
      inputs: { text },
      extra: { metadata: { [text]: 1, key: text, thread_id: text, ls_model_name: text } },
    }),
  );
  for (const store of stores) {
    await store.apply(SCOPE, runs);
    for (const [at, text] of SPECIAL.entries()) {
      await store.addFeedback(SCOPE, feedback(at, { id: id(1_000 + at), key: text.slice(0, 100), value: text }));
    }
  }
  const found = (query: Parameters<Store['list']>[1]): Promise<string[][]> =>
    Promise.all(stores.map(async (store) => (await store.list(SCOPE, query)).items.map((run) => run.id)));
  const { range } = ranged({ startedFrom: second(0) });
  for (const text of SPECIAL.filter((one) => one.isWellFormed())) {
    const queries = [{ text }, { text: `"${text}"` }, ...filtersFor(text).map((node) => ({ conditions: [node] }))];
    await Promise.all(
      queries.map(async (query) => {
        const [expected, actual] = await found({ range, ...query });
        expect(actual, JSON.stringify(query).slice(0, 200)).toEqual(expected);
      }),
    );
  }
}, 180_000);

describe('a store in ClickHouse', () => {
  test.each(storeCases.map(({ title, run }) => [title, run] as const))('%s', async (_title, run) => {
    await run(settling(await openStore()));
  });
});

test('ClickHouse can parse the statements for a cluster, and each creates a replicated table on all servers', async () => {
  const created = statements("eu 'west'");
  expect(created.length).toBeGreaterThan(10);
  for (const statement of created) {
    const [row] = await db.rows<{ text: string }>(sql('SELECT formatQuery(?) AS text', string(statement)));
    expect(row?.text).toMatch(/^CREATE TABLE (IF NOT EXISTS )?\w+ ON CLUSTER `eu 'west'`\s/);
    expect(row?.text).toMatch(/ENGINE = Replicated\w*MergeTree/);
  }
});

/** Returns what queries return about the trace of run 1 and all runs. */
async function answers(store: Store): Promise<unknown> {
  const query = ranged({});
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

describe('two stores with the same database', () => {
  test.each([1, 2, 3, 4, 5, 6])(
    'return the same as a store in memory, whoever stores which message when (%i)',
    async (seed) => {
      const random = randomFrom(seed);
      const chance = (probability: number): boolean => random() < probability;
      const stores = [await openStore(), await openStore()];
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

  test('return the same as a store in memory after a run has left its parent and come back', async () => {
    const stores = [await openStore(), await openStore()];
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
