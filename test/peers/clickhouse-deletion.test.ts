// What a store in ClickHouse deletes, with a ClickHouse that runs inside another process (see clickhouse/shim.mjs).
import fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { Ages } from '#src/receiver/domain/retention/ages.ts';
import { RetentionTime } from '#src/receiver/domain/retention/retention-time.ts';
import { ALL_RUNS } from '#src/receiver/filter/run-filter.ts';
import { sql } from '#src/receiver/store/clickhouse/connection.ts';
import { dayOfMs, TOMBSTONE } from '#src/receiver/store/clickhouse/messages.ts';
import { ClickHouseRetentionTime, expire } from '#src/receiver/store/clickhouse/retention.ts';
import { underivedGroups } from '#src/receiver/store/clickhouse/sweep.ts';
import { id, numberOf, patch, post, runsOf, SCOPE, simple, span } from '../receiver/conformance/support.ts';
import {
  type AgedStore,
  type Clocks,
  checkAges,
  KNOWN_PERIODS,
  MAX_AGE_MS,
  somePeriods,
  wallMs,
} from '../receiver/wrong-clocks.ts';
import { moveClock, startDatabase } from './clickhouse/database.ts';

const { db, openStore, setFaults, stop } = await startDatabase();
afterAll(stop);
const TABLES = ['messages', 'runs', 'run_ids', 'attachments', 'feedback', 'deletions'] as const;

beforeEach(async () => {
  // The time of the last sweep would be in the future after a test in which the clock is ahead.
  for (const table of [...TABLES, 'times']) await db.command(sql(`TRUNCATE TABLE ${table}`));
});

async function rowCounts(): Promise<Record<string, number>> {
  const counts = TABLES.map(async (table) => {
    const [row] = await db.rows<{ n: number }>(
      sql(`SELECT count() AS n FROM ${table}${table === 'messages' ? '' : ' FINAL'}`),
    );
    return [table, row?.n ?? 0] as const;
  });
  return Object.fromEntries(await Promise.all(counts));
}

const LARGE = { name: 'a', bytes: new Uint8Array(2_000_001).map((_, at) => at * 7), mimeType: 'a/b' };

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_001;
const MAX_AGE: Ages = { maxAgeMs: 30 * DAY_MS, projectMaxAgeMs: {} };

test('an attachment in ClickHouse is stored in chunks, and a shorter one replaces all of them', async () => {
  const store = await openStore();
  await store.apply(SCOPE, [{ ...post(1), attachments: [LARGE] }]);
  await store.settled();
  expect(await rowCounts()).toMatchObject({ attachments: 3 });
  const { bytes = new Uint8Array() } = (await store.attachment(SCOPE, id(1), 'a')) ?? {};
  expect(Buffer.compare(bytes, LARGE.bytes)).toBe(0);
  const small = { ...LARGE, bytes: new Uint8Array(5) };
  await store.apply(SCOPE, [{ ...post(1), attachments: [small] }]);
  expect(await store.attachment(SCOPE, id(1), 'a')).toEqual(small);
});

