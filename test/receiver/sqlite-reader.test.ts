import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { NO_PRICES } from '#src/receiver/domain/cost/prices.ts';
import { cursorOf } from '#src/receiver/domain/query/cursor.ts';
import type { ListQuery } from '#src/receiver/domain/query/query.ts';
import { ALL_TIMES } from '#src/receiver/filter/run-filter.ts';
import { loadEngine, type SqliteConnection } from '#src/receiver/store/sqlite/file/database.ts';
import { openToRead } from '#src/receiver/store/sqlite/file/file.ts';
import { encodedOperation } from '#src/receiver/store/sqlite/payloads.ts';
import { SqliteReader } from '#src/receiver/store/sqlite/reads/reader.ts';
import { SqliteWriter } from '#src/receiver/store/sqlite/writer.ts';
import { DEFAULT_SCOPE, parsedQuery } from '#src/receiver.ts';
import { id, simple } from './conformance/support.ts';
import { openConnection, storePath } from './local-store.ts';

const ID = id(1);
const RECENT = `run:${ID},${id(2)} since:2026-11-20T06:00:00Z`;

async function createFile() {
  const path = storePath(afterAll);
  const connection = await openConnection(path, afterAll);
  new SqliteWriter(connection, NO_PRICES, Date.now).apply('default', [encodedOperation(simple(1))]);
  return { path, connection };
}

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

const few = await createFile();
const many = await createFile();

