import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { ListQuery } from '../../src/receiver/query/query.ts';
import { filterOf } from '../../src/receiver/store/run-filter.ts';
import type { SqliteConnection } from '../../src/receiver/store/sqlite-connection.ts';
import { loadEngine } from '../../src/receiver/store/sqlite-engine.ts';
import { openToWrite } from '../../src/receiver/store/sqlite-file.ts';
import { SqliteReader } from '../../src/receiver/store/sqlite-reader.ts';
import { SqliteWriter } from '../../src/receiver/store/sqlite-writer.ts';
import { toldRun } from '../../src/receiver/store/told-run.ts';
import { storePath } from './local-store.ts';

const ID = '00000000-0000-7000-8000-000000000001';

async function make() {
  const { connection, lock } = openToWrite(await loadEngine(), storePath());
  onTestFinished(() => {
    connection.close();
    lock.release();
  });
  const fields = { name: 'a', run_type: 'llm', start_time: '2026-11-20T07:00:00.000000Z' };
  new SqliteWriter(connection, {}, Date.now).apply([toldRun({ kind: 'post', id: ID, fields, attachments: [] })]);
  return { connection, reader: new SqliteReader(connection, () => undefined) };
}

/** How SQLite goes about what the reader asks it. */
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
  // What is attached to one run, or said of one trace, is sorted when it has been read.
  const lists = [...asked].filter((sql) => !/FROM (attachments|feedback)/.test(sql));
  return lists.flatMap((sql) =>
    connection.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => detail),
  );
}

const page = ({ sort = 'start_time', order = 'descending', limit = 50, ...query }: ListQuery) => ({
  filter: filterOf(query),
  sort,
  order,
  limit,
  after: { value: 1, id: ID },
});

describe('what a reader asks', () => {
  test.each<[string, (reader: SqliteReader) => unknown, string | undefined]>([
    ['a list of runs', (reader) => reader.list(page({})), 'runs_by_start'],
    ['a list of runs, oldest first', (reader) => reader.list(page({ order: 'ascending' })), 'runs_by_start'],
    ['the runs of a project', (reader) => reader.list(page({ project: 'a' })), 'runs_by_project'],
    ['the runs of a name', (reader) => reader.list(page({ name: 'a' })), 'runs_by_name'],
    ['the runs of a model', (reader) => reader.list(page({ model: 'a' })), 'runs_by_model'],
    ['the runs that failed', (reader) => reader.list(page({ status: 'error' })), 'runs_by_failure'],
    ['a list of traces', (reader) => reader.traces(page({})), 'roots_by_start'],
    ['the traces of a project', (reader) => reader.traces(page({ project: 'a' })), 'roots_by_project'],
    ['the traces of a name', (reader) => reader.traces(page({ name: 'a' })), 'roots_by_name'],
    ['the outline of a trace', (reader) => reader.outline(ID), 'runs_by_trace'],
    ['a trace', (reader) => reader.runs(filterOf({ traceId: ID }), undefined), 'runs_by_trace'],
    ['a run', (reader) => reader.details(ID), undefined],
    ['a payload', (reader) => reader.payload(ID, 'inputs'), undefined],
    ['changes', (reader) => reader.changes(0, 10), undefined],
    ['the tokens of a run', (reader) => reader.tokens(ID), undefined],
  ])('for %s looks at no more than is shown', async (_, ask, index) => {
    const { connection, reader } = await make();
    const plans = plansOf(connection, () => ask(reader));
    expect(plans.length).toBeGreaterThan(0);
    if (index !== undefined) expect(plans.join('\n')).toContain(`INDEX ${index}`);
    // A scan by an index goes in its order, and ends when the page is full.
    const bad = plans.filter((plan) => /^SCAN (?!.* USING (COVERING )?INDEX)|TEMP B-TREE FOR ORDER BY/.test(plan));
    expect(bad).toEqual([]);
  });
});
