import { expect, test } from 'vitest';
import { NO_PRICES } from '#src/receiver/domain/cost/prices.ts';
import { parseSearch, type Search } from '#src/receiver/domain/query/search-words.ts';
import { encodedOperation } from '#src/receiver/store/sqlite/payloads.ts';
import { SqliteIndex, SqliteSearch } from '#src/receiver/store/sqlite/reads/search.ts';
import { SqliteWriter } from '#src/receiver/store/sqlite/writer.ts';
import { id } from './conformance/support.ts';
import { openConnection } from './local-store.ts';

async function make(texts: readonly string[], rareMax: number) {
  const connection = await openConnection();
  const operations = texts.map((text, index) =>
    encodedOperation({ kind: 'post', id: id(index), fields: { inputs: { text } }, attachments: [] }),
  );
  new SqliteWriter(connection, NO_PRICES, Date.now).apply('default', operations);
  const index = new SqliteIndex(connection);
  while (index.waiting > 0) index.step(1_000);
  const search = new SqliteSearch(connection, () => {}, rareMax);
  return (text: string): number[] => {
    const { sql, params } = search.condition(parseSearch(text) as Search);
    return connection.all<{ n: number }>(`SELECT n FROM runs WHERE ${sql} ORDER BY n`, ...params).map(({ n }) => n - 1);
  };
}

test.each([9, 10, 11])(
  'ten runs with a word, and the runs with a phrase, are found if up to %i runs are rare',
  async (rareMax) => {
    const texts = Array.from({ length: 10 }, (_, index) => (index % 5 === 0 ? 'red house' : 'house red'));
    const found = await make(texts, rareMax);
    expect(found('house')).toHaveLength(10);
    expect(found('"red house"')).toEqual([0, 5]);
  },
);