describe('a query of many runs', () => {
  const RUNS = 100;
  const filter = (text: string) => parsedQuery({ filter: text });
  const queries: Readonly<Record<string, (reader: SqliteReader) => unknown>> = {
    list: (reader) => reader.list(DEFAULT_SCOPE, filter('name:b')),
    traces: (reader) => reader.traces(DEFAULT_SCOPE, filter('latency>1s OR name:b')),
    threads: (reader) => reader.threads(DEFAULT_SCOPE, filter('error:x OR any(name:c)')),
    statistics: (reader) => reader.statistics(DEFAULT_SCOPE, parsedQuery({ groupBy: 'meta.plan' })),
    projects: (reader) => reader.projects(DEFAULT_SCOPE, ALL_TIMES),
    suggestions: (reader) => reader.suggestions(DEFAULT_SCOPE, { field: 'tag' }),
    outline: (reader) => reader.outline(DEFAULT_SCOPE, ID),
    runKeys: (reader) => reader.runKeys(DEFAULT_SCOPE, filter('meta.plan:*pr*')),
    runTexts: (reader) => reader.runTexts(DEFAULT_SCOPE, [[1, undefined]]),
    removable: (reader) => reader.removable(DEFAULT_SCOPE, { kind: 'trace', id: ID }),
    search: (reader) => reader.list(DEFAULT_SCOPE, filter('"pro plan"')),
  };

  beforeAll(() => {
    const extra = { metadata: { plan: 'pro plan', thread_id: 't' } };
    const posts = Array.from({ length: 2 * RUNS }, (_, at) => {
      // The first half are runs of one trace, and the others are roots.
      return encodedOperation(simple(at + 2, { name: 'b', extra, trace_id: at < RUNS ? ID : id(at + 2) }));
    });
    new SqliteWriter(many.connection, NO_PRICES, Date.now).apply('default', posts);
  });

  /** Opens the file with many runs, and returns a function that asks one of the queries. */
  async function openMany(ended?: Int32Array) {
    const connection = openToRead(await loadEngine(), many.path);
    onTestFinished(() => connection.close());
    const reader = new SqliteReader(connection, () => undefined, ended);
    return (name: string) => reader.limited(name, () => queries[name]?.(reader));
  }

  test.each(Object.keys(queries))('(%s) ends when its client leaves', async (name) => {
    const ended = new Int32Array(1);
    const ask = await openMany(ended);
    await ask(name);
    ended[0] = 1;
    await expect(ask(name)).rejects.toMatchObject({ reason: 'unavailable' });
    ended[0] = 0;
    await ask(name);
  });

  test.each(Object.keys(queries))(
    '(%s) ends after 10 s, and after 100 ms in the thread for quick queries',
    async (name) => {
      const [slow, quick] = [await openMany(new Int32Array(1)), await openMany()];
      const now = vi.spyOn(performance, 'now');
      const outcome = async (ms: number, ask: typeof slow) => {
        // The first reading is the start of the query.
        now.mockImplementationOnce(() => 0).mockImplementation(() => ms);
        return ask(name).then(
          () => 'done',
          ({ reason }) => reason,
        );
      };
      const isLimited = !['runKeys', 'removable', 'outline'].includes(name);
      expect([await outcome(99, quick), await outcome(100, quick)]).toEqual(['done', 'busy']);
      expect([await outcome(9_999, slow), await outcome(10_000, slow)]).toEqual(['done', isLimited ? 'busy' : 'done']);
    },
  );

  test.each([
    ['10 s of CPU time', true, 10_000],
    ['60 s, if Node cannot tell the CPU time of a thread', false, 60_000],
  ])('for the outline of a trace ends after %s', async (_, hasCpuTime, maxMs) => {
    const ask = await openMany(new Int32Array(1));
    const clock = vi.fn(() => 0);
    const { threadCpuUsage } = process as { threadCpuUsage?: unknown };
    onTestFinished(() => void Object.assign(process, { threadCpuUsage }));
    const ofThread = hasCpuTime ? () => ({ user: clock() * 1_000, system: 0 }) : undefined;
    Object.assign(process, { threadCpuUsage: ofThread });
    if (!hasCpuTime) vi.spyOn(performance, 'now').mockImplementation(clock);
    const outcome = (ms: number) => {
      clock.mockReturnValueOnce(0).mockReturnValue(ms);
      return ask('outline').catch(({ message }) => message);
    };
    expect(await outcome(maxMs - 1)).toHaveLength(101);
    expect(await outcome(maxMs)).toBe('The trace takes too long to read: it has too many runs');
  });
});

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
  ['the runs that failed', (reader) => reader.list(DEFAULT_SCOPE, page({ filter: 'status:error' })), 'runs_by_failure'],
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
  ['recent runs with some ids', (reader) => reader.runKeys(DEFAULT_SCOPE, parsedQuery({ filter: RECENT })), undefined],
  ['a run', (reader) => reader.details(DEFAULT_SCOPE, ID), undefined],
  ['a payload', (reader) => reader.payload(DEFAULT_SCOPE, ID, 'inputs'), undefined],
  ['the revocation of a token', (reader) => reader.tokensRevokedMs(DEFAULT_SCOPE, [ID]), undefined],
])('a query for %s reads no more rows than it returns', (_, ask, index) => {
  const reader = new SqliteReader(few.connection, () => undefined);
  const plans = plansOf(few.connection, () => ask(reader));
  expect(plans.length).toBeGreaterThan(0);
  if (index !== undefined) expect(plans.join('\n')).toContain(`INDEX ${index}`);
  if (index !== 'runs_by_start') expect(plans.join('\n')).not.toContain('INDEX runs_by_start');
  // A scan by an index goes in its order, and ends when the page is full.
  const bad = plans.filter((plan) =>
    /^SCAN (?!.* USING (COVERING )?INDEX|json_each)|TEMP B-TREE FOR ORDER BY/.test(plan),
  );
  expect(bad).toEqual([]);
});

test('a query for runs with several tags or metadata values begins with the runs that have the words of all', () => {
  const reader = new SqliteReader(few.connection, () => undefined);
  const ask = () => reader.list(DEFAULT_SCOPE, parsedQuery({ filter: 'tag:a meta.plan:pro' }));
  const plans = plansOf(few.connection, ask).join('\n');
  expect(plans).toContain('SCAN json_each');
  expect(plans).not.toContain('INDEX runs_by_start');
});
