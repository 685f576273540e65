import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { NO_PRICES } from '#src/receiver/domain/cost/prices.ts';
import { SqliteCommits } from '#src/receiver/store/sqlite/commits.ts';
import { Counters } from '#src/receiver/store/sqlite/counters.ts';
import type { SqliteConnection } from '#src/receiver/store/sqlite/file/database.ts';
import { ALL_FILLED } from '#src/receiver/store/sqlite/file/schema.ts';
import { encodedOperation } from '#src/receiver/store/sqlite/payloads.ts';
import { SqliteReader } from '#src/receiver/store/sqlite/reads/reader.ts';
import {
  DEFAULT_SCOPE,
  type GroupKey,
  parsedQuery,
  type RunOperation,
  type Statistics,
  type StatisticsQuery,
} from '#src/receiver.ts';
import { isoTimestamp } from '#src/run/time.ts';
import { cases } from '../support/campaign.ts';
import { id, simple } from './conformance/support.ts';
import { LIMITS, openConnection } from './local-store.ts';

const FIRST_MS = Date.UTC(2026, 10, 20);
const DAY_MS = 86_400_000;

async function open(nowMs: () => number, maxAgeMs = DAY_MS) {
  const connection = await openConnection();
  const limits = { ...LIMITS, maxAgeMs, prices: NO_PRICES };
  const commits = new SqliteCommits(connection, limits, nowMs, () => {}, nowMs);
  onTestFinished(() => commits.close());
  const reader = new SqliteReader(connection, () => undefined);
  const statistics = (query: StatisticsQuery) => reader.statistics(DEFAULT_SCOPE, parsedQuery(query));
  return { commits, connection, statistics };
}

const tokensOf = (total_tokens: number) => ({
  input_tokens: total_tokens,
  total_tokens,
  input_token_details: { cache_read: Math.floor(total_tokens / 2) },
});

/** A message of one of 30 runs within three days. All runs have `scanned` in their metadata. */
const anOperation: fc.Arbitrary<RunOperation> = fc
  .record({
    kind: fc.constantFrom('post' as const, 'patch' as const),
    index: fc.nat(29),
    parent: fc.nat(29),
    startMs: fc.oneof(fc.nat(3 * DAY_MS), fc.nat(100_000)),
    latencyMs: fc.option(fc.nat(100_000), { nil: undefined }),
    name: fc.constantFrom('a', 'b'),
    run_type: fc.constantFrom('llm', 'chain'),
    tokens: fc.option(fc.nat(100), { nil: undefined }),
    isError: fc.boolean(),
    user_id: fc.constantFrom('ada', 'bob', null),
    thread_id: fc.constantFrom('t1', null),
    plan: fc.constantFrom('pro', 7, undefined),
    tags: fc.subarray(['a', 'b']),
  })
  .map(({ kind, index, parent, startMs, latencyMs, name, run_type, tokens, isError, tags, ...others }) => {
    const time = (ms: number) => isoTimestamp((FIRST_MS + ms) * 1_000);
    const fields = {
      name,
      run_type,
      start_time: time(startMs),
      ...(parent < index ? { parent_run_id: id(parent) } : {}),
      ...(latencyMs === undefined ? {} : { end_time: time(startMs + latencyMs) }),
      ...(tokens === undefined
        ? {}
        : { outputs: { usage_metadata: { ...tokensOf(tokens), ...(tokens % 3 && { total_cost: tokens / 8 }) } } }),
      ...(isError ? { error: 'Error: no' } : {}),
      tags,
      extra: { metadata: { scanned: 'yes', ...others, ls_model_name: run_type === 'llm' ? 'gpt' : 7 } },
    };
    return { kind, id: id(index), fields, attachments: [] };
  });

const QUERIES: readonly StatisticsQuery[] = [
  {},
  { buckets: 7, groupBy: 'model', series: 2, timeZone: 'Asia/Kathmandu' },
  { buckets: 12, groupBy: 'user', series: 1, rankBy: 'cost', timeZone: 'Europe/Berlin' },
  { groupBy: 'user', project: 'default', filter: `since:${isoTimestamp((FIRST_MS + 50_123) * 1_000)}` },
  { groupBy: 'user', filter: 'type:llm' },
  { buckets: 12, groupBy: 'tag', series: 2, rankBy: 'errors', timeZone: 'Asia/Kathmandu' },
  { filter: 'is:root OR name:b', groupBy: 'run_type' },
  { filter: '-is:root model:*' },
  { groupBy: 'status', filter: 'name:a' },
  { filter: `type:llm since:${isoTimestamp((FIRST_MS + 50_123) * 1_000)}` },
  {
    buckets: 48,
    filter: `status:error,pending since:${isoTimestamp((FIRST_MS + 3_600_001) * 1_000)} before:${isoTimestamp((FIRST_MS + 2 * DAY_MS + 61_001) * 1_000)}`,
  },
];

