import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { cursorOf } from '#src/receiver/domain/cursor.ts';
import { NO_PRICES } from '#src/receiver/domain/prices.ts';
import type { ListQuery } from '#src/receiver/domain/query.ts';
import { loadEngine, type SqliteConnection } from '#src/receiver/store/sqlite/database.ts';
import { openToWrite } from '#src/receiver/store/sqlite/file.ts';
import { encodedOperation } from '#src/receiver/store/sqlite/payloads.ts';
import { SqliteReader } from '#src/receiver/store/sqlite/reader.ts';
import { SqliteWriter } from '#src/receiver/store/sqlite/writer.ts';
import { DEFAULT_SCOPE, parsedQuery } from '#src/receiver.ts';
import { storePath } from './local-store.ts';

const ID = '00000000-0000-7000-8000-000000000001';

async function make() {
  const { connection, lock } = openToWrite(await loadEngine(), storePath());
  onTestFinished(() => {
    connection.close();
    lock.release();
  });
  const fields = { name: 'a', run_type: 'llm', start_time: '2026-11-20T07:00:00.000000Z' };
  new SqliteWriter(connection, NO_PRICES, Date.now).apply('default', [
    encodedOperation({ kind: 'post', id: ID, fields, attachments: [] }),
  ]);
  return { connection, reader: new SqliteReader(connection, () => undefined) };
}

/** Returns the query plans of the statements that `ask` executes. */
function plansOf(connection: SqliteConnection, ask: () => unknown): string[] {
  const asked = new Set<string>();
  for (const method of ['all', 'one', 'each'] as const) {
    const original = connection[method].bind(connection);
    vi.spyOn(connection, method).mockImplementation(((sql: string, ...values: never[]) => {
      asked.add(sql);
      return original(sql, ...values);
    }) as never);
  }
  ask();
  vi.restoreAllMocks();
  // Attachments of a run and feedback on a trace are sorted after reading.
  const lists = [...asked].filter((sql) => !/FROM (attachments|feedback)/.test(sql));
  return lists.flatMap((sql) =>
    connection.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => detail),
  );
}

const page = (query: ListQuery) => parsedQuery({ cursor: cursorOf({ value: 1, n: 1 }), ...query });

test('a query that compares metadata or errors ends after its time, and no other query does', async () => {
  const id = ID.replace(/1$/, '2');
  const fields = {
    name: 'b',
    run_type: 'llm',
    start_time: '2026-11-20T07:00:01.000000Z',
    error: 'lost',
    extra: { metadata: { plan: 'pro' } },
  };
  const readerWith = async (queryMaxMs?: number): Promise<SqliteReader> => {
    const { connection } = await make();
    new SqliteWriter(connection, NO_PRICES, Date.now).apply('default', [
      encodedOperation({ kind: 'post', id, fields, attachments: [] }),
    ]);
    return new SqliteReader(connection, () => undefined, queryMaxMs);
  };
  const [reader, unlimited] = [await readerWith(0), await readerWith()];
  const list = (from: SqliteReader, filter: string) =>
    from.limited(() => from.list(DEFAULT_SCOPE, parsedQuery({ filter })).items.map((run) => run.id));
  for (const filter of ['meta.plan:*pr*', 'error:lost', 'meta.plan=pro OR meta.plan:*x* OR error:*x*']) {
    await expect(list(reader, filter)).rejects.toMatchObject({ reason: 'busy' });
    expect(await list(unlimited, filter)).toEqual([id]);
  }
  expect(await list(reader, 'name:b')).toEqual([id]);
});

describe('a query', () => {
  test.each<[string, (reader: SqliteReader) => unknown, string | undefined]>([
    ['a list of runs', (reader) => reader.list(DEFAULT_SCOPE, page({})), 'runs_by_start'],
    [
      'a list of runs, oldest first',
      (reader) => reader.list(DEFAULT_SCOPE, page({ order: 'ascending' })),
      'runs_by_start',
    ],
    ['the runs of a project', (reader) => reader.list(DEFAULT_SCOPE, page({ project: 'a' })), 'runs_by_project'],
    ['the runs of a name', (reader) => reader.list(DEFAULT_SCOPE, page({ filter: 'name:a' })), 'runs_by_name'],
    ['the runs of a model', (reader) => reader.list(DEFAULT_SCOPE, page({ filter: 'model:a' })), 'runs_by_model'],
    [
      'the runs that failed',
      (reader) => reader.list(DEFAULT_SCOPE, page({ filter: 'status:error' })),
      'runs_by_failure',
    ],
    [
      'the runs of a thread',
      (reader) => reader.list(DEFAULT_SCOPE, page({ filter: 'meta.thread_id=a' })),
      'runs_by_thread',
    ],
    ['the runs of a user', (reader) => reader.list(DEFAULT_SCOPE, page({ filter: 'meta.user_id=a' })), 'runs_by_user'],
    ['a list of traces', (reader) => reader.traces(DEFAULT_SCOPE, page({})), 'roots_by_start'],
    ['the traces of a project', (reader) => reader.traces(DEFAULT_SCOPE, page({ project: 'a' })), 'roots_by_project'],
    ['the traces of a name', (reader) => reader.traces(DEFAULT_SCOPE, page({ filter: 'name:a' })), 'roots_by_name'],
    ['the outline of a trace', (reader) => reader.outline(DEFAULT_SCOPE, ID), 'runs_by_trace'],
    ['a trace', (reader) => reader.runKeys(DEFAULT_SCOPE, parsedQuery({ traceId: ID })), 'runs_by_trace'],
    ['a run', (reader) => reader.details(DEFAULT_SCOPE, ID), undefined],
    ['a payload', (reader) => reader.payload(DEFAULT_SCOPE, ID, 'inputs'), undefined],
    ['changes', (reader) => reader.changes(DEFAULT_SCOPE, '0', 10), undefined],
    ['the revocation of a token', (reader) => reader.tokensRevokedMs(DEFAULT_SCOPE, [ID]), undefined],
  ])('for %s reads no more rows than it returns', async (_, ask, index) => {
    const { connection, reader } = await make();
    const plans = plansOf(connection, () => ask(reader));
    expect(plans.length).toBeGreaterThan(0);
    if (index !== undefined) expect(plans.join('\n')).toContain(`INDEX ${index}`);
    if (index !== 'runs_by_start') expect(plans.join('\n')).not.toContain('INDEX runs_by_start');
    // A scan by an index goes in its order, and ends when the page is full.
    const bad = plans.filter((plan) => /^SCAN (?!.* USING (COVERING )?INDEX)|TEMP B-TREE FOR ORDER BY/.test(plan));
    expect(bad).toEqual([]);
  });
});