describe('a deletion in ClickHouse', () => {
  test('is refused if its tenant has half of the 100 open ones while another tenant has one', async () => {
    const remove = (tenant: string) => store.remove({ tenant }, { kind: 'user', id: 'nobody' });
    const atMs = Date.now();
    const rows = Array.from({ length: 50 }, (_, at) => {
      const deletion = { tenant: 'acme', target: { kind: 'user', id: 'nobody' }, atMs, id: id(at) };
      return { id: id(at), at_ms: atMs, is_open: 1, json: JSON.stringify(deletion) };
    });
    await db.insert('deletions', rows);
    const store = await openStore();
    await remove('bolt');
    await expect(remove('acme')).rejects.toMatchObject({ reason: 'busy', message: '51 deletions are not finished' });
    await remove('bolt');
  });

  test('deletes all rows of the deleted runs, also those that arrive later, and keeps their tombstones', async () => {
    const store = await openStore();
    await store.apply(SCOPE, [{ ...post(1), attachments: [LARGE] }, post(2, { parent: 1 }), post(3)]);
    await store.settled();
    await store.remove(SCOPE, { kind: 'trace', id: id(1) });
    await store.apply(SCOPE, [{ ...post(2, { parent: 1 }), attachments: [LARGE] }]);
    await expire(db, MAX_AGE, Date.now() + HOUR_MS);
    // One message of run 3, and the tombstone of the trace.
    await expect.poll(rowCounts).toMatchObject({ messages: 2, runs: 1, attachments: 0 });
  });

  test('covers the runs that wait for a run of the trace, and the trace that the named one joins', async () => {
    const store = await openStore();
    for (const run of [simple(1), simple(3, { parent: 2 }), simple(5, { parent: 4 })]) await store.apply(SCOPE, [run]);
    await store.settled();
    await store.apply(SCOPE, [simple(2, { parent: 1 })]);
    await store.remove(SCOPE, { kind: 'trace', id: id(1) });
    await store.apply(SCOPE, [simple(4)]);
    await store.remove(SCOPE, { kind: 'trace', id: id(5) });
    await store.apply(SCOPE, [simple(6, { parent: 4 }), simple(7, { parent: 3 })]);
    await store.settled();
    expect((await runsOf(store)).map((run) => numberOf(run.id)).sort()).toEqual([]);
  });

  test('deletes the rows of the deleted runs even if old days cannot be deleted', async () => {
    const store = await openStore();
    await store.apply(SCOPE, [post(1)]);
    await store.settled();
    await store.remove(SCOPE, { kind: 'trace', id: id(1) });
    await setFaults({ match: 'SELECT day FROM', code: 159 });
    await expect(expire(db, MAX_AGE, Date.now() + HOUR_MS)).rejects.toThrow('The query reads too much');
    await setFaults();
    await expect.poll(rowCounts).toMatchObject({ messages: 1, runs: 0 });
  });

  test('deletes traces that arrived while the clock of ClickHouse was ahead', async () => {
    const ahead = await openStore();
    const setBack = moveClock(50_000);
    await ahead.apply(SCOPE, [post(1)]);
    await ahead.settled();
    setBack();
    const store = await openStore();
    expect(await store.remove(SCOPE, { kind: 'trace', id: id(1) })).toEqual({ runs: 1, traces: 1 });
    await store.settled();
    // The message and its tombstone.
    expect(await rowCounts()).toMatchObject({ messages: 2 });
    await store.apply(SCOPE, [patch(1, { outputs: {} })]);
    await store.settled();
    expect(await runsOf(store)).toEqual([]);
  });

  test('deletes traces that another receiver derives later together, and once, but none that arrives later', async () => {
    const [store, other] = [await openStore(), await openStore()];
    await other.apply(SCOPE, [simple(1), simple(2)]);
    await store.remove(SCOPE, { kind: 'project', id: 'shop' });
    await other.apply(SCOPE, [simple(3)]);
    await other.settled();
    expect((await runsOf(store)).map((run) => numberOf(run.id))).toEqual([3]);
    const times = await db.rows(sql(`SELECT DISTINCT received_us FROM messages WHERE kind = ${TOMBSTONE}`));
    expect(times).toHaveLength(1);
    expect(await underivedGroups(db, '', 0, { untilUs: 2 * Date.now() * 1_000, position: -1 })).toEqual([]);
  });

  test('covers no trace that arrives after a clock that was ahead is right again', async () => {
    const store = await openStore();
    await store.apply(SCOPE, [simple(1)]);
    const setBack = moveClock(2 * DAY_MS);
    await store.remove(SCOPE, { kind: 'project', id: 'shop' });
    setBack();
    const later = await openStore();
    await later.apply(SCOPE, [simple(2)]);
    await later.settled();
    expect((await runsOf(later)).map((run) => numberOf(run.id))).toEqual([2]);
  });

  test('deletes more runs than fit in a parameter of a query', async () => {
    const store = await openStore();
    const runs = Array.from({ length: 4_000 }, (_, at) => simple(at));
    await store.apply(SCOPE, runs);
    await store.settled();
    const removed = { runs: 4_000, traces: 4_000 };
    expect(await store.remove(SCOPE, { kind: 'project', id: 'shop' })).toEqual(removed);
    for await (const text of store.runs(SCOPE, { filter: ALL_RUNS })) expect.unreachable(text);
  });
});

const WITH_PROJECT: Ages = { ...MAX_AGE, projectMaxAgeMs: { default: { shop: 60 * DAY_MS, short: DAY_MS } } };