/** Keys by which runs are counted, and values of them. */
const VALUES: readonly (readonly [GroupKey, readonly string[]])[] = [
  ['user', ['ada', 'bob']],
  ['tag', ['a', 'b']],
  ['thread', ['t1']],
  ['meta.plan', ['pro', '7']],
];

/** Expects that the groups of each key equal the totals of filters that select them. */
function compareGroups(statistics: (query: StatisticsQuery) => Statistics): void {
  for (const [groupBy, values] of VALUES) {
    const all = values.map((value) => ({ group: value, ...statistics({ filter: `${groupBy}:${value}` }).total }));
    const groups = Object.fromEntries(statistics({ groupBy }).groups.map((one) => [one.group, one]));
    expect(groups).toEqual(Object.fromEntries(all.filter(({ runs }) => runs > 0).map((one) => [one.group, one])));
  }
}

const filled = (connection: SqliteConnection) => expect.poll(() => connection.number(UNFILLED)).toBe(0);
const UNFILLED = `SELECT count(*) FROM counted_keys WHERE filled < ${ALL_FILLED} OR key IS NULL`;

test('statistics from counters equal a scan of the runs, after late patches, duplicates and deletions', async () => {
  const aCall = fc.array(anOperation, { minLength: 1, maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(fc.array(aCall, { minLength: 1, maxLength: 6 }), fc.nat(5), async (calls, oldCalls) => {
      let nowMs = FIRST_MS;
      const { commits, connection, statistics } = await open(() => nowMs);
      const compare = () => {
        for (const query of QUERIES) {
          expect(statistics(query)).toEqual(statistics({ ...query, filter: `${query.filter ?? ''} meta.scanned=yes` }));
        }
        compareGroups(statistics);
      };
      const apply = (call: readonly RunOperation[]) => commits.apply(DEFAULT_SCOPE, call.map(encodedOperation));
      for (const call of calls.slice(0, oldCalls)) await apply(call);
      for (const key of ['thread', 'meta.plan'] as const) await commits.countBy(DEFAULT_SCOPE, key);
      await Promise.all(calls.map(apply));
      compare();
      await filled(connection);
      compare();
      // Deletes the traces that have not changed since.
      nowMs += DAY_MS;
      await apply(calls[0] ?? []);
      nowMs += 1;
      await commits.checkAge();
      compare();
      nowMs += 2 * DAY_MS;
      await commits.checkAge();
      await expect.poll(() => connection.number('SELECT count(*) FROM runs')).toBe(0);
      for (const table of ['counters', 'value_counters']) {
        expect(connection.number(`SELECT count(*) FROM ${table}`)).toBe(0);
      }
    }),
    { numRuns: cases(25) },
  );
});

test('runs that change while a key is being filled count once, also if their key was dropped before', async () => {
  let nowMs = FIRST_MS;
  const { commits, connection, statistics } = await open(() => nowMs, 90 * DAY_MS);
  const run = (kind: RunOperation['kind'], index: number, plan: string) => {
    const extra = { metadata: { plan, thread_id: 't1', user_id: 'ada' } };
    return { ...simple(index, { start_time: isoTimestamp(FIRST_MS * 1_000), tags: ['a'], extra }), kind };
  };
  const apply = (...runs: RunOperation[]) => commits.apply(DEFAULT_SCOPE, runs.map(encodedOperation));
  const count = async () => {
    for (const key of ['thread', 'meta.plan'] as const) await commits.countBy(DEFAULT_SCOPE, key);
  };
  await apply(...Array.from({ length: 250 }, (_, index) => run('post', index, 'pro')));
  await count();
  await filled(connection);
  compareGroups(statistics);
  nowMs += 31 * DAY_MS;
  await commits.checkAge();
  await expect.poll(() => connection.number('SELECT count(*) FROM counted_keys')).toBe(2);
  await apply(run('patch', 1, '7'), run('post', 300, 'pro'));
  await count();
  const counters = new Counters(connection);
  counters.keys.step(0, counters.fill);
  expect(connection.number('SELECT max(filled) FROM counted_keys WHERE tenant > 0')).toBe(100);
  await apply(run('patch', 2, '7'), run('patch', 200, '7'), run('post', 301, '7'));
  await commits.remove(DEFAULT_SCOPE, { kind: 'trace', id: id(3) });
  await commits.remove(DEFAULT_SCOPE, { kind: 'trace', id: id(203) });
  compareGroups(statistics);
  await filled(connection);
  compareGroups(statistics);
  const plans = statistics({ groupBy: 'meta.plan' }).groups.map(({ group, runs }) => `${group} ${runs}`);
  expect(plans).toEqual(['pro 246', '7 4']);
});

test('the time buckets of many runs are at least a minute long', async () => {
  const { commits, statistics } = await open(() => FIRST_MS);
  // 21,000 runs from the first second of a minute to the third minute after it, 10 ms apart.
  const post = (index: number): RunOperation =>
    simple(index, { start_time: isoTimestamp((FIRST_MS + 1_000 + index * 10) * 1_000) });
  for (let first = 0; first < 21_000; first += 3_000) {
    const operations = Array.from({ length: 3_000 }, (_, at) => encodedOperation(post(first + at)));
    await commits.apply(DEFAULT_SCOPE, operations);
  }
  const countsOf = (query: StatisticsQuery) => statistics(query).buckets.map(({ runs }) => runs);
  expect(countsOf({})).toEqual([5_900, 6_000, 6_000, 3_100]);
  const startedBefore = isoTimestamp((FIRST_MS + 60_000) * 1_000);
  expect(countsOf({ buckets: 6, filter: `before:${startedBefore}` })).toEqual([900, 1_000, 1_000, 1_000, 1_000, 1_000]);
});

test('percentiles are right when the latencies of thousands of runs change', async () => {
  const { commits, connection, statistics } = await open(() => FIRST_MS);
  const message = (kind: RunOperation['kind'], index: number, latencyMs: number) => {
    const [start_time, end_time] = [isoTimestamp(FIRST_MS * 1_000), isoTimestamp((FIRST_MS + latencyMs) * 1_000)];
    return encodedOperation({ ...simple(index, { start_time, end_time, name: 'a' }), kind });
  };
  const apply = async (kind: RunOperation['kind'], runs: number, latencyMs: number) => {
    const operations = Array.from({ length: runs }, (_, index) => message(kind, index, latencyMs));
    for (let first = 0; first < runs; first += 300) {
      await commits.apply(DEFAULT_SCOPE, operations.slice(first, first + 300));
    }
  };
  await apply('post', 3_000, 8_000);
  await apply('patch', 2_700, 1_000);
  const { p90 = 0, p95 = 0 } = statistics({}).total.latency_ms ?? {};
  // Latencies are accurate to 1 %.
  expect([Math.round(p90 / 20), Math.round(p95 / 160)]).toEqual([50, 50]);
  expect(connection.number('SELECT max(length(latencies)) FROM counters')).toBeLessThanOrEqual(2_048);
});

test('a large trace is deleted in several transactions, and its runs arrive again as new ones', async () => {
  let nowMs = FIRST_MS;
  const { commits, connection, statistics } = await open(() => nowMs);
  const post = (index: number): RunOperation =>
    simple(index, { start_time: isoTimestamp(FIRST_MS * 1_000), trace_id: id(0), tags: ['a'] });
  const posts = Array.from({ length: 5_000 }, (_, index) => encodedOperation(post(index)));
  await commits.apply(DEFAULT_SCOPE, posts);
  nowMs += 2 * DAY_MS;
  const exec = vi.spyOn(connection, 'exec');
  await commits.checkAge();
  await expect.poll(() => connection.number('SELECT count(*) FROM runs')).toBeLessThan(5_000);
  await commits.apply(DEFAULT_SCOPE, [encodedOperation(post(4_999))]);
  await expect.poll(() => connection.number('SELECT count(*) FROM runs')).toBe(1);
  expect(exec.mock.calls.flat().filter((sql) => sql === 'COMMIT').length).toBeGreaterThanOrEqual(4);
  expect(statistics({}).total.runs).toBe(1);
  expect(connection.all('SELECT count(*) AS n FROM traces')).toEqual([{ n: 1 }]);
  expect(connection.number('SELECT count(*) FROM tags')).toBe(1);
});
