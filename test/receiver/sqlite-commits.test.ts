import { statSync } from 'node:fs';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { NO_PRICES } from '#src/receiver/domain/cost/prices.ts';
import type { DeletionTarget } from '#src/receiver/domain/query/query.ts';
import { deletionOf } from '#src/receiver/domain/retention/deletion.ts';
import { SqliteCommits } from '#src/receiver/store/sqlite/commits.ts';
import { loadEngine, type SqliteConnection } from '#src/receiver/store/sqlite/file/database.ts';
import { openToWrite } from '#src/receiver/store/sqlite/file/file.ts';
import { encodedOperation } from '#src/receiver/store/sqlite/payloads.ts';
import type { TenantChange } from '#src/receiver/store/subscribers.ts';
import { DEFAULT_SCOPE, type RunOperation } from '#src/receiver.ts';
import { randomFrom } from '../faults/random.ts';
import { id, simple } from './conformance/support.ts';
import { LIMITS, openConnection, storePath } from './local-store.ts';

const CHARACTERS = '!#$%&()*+,-./:;<=>?@[]^{|}~`';
const random = randomFrom(1);
const below = (count: number): number => Math.floor(random() * count);
const NOISE = Array.from({ length: 2_100_000 }, () => CHARACTERS[below(CHARACTERS.length)]).join('');

/** Text that can hardly be compressed, and has no words. */
function noise(length: number): string {
  const from = below(NOISE.length - length);
  return NOISE.slice(from, from + length);
}

const ATTACHMENT = { mimeType: 'x/y', bytes: new Uint8Array(1) };
const TOO_MANY = Array.from({ length: 101 }, (_, at) => ({ ...ATTACHMENT, name: `a${at}` }));

async function make({ limits = LIMITS, path = storePath(), nowMs = Date.now } = {}) {
  const connection = await openConnection(path);
  const changes: TenantChange[] = [];
  const report = (change: TenantChange) => void changes.push(change);
  const commits = new SqliteCommits(connection, { ...limits, prices: NO_PRICES }, nowMs, report, nowMs);
  onTestFinished(() => commits.close());
  const apply = (...operations: RunOperation[]) => commits.apply(DEFAULT_SCOPE, operations.map(encodedOperation));
  return { apply, changes, commits, connection, path };
}

function remove(commits: SqliteCommits, kind: DeletionTarget['kind'], of: string) {
  return commits.remove(deletionOf(DEFAULT_SCOPE, { kind, id: of }));
}

function counts(connection: SqliteConnection): Record<string, number> {
  const ofRuns = ['runs', 'details', 'payloads', 'attachments', 'feedback', 'words', 'unindexed', 'tags'];
  const tables = ['traces', ...ofRuns];
  return Object.fromEntries(tables.map((table) => [table, connection.number(`SELECT count(*) FROM ${table}`)]));
}

describe('pending calls', () => {
  test('are committed together, each with its own change, in the order of arrival', async () => {
    const { apply, changes, connection } = await make();
    const exec = vi.spyOn(connection, 'exec');
    // On a busy machine, three calls may take longer than a transaction may.
    vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    await Promise.all([apply(simple(1)), apply(simple(2)), apply(simple(3))]);
    const transactions = exec.mock.calls.flat().filter((sql) => /^(BEGIN|COMMIT)/.test(sql));
    expect(transactions).toEqual(['BEGIN IMMEDIATE', 'COMMIT']);
    expect(changes).toEqual(
      [1, 2, 3].map((index) => ({ tenant: 'default', traces: [{ id: id(index), projects: ['shop'] }] })),
    );
  });

  test('succeed or fail separately, and a failed call leaves nothing', async () => {
    const { apply, changes, connection } = await make();
    const bad = { ...simple(2, { inputs: { a: 1 } }), attachments: TOO_MANY };
    const settled = await Promise.allSettled([apply(simple(1)), apply(simple(4), bad), apply(simple(3))]);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(settled[1]).toMatchObject({ reason: { reason: 'too_large' } });
    expect(connection.all('SELECT hex(id) AS id FROM runs')).toHaveLength(2);
    expect(counts(connection)).toMatchObject({ runs: 2, traces: 2, payloads: 0, attachments: 0, unindexed: 2 });
    expect(changes.flatMap(({ traces }) => traces.map((trace) => trace.id))).toEqual([id(1), id(3)]);
  });

  test('fail if the disk is full and leave nothing, and later calls succeed once there is space', async () => {
    const { apply, connection } = await make();
    await apply(simple(1));
    await expect.poll(() => counts(connection)).toMatchObject({ unindexed: 0 });
    const before = counts(connection);
    connection.exec(`PRAGMA max_page_count = ${connection.number('PRAGMA page_count') + 2}`);
    const large = simple(2, { inputs: { text: noise(1_000_000) } });
    const settled = await Promise.allSettled([apply(simple(3)), apply(large)]);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(settled[1]).toMatchObject({ reason: { errcode: 13 } });
    expect(counts(connection)).toEqual(before);
    connection.exec('PRAGMA max_page_count = 1000000');
    await apply(simple(3), large);
    expect(connection.number('SELECT count(*) FROM runs')).toBe(3);
  });

  test('without operations fail if the disk is full, even if a few bytes still fit', async () => {
    const { apply, commits, connection } = await make();
    await apply(simple(1));
    connection.exec(`PRAGMA max_page_count = ${connection.number('PRAGMA page_count') + 2}`);
    await commits.revokeTokens({ tenant: 'default' }, id(1), 1);
    await expect(apply()).rejects.toMatchObject({ errcode: 13 });
    connection.exec('PRAGMA max_page_count = 1000000');
    for (let count = 0; count < 3; count += 1) await apply();
    const bytes = connection.number('PRAGMA page_count') * connection.number('PRAGMA page_size');
    expect(bytes).toBeLessThan(2 * 1024 ** 2);
  });

  test('are written before the store closes', async () => {
    const { apply, commits, connection } = await make();
    const applied = apply(simple(1));
    commits.close();
    await applied;
    expect(connection.number('SELECT count(*) FROM runs')).toBe(1);
  });
});

