// The store in ClickHouse, with a ClickHouse that runs inside another process (see clickhouse/shim.mjs).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { isObject } from '../../src/base/options.ts';
import type { FilterNode } from '../../src/receiver/query/filter.ts';
import { ClickHouseStore } from '../../src/receiver/store/clickhouse/clickhouse-store.ts';
import { ClickHouse, sql } from '../../src/receiver/store/clickhouse/connection.ts';
import { migrate } from '../../src/receiver/store/clickhouse/schema.ts';
import { feedback, id, patch, post, SCOPE, second, simple } from '../../src/receiver/store/conformance/support.ts';
import { MemoryStore } from '../../src/receiver/store/memory-store.ts';
import { ranged } from '../../src/receiver/store/run-filter.ts';
import type { RunOperation, Store } from '../../src/receiver.ts';
import { storeCases } from '../../src/store-testing.ts';
import { startNode } from '../support/program.ts';

const shim = fileURLToPath(new URL('./clickhouse/shim.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'runspan-clickhouse-'));
const server = startNode([shim, folder], {}, undefined, 900_000);

let url: string;
let db: ClickHouse;
/** Number of the test. Each test has its own tenants, because creating or emptying tables takes longer than a test. */
let testNumber = 0;

beforeAll(async () => {
  [url] = await server.printed(/http:\S+/);
  db = await ClickHouse.connect(url);
  await migrate(db);
});

afterAll(async () => {
  await db.close();
  server.child.stdin?.end();
  await server.ended;
  rmSync(folder, { recursive: true, force: true });
});

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
    for (const query of queries) {
      const [expected, actual] = await found({ range, ...query });
      expect(actual, JSON.stringify(query).slice(0, 200)).toEqual(expected);
    }
  }
}, 180_000);

describe('a store in ClickHouse', () => {
  test.each(storeCases.map(({ title, run }) => [title, run] as const))('%s', async (_title, run) => {
    await run(settling(await openStore()));
  });
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
  test('return the same as a store in memory, if one stores posts and the other patches, children first', async () => {
    const [firstStore, secondStore] = [await openStore(), await openStore()];
    const memory = new MemoryStore();
    const apply = async (store: Store, operation: RunOperation): Promise<void> => {
      await store.apply(SCOPE, [structuredClone(operation)]);
      await memory.apply(SCOPE, [operation]);
    };
    for (const number of [4, 3, 2, 1]) {
      const parent = number === 1 ? {} : { parent: number - 1 };
      await apply(firstStore, simple(number, { ...parent, inputs: { number } }));
      await apply(
        secondStore,
        patch(number, { end_time: second(number), outputs: { number }, tags: [`tag ${number}`] }),
      );
    }
    // A store finds the runs that the other has moved.
    for (const store of [firstStore, secondStore, firstStore]) await store.settled();
    const expected = await answers(memory);
    expect(await answers(firstStore)).toEqual(expected);
    expect(await answers(secondStore)).toEqual(expected);
  });

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