describe('the maximum age of traces in ClickHouse', () => {
  test.each<[string, Ages, days: number, kept: readonly number[]]>([
    ['keeps younger traces', MAX_AGE, 29, [1, 2, 3]],
    ['may be longer than the time since 1970', { ...MAX_AGE, maxAgeMs: 9_000 * 365 * DAY_MS }, 62, [1, 2, 3]],
    ['deletes older traces', MAX_AGE, 32, []],
    ['may be shorter for a project', WITH_PROJECT, 2, [1, 3]],
    ['may be longer for a project', WITH_PROJECT, 32, [1]],
    ['may have passed for all projects', WITH_PROJECT, 62, []],
  ])('%s', async (_title, ages, days, kept) => {
    const store = await openStore();
    const start = { start_time: new Date().toISOString().replace('Z', '000Z') };
    const projects = ['shop', 'short', 'bank'];
    await store.apply(
      SCOPE,
      projects.map((session_name, at) => ({ ...simple(at + 1, { ...start, session_name }), attachments: [LARGE] })),
    );
    await store.settled();
    await expire(db, ages, Date.now() + days * DAY_MS);
    const rows = { messages: kept.length, runs: kept.length, attachments: 3 * kept.length };
    await expect.poll(rowCounts).toMatchObject(rows);
    const found: string[] = [];
    for await (const text of store.runs(SCOPE, { filter: ALL_RUNS })) found.push(JSON.parse(text).id);
    expect(found.sort()).toEqual(kept.map(id));
  });

  test('deletes the runs that arrived before their parent with it', async () => {
    const store = await openStore();
    const fields = { start_time: new Date().toISOString(), session_name: 'short' };
    for (const run of [simple(2, { ...fields, parent: 1 }), simple(1, fields)]) await store.apply(SCOPE, [run]);
    await store.settled();
    await expire(db, WITH_PROJECT, Date.now() + 2 * DAY_MS);
    await expect.poll(rowCounts).toMatchObject({ messages: 0, runs: 0 });
  });

  test('counts from the arrival of traces whose start lies in the future', async () => {
    const store = await openStore();
    await store.apply(SCOPE, [simple(1, { start_time: '2100-01-01T00:00:00.000000Z' })]);
    await store.settled();
    await expire(db, MAX_AGE, Date.now() + 29 * DAY_MS);
    expect(await rowCounts()).toMatchObject({ messages: 1, runs: 1 });
    await expire(db, MAX_AGE, Date.now() + 32 * DAY_MS);
    expect(await rowCounts()).toMatchObject({ messages: 0, runs: 0 });
  });

  test('deletes the other traces of a day from which a trace was deleted later', async () => {
    const store = await openStore();
    const runs = [1, 2].map((number) => simple(number, { start_time: new Date().toISOString() }));
    await store.apply(SCOPE, runs);
    await store.settled();
    const nowMs = Date.now();
    moveClock(20 * DAY_MS);
    await store.remove(SCOPE, { kind: 'trace', id: id(1) });
    await expire(db, MAX_AGE, nowMs + 32 * DAY_MS);
    // Only the tombstone of the deleted trace is left.
    expect(await rowCounts()).toMatchObject({ messages: 1, runs: 0 });
  });

  test('keeps the tombstones of deleted runs, and their groups, for 30 more days', async () => {
    const store = await openStore();
    await store.apply(SCOPE, [span(2, 1), span(1)]);
    await store.settled();
    await store.remove(SCOPE, { kind: 'trace', id: id(0) });
    await expire(db, MAX_AGE, Date.now() + 50 * DAY_MS);
    // The tombstone of the trace, and the names of two runs and their trace.
    await expect.poll(rowCounts).toMatchObject({ messages: 1, run_ids: 3 });
    await expire(db, MAX_AGE, Date.now() + 62 * DAY_MS);
    expect(await rowCounts()).toMatchObject({ messages: 0, run_ids: 0 });
  });
});

function openShared(clocks: Clocks): AgedStore {
  const times = [0, 1].map(() => new RetentionTime(() => clocks.upMs));
  const shared = new ClickHouseRetentionTime(db);
  return {
    add: async (number) => {
      const times = { day: dayOfMs(wallMs(clocks)), received_us: wallMs(clocks) * 1_000 };
      const ids = { tenant: 'default', group_id: id(number), id: id(number) };
      await db.insert('messages', [{ ...ids, ...times, kind: 1, fields: '{}' }]);
    },
    check: async () => {
      for (const time of times) await shared.check(time, wallMs(clocks));
      const timeMs = Math.max(...times.map((time) => time.timeMs));
      await expire(db, { maxAgeMs: MAX_AGE_MS, projectMaxAgeMs: {} }, timeMs);
    },
    numbers: async () => (await db.rows<{ id: string }>(sql('SELECT id FROM messages'))).map((row) => numberOf(row.id)),
    close: () => {},
    prune: () => shared.write(wallMs(clocks)),
  };
}

test('a wrong clock of ClickHouse deletes nothing early, and everything goes in the end', async () => {
  const short = somePeriods.map((periods) =>
    periods.map((period) => ({ ...period, checks: Math.ceil(period.checks / 6) })),
  );
  await fc.assert(
    fc.asyncProperty(short, async (periods) => {
      for (const table of ['messages', 'times']) await db.command(sql(`TRUNCATE TABLE ${table}`));
      await checkAges(periods, async (clocks) => openShared(clocks));
    }),
    { numRuns: 5, examples: KNOWN_PERIODS.map((periods) => [periods]) },
  );
});