describe('background steps', () => {
  test('index runs and free pages between continuous writes', async () => {
    const nowMs = { value: 1_000 };
    const limits = { ...LIMITS, maxAgeMs: 10 };
    const { apply, commits, connection } = await make({ limits, nowMs: () => nowMs.value });
    // Deleted as soon as the clock advances, which leaves more free pages than the 1 024 that are kept.
    for (let index = 1; index <= 6; index += 1) await apply(simple(index, { inputs: { text: noise(2_000_000) } }));
    await apply(simple(11, { inputs: { text: 'zebra' } }));
    const isIndexed = () => connection.one("SELECT 1 FROM words WHERE words MATCH 'zebra'") !== undefined;
    await writeUntil(isIndexed);
    nowMs.value = 2_000;
    await commits.checkAge();
    await writeUntil(() => connection.number('SELECT count(*) FROM runs') === 1);
    const freePages = () => connection.number('PRAGMA freelist_count');
    await writeUntil(() => freePages() > 0 && freePages() <= 1_024);

    async function writeUntil(isDone: () => boolean): Promise<void> {
      for (let writes = 0; writes < 20_000 && !isDone(); writes++) await apply(simple(12));
      expect(isDone(), `${isDone}`).toBe(true);
    }
  });

  test('index runs that were not indexed when the store was closed', async () => {
    const path = storePath();
    const { connection, lock } = openToWrite(await loadEngine(), path);
    connection.run('INSERT INTO unindexed VALUES (1)');
    connection.close();
    lock.close();
    const again = await make({ path });
    await again.commits.checkAge();
    await expect.poll(() => counts(again.connection)).toMatchObject({ unindexed: 0 });
  });
});

