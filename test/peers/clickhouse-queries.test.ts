// Queries of the store in ClickHouse, with a ClickHouse that runs inside another process (see clickhouse/shim.mjs).
import { afterAll, describe, expect, test } from 'vitest';
import { parseSearch } from '#src/receiver/domain/search-words.ts';
import type { FilterNode } from '#src/receiver/filter/filter.ts';
import { ALL_RUNS, parsedQuery } from '#src/receiver/filter/run-filter.ts';
import { MemoryStore } from '#src/receiver/store/memory-store.ts';
import type { Store } from '#src/receiver.ts';
import { queryCases } from '../receiver/conformance/query-cases.ts';
import { feedback, id, post, SCOPE, second } from '../receiver/conformance/support.ts';
import { startDatabase } from './clickhouse/database.ts';
import { openStore, settling } from './clickhouse/stores.ts';

const { url, stop } = await startDatabase();
afterAll(stop);

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
  const stores = [new MemoryStore(), settling(await openStore(url))];
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
  const { range } = parsedQuery({ filter: `since:${second(0)}` }).filter;
  for (const text of SPECIAL.filter((one) => one.isWellFormed())) {
    const words = [text, `"${text}"`].map((one) => ({ search: parseSearch(one) }));
    const queries = [...words, ...filtersFor(text).map((node) => ({ conditions: [node] }))];
    await Promise.all(
      queries.map(async (query) => {
        const [expected, actual] = await found({ filter: { ...ALL_RUNS, range, ...query } });
        expect(actual, JSON.stringify(query).slice(0, 200)).toEqual(expected);
      }),
    );
  }
}, 180_000);

describe('a store in ClickHouse', () => {
  test.each(queryCases.map(({ title, run }) => [title, run] as const))('%s', async (_title, run) => {
    await run(settling(await openStore(url)));
  });
});
