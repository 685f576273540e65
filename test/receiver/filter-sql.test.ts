// The SQL of each kind of condition in each dialect. `npx vitest run test/receiver/filter-sql.test.ts -u` writes the file.
import { expect, test } from 'vitest';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import { all, type Sql } from '#src/receiver/filter/sql.ts';
import { rowCondition } from '#src/receiver/store/clickhouse/reads/conditions.ts';
import { defineFilterFunctions, SqlFilter } from '#src/receiver/store/sqlite/reads/conditions.ts';
import { SqliteSearch } from '#src/receiver/store/sqlite/reads/search.ts';
import { openConnection } from './local-store.ts';

const TRACE = '0193b3a0-0000-7000-8000-000000000001';

const FILTERS = [
  ...['name:a', 'name:a,b', 'name:a*,*b,*c*', 'type:llm model:x', 'status:error', 'status:success', 'project:shop'],
  ...['project:shop,lab', `trace:${TRACE}`, `run:${TRACE}`, 'thread:t user:ada', 'tag:a,b*', 'error:money'],
  ...['meta.plan', 'meta.plan:pro,b*', 'tag:a meta.plan:pro', 'meta.user_id=ada', 'feedback.liked'],
  ...['feedback.liked>=0.5', 'feedback.topic:refund', 'note:a,b*', 'latency:1s..2s'],
  ...['tokens>10 input_tokens<5 output_tokens=1 cost>0.5', 'cached<50%', 'is:root'],
  ...['since:2026-11-20T07:00:00Z before:2026-11-20T08:00:00Z', 'name:a OR -(type:llm tag:x)'],
  'any(name:a tokens>1)',
];

function shown({ sql, params }: Sql<unknown>): string {
  const texts = params.map((param) =>
    param instanceof Uint8Array ? Buffer.from(param).toString('hex') : JSON.stringify(param),
  );
  return `${sql}\n    ${texts.join(' ')}`;
}

test('each condition is translated to the SQL of each database', async () => {
  const connection = await openConnection();
  defineFilterFunctions(connection, () => {});
  const search = new SqliteSearch(connection, () => {});
  const lines = FILTERS.flatMap((text) => {
    const { filter } = parsedQuery({ filter: text });
    const sqlite = all(new SqlFilter(connection, search, 1, filter).conditions('traces'));
    // SQLite accepts the statement, also if the database is empty.
    expect(
      connection.all(
        `SELECT runs.n FROM runs JOIN traces ON traces.n = runs.trace WHERE ${sqlite.sql}`,
        ...sqlite.params,
      ),
    ).toEqual([]);
    return [`${text}`, `  SQLite: ${shown(sqlite)}`, `  ClickHouse: ${shown(rowCondition('t', filter, 'trace'))}`, ''];
  });
  await expect(lines.join('\n')).toMatchFileSnapshot('filter-sql.txt');
});