describe('the limits', () => {
  test('delete whole traces that changed least recently until the file is within its bytes, and report them', async () => {
    const { connection, changes, apply } = await make({ limits: { ...LIMITS, maxBytes: 2_000_000 } });
    const total = 30;
    for (let index = 1; index <= total; index += 1) {
      await apply(simple(index, { inputs: { text: `w${index} ${noise(100_000)}` } }));
    }
    await apply({ kind: 'patch', id: id(total), fields: {}, attachments: [] });
    const used = () =>
      (connection.number('PRAGMA page_count') - connection.number('PRAGMA freelist_count')) *
      connection.number('PRAGMA page_size');
    await expect.poll(() => used()).toBeLessThanOrEqual(2_000_000);
    const left = connection.number('SELECT count(*) FROM runs');
    expect(left).toBeGreaterThan(10);
    expect(counts(connection)).toMatchObject({ traces: left, details: left, payloads: left });
    const forgotten = changes.flatMap((change) =>
      change.forgotten === undefined ? [] : change.traces.map((trace) => trace.id),
    );
    expect(forgotten).toEqual(Array.from({ length: total - left }, (_, at) => id(at + 1)));
    const reported = changes.flatMap((change) => change.forgotten ?? []);
    expect(reported.reduce((sum, { runs }) => sum + runs, 0)).toBe(total - left);
    expect(reported.reduce((sum, { traces }) => sum + traces, 0)).toBe(total - left);
    expect(changes.find((change) => change.forgotten)?.limit).toEqual({
      option: 'maxBytes (--max-size or maxSize)',
      level: 'warn',
    });
  });

  test('hold approximately during continuous writes', async () => {
    const { apply, connection } = await make({ limits: { ...LIMITS, maxBytes: 4_000_000 } });
    let mostPages = 0;
    for (let round = 0; round < 20; round += 1) {
      const calls = Array.from({ length: 10 }, (_, at) =>
        apply(simple(round * 10 + at, { inputs: { text: noise(100_000) } })),
      );
      await Promise.all(calls);
      mostPages = Math.max(mostPages, connection.number('PRAGMA page_count'));
    }
    expect(mostPages * connection.number('PRAGMA page_size')).toBeLessThan(8_000_000);
  });

  test('keep an old trace that still changes', async () => {
    const nowMs = { value: 1_000 };
    const limits = { ...LIMITS, maxAgeMs: 1_000 };
    const { apply, commits, connection } = await make({ limits, nowMs: () => nowMs.value });
    await apply(simple(1));
    await apply(simple(2));
    nowMs.value = 2_000;
    await apply({ kind: 'patch', id: id(1), fields: { tags: ['a'] }, attachments: [] });
    await commits.checkAge();
    expect(connection.number('SELECT count(*) FROM runs')).toBe(2);
    nowMs.value = 2_001;
    await commits.checkAge();
    await apply(simple(3));
    await expect.poll(() => connection.number('SELECT count(*) FROM runs')).toBe(2);
    expect(connection.all('SELECT hex(id) AS id FROM runs ORDER BY n')).toEqual(
      [1, 3].map((index) => ({ id: id(index).replaceAll('-', '').toUpperCase() })),
    );
  });

  test('can differ by project, and change', async () => {
    const startMs = Date.parse('2026-11-20T07:22:40Z');
    const nowMs = { value: startMs };
    const path = storePath();
    const projectMaxAgeMs = { default: { short: 1_000, long: 60_000 }, acme: { other: 1_000 } };
    const limits = { ...LIMITS, maxAgeMs: 10_000, projectMaxAgeMs };
    const { apply, changes, commits, connection } = await make({ limits, path, nowMs: () => nowMs.value });
    for (const [at, session_name] of ['short', 'long', 'other', 'constructor'].entries()) {
      await apply(
        simple(at, { session_name, trace_id: id(at), extra: { metadata: { user_id: 'ada' } } }),
        simple(at + 10, { trace_id: id(at), session_name: 'long' }),
      );
    }
    const left = () => connection.all<{ project: string }>('SELECT project FROM runs WHERE is_root = 1 ORDER BY n');
    const checkLeft = async (afterMs: number, projects: readonly string[]) => {
      nowMs.value = startMs + afterMs;
      await commits.checkAge();
      await expect.poll(() => left().map(({ project }) => project)).toEqual(projects);
    };
    await checkLeft(900, ['short', 'long', 'other', 'constructor']);
    await checkLeft(2_000, ['long', 'other', 'constructor']);
    await checkLeft(20_000, ['long']);
    await checkLeft(70_000, []);
    await apply(simple(5, { session_name: 'long' }));
    await checkLeft(90_000, ['long']);
    await commits.setProjectAges({});
    await expect.poll(() => left()).toEqual([]);
    await expect.poll(() => counts(connection)).toMatchObject({ runs: 0, traces: 0 });
    const decided = changes.flatMap(({ traces, limit }) => (limit ? traces.map((one) => [one.id, limit.option]) : []));
    const [own, of] = ['projectMaxAgeMs (maxAge of a project)', 'maxAgeMs (--max-age or maxAge)'];
    expect(decided.sort()).toEqual([0, 1, 2, 3, 5].map((at) => [id(at), at < 2 ? own : of]));
  });

  test('delete everything of a trace, and the file shrinks', async () => {
    const nowMs = { value: 1_000 };
    const path = storePath();
    const limits = { ...LIMITS, maxAgeMs: 1 };
    const { apply, commits, connection } = await make({ path, limits, nowMs: () => nowMs.value });
    const attachments = TOO_MANY.slice(0, 2);
    for (let index = 1; index <= 240; index += 1) {
      await apply({ ...simple(index, { inputs: { text: `z${index} ${noise(200_000)}` } }), attachments });
    }
    await commits.addFeedback(DEFAULT_SCOPE, JSON.stringify({ id: 'f', run_id: id(1), key: 'k', created_at: 'a' }));
    await expect.poll(() => counts(connection)).toMatchObject({ unindexed: 0 });
    connection.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    const largest = statSync(path).size;
    nowMs.value = 10_000;
    await commits.checkAge();
    await apply(simple(1_000));
    await expect.poll(() => counts(connection)).toMatchObject({ runs: 1, traces: 1, unindexed: 0 });
    await expect.poll(() => connection.number('PRAGMA freelist_count')).toBeLessThanOrEqual(1_024);
    connection.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    expect(counts(connection)).toMatchObject({ details: 1, payloads: 0, attachments: 0, feedback: 0, words: 1 });
    expect(statSync(path).size).toBeLessThan(largest / 2);
    expect(connection.one('PRAGMA integrity_check')).toEqual({ integrity_check: 'ok' });
  });
});

test('a large trace is deleted in several transactions, and its runs arrive again as new ones', async () => {
  const nowMs = { value: 1_000 };
  const limits = { ...LIMITS, maxAgeMs: 1_000 };
  const { apply, commits, connection } = await make({ limits, nowMs: () => nowMs.value });
  const run = (index: number) => simple(index, { trace_id: id(0), tags: ['a'] });
  await apply(...Array.from({ length: 5_000 }, (_, index) => run(index)));
  nowMs.value = 10_000;
  const exec = vi.spyOn(connection, 'exec');
  await commits.checkAge();
  await expect.poll(() => counts(connection).runs).toBeLessThan(5_000);
  await apply(run(4_999));
  await expect.poll(() => counts(connection)).toMatchObject({ runs: 1, traces: 1, tags: 1 });
  expect(exec.mock.calls.flat().filter((sql) => sql === 'COMMIT').length).toBeGreaterThanOrEqual(4);
  expect(connection.number('SELECT count(*) FROM runs WHERE start_us IS NOT NULL')).toBe(1);
});

test('a deletion fails if the disk is full, and its runs are deleted once there is space', async () => {
  const { apply, commits, connection } = await make();
  await apply(simple(1), simple(2));
  await expect.poll(() => counts(connection)).toMatchObject({ unindexed: 0 });
  const [runs, hidden] = ['runs', 'hidden'].map((table) => () => connection.number(`SELECT count(*) FROM ${table}`));
  let isFull = () => hidden?.() === 1;
  const exec = connection.exec.bind(connection);
  vi.spyOn(connection, 'exec').mockImplementation((sql) => {
    if (sql === 'COMMIT' && isFull()) throw Object.assign(new Error('database or disk is full'), { errcode: 13 });
    exec(sql);
  });
  await expect(remove(commits, 'trace', id(1))).rejects.toMatchObject({ errcode: 13 });
  expect(hidden?.()).toBe(0);
  isFull = () => runs?.() === 1;
  await remove(commits, 'trace', id(1));
  await expect(commits.removed()).rejects.toMatchObject({ errcode: 13 });
  expect(runs?.()).toBe(2);
  isFull = () => false;
  await expect.poll(() => runs?.()).toBe(1);
});

test('a deletion does not wait until all old traces are deleted', async () => {
  const nowMs = { value: 1_000 };
  const limits = { ...LIMITS, maxAgeMs: 1 };
  const { apply, changes, commits, connection } = await make({ limits, nowMs: () => nowMs.value });
  await apply(...Array.from({ length: 3_000 }, (_, at) => simple(at)));
  nowMs.value = 10_000;
  await apply(simple(5_000));
  await commits.checkAge();
  await remove(commits, 'trace', id(5_000));
  await expect.poll(() => counts(connection)).toMatchObject({ runs: 0, traces: 0 });
  const removed = changes.findLastIndex(({ traces }) => traces.some((trace) => trace.id === id(5_000)));
  expect(removed).toBeLessThan(changes.length - 1);
});

test('the latest 2,000,000 names of what was deleted are kept', async () => {
  const { apply, commits, connection } = await make();
  await apply(simple(1), simple(2));
  const names = "(1, 1, x'01', 2), (5, 1, x'02', 2), (2000000, 1, x'03', 2)";
  connection.run(`INSERT INTO removed (n, tenant, id, kind) VALUES ${names}`);
  for (const at of [1, 2]) await remove(commits, 'trace', id(at));
  await commits.removed();
  const kept = () => connection.all<{ n: number }>('SELECT n FROM removed ORDER BY n').map(({ n }) => n);
  expect(kept()).toEqual([5, ...[0, 1, 2, 3, 4].map((at) => 2_000_000 + at)]);
  // A late message of a deleted trace adds a name.
  await apply(simple(3, { parent_run_id: id(1) }));
  expect(kept()).toEqual([0, 1, 2, 3, 4, 5].map((at) => 2_000_000 + at));
});
