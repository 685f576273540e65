// What clients of a receiver see while ClickHouse fails. ClickHouse runs inside another process (see clickhouse/shim.mjs).
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { createExporter, startRun } from '#src/index.ts';
import type { Scope } from '#src/receiver/domain/query/query.ts';
import { parsedQuery } from '#src/receiver/filter/run-filter.ts';
import { ClickHouseStore } from '#src/receiver/store/clickhouse/clickhouse-store.ts';
import { StoreClock } from '#src/receiver/store/clickhouse/clock.ts';
import { ClickHouse, integer, sql, string } from '#src/receiver/store/clickhouse/connection.ts';
import type { StoreError } from '#src/receiver/store/store.ts';
import type { Receiver } from '#src/receiver.ts';
import { id, patch, post, runsOf, second, simple } from '../receiver/conformance/support.ts';
import { call, type Reply, sendJson, start } from '../receiver/wire.ts';
import { listen } from '../support/listen.ts';
import { logLines } from '../support/log-lines.ts';
import { moveClock, startDatabase } from './clickhouse/database.ts';

const { url, db, openStore, setFaults, stop } = await startDatabase();
afterAll(stop);
afterEach(() => setFaults());

/** Starts a receiver. Each test has its own project and its own numbers of runs. */
async function startReceiver(): Promise<{ readonly store: ClickHouseStore; readonly receiver: Receiver }> {
  const store = await openStore();
  return { store, receiver: await start({ store }) };
}

function send(
  receiver: Receiver,
  number: number,
  project: string,
  inputs: Readonly<Record<string, unknown>> = {},
): Promise<Reply> {
  const { id, fields } = post(number, { session_name: project, inputs });
  return sendJson(receiver, 'POST', '/runs', { id, ...fields });
}

function query(receiver: Receiver, path: string): Promise<Reply> {
  return call(`${receiver.url}/query/${path}`, 'GET');
}

async function count(receiver: Receiver, project: string): Promise<unknown> {
  const { body } = await query(receiver, `statistics?project=${project}`);
  return (body.total as { runs: number }).runs;
}

const refused = (status: number, detail: string) => ({
  status,
  body: { detail: expect.stringContaining(detail) },
  headers: { 'retry-after': '5' },
});

/** Returns whether a store accepts a run. On a busy machine, its queries may be too far behind. */
function outcome(store: ClickHouseStore, scope: Scope, number: number): Promise<string> {
  return store.apply(scope, [post(number)]).then(
    () => 'stored',
    (error: StoreError) => error.reason,
  );
}

const ACCEPTED = { status: 202 };
const TENANT = { tenant: 'again' };

test('While ClickHouse is away, requests get status 503, and clients that retry store each run once', async () => {
  const lines: string[] = [];
  const log = (_: string, line: string) => lines.push(line);
  const { receiver } = await startReceiver();
  expect(await send(receiver, 1, 'away')).toMatchObject(ACCEPTED);
  const exporter = createExporter({ endpoint: receiver.url, project: 'away', durability: 'memory', log });
  await setFaults({ away: true });
  for (let number = 0; number < 200; number += 1) startRun({ name: 'work', exporter }).end();
  expect(await send(receiver, 2, 'away')).toMatchObject(refused(503, 'ClickHouse failed'));
  expect(await query(receiver, 'runs')).toMatchObject(refused(503, 'ClickHouse failed'));
  expect(await exporter.flush({ timeoutMs: 500 })).toEqual({ ok: false, pending: 200 });
  await expect.poll(() => lines).toContainEqual(expect.stringContaining('and retries: ClickHouse failed'));
  await setFaults();
  expect(await exporter.close({ timeoutMs: 60_000 })).toEqual({ ok: true, pending: 0 });
  await expect.poll(() => count(receiver, 'away')).toBe(201);
});

test('While ClickHouse is slow, requests get status 429 instead of waiting in memory without limit', async () => {
  const { store, receiver } = await startReceiver();
  await setFaults({ match: 'INSERT INTO messages', held: true });
  const text = 'x'.repeat(15_000_000);
  const sent = [1, 2, 3, 4, 5].map((number) => send(receiver, 10 + number, 'slow', { text }));
  const waitingBytes = async () => (await store.status()).queuedBytes;
  await expect.poll(waitingBytes).toBeGreaterThan(64 * 1024 * 1024);
  const reply = await send(receiver, 16, 'slow');
  expect(reply).toMatchObject({ status: 429, headers: { 'retry-after': '2' } });
  expect(await waitingBytes()).toBeLessThan(80_000_000);
  await setFaults();
  expect(await Promise.all(sent)).toMatchObject(Array(5).fill(ACCEPTED));
  expect(await waitingBytes()).toBe(0);
  expect(await send(receiver, 16, 'slow')).toMatchObject(ACCEPTED);
});

test.each<[name: string, code: number, status: number, detail: string]>([
  ['a table is missing', 60, 503, 'ClickHouse failed'],
  ['the password is wrong', 516, 503, 'ClickHouse failed'],
  ['too many queries are running', 202, 429, 'ClickHouse is overloaded'],
  ['the memory limit is exceeded', 241, 429, 'ClickHouse is overloaded'],
  ['there are too many parts', 252, 429, 'ClickHouse is overloaded'],
])('Requests can be sent again if %s', async (_name, code, status, detail) => {
  const { receiver } = await startReceiver();
  await setFaults({ code });
  expect(await send(receiver, 20, 'refused')).toMatchObject(refused(status, detail));
  expect(await query(receiver, 'runs')).toMatchObject(refused(status, detail));
});

test('The response to a query that takes too long suggests a shorter time range', async () => {
  const { receiver } = await startReceiver();
  await setFaults({ code: 159, match: 'FROM runs' });
  for (const path of ['runs', 'traces', 'threads', 'statistics', 'projects']) {
    expect(await query(receiver, path), path).toMatchObject(refused(429, 'choose a shorter time range'));
  }
});

test('A run is stored once if ClickHouse has stored it and its response was lost', async () => {
  const { receiver } = await startReceiver();
  await setFaults({ match: 'INSERT INTO messages', cut: true, times: 1 });
  expect(await send(receiver, 30, 'lost', { question: 'why' })).toMatchObject(refused(503, 'ClickHouse failed'));
  expect(await send(receiver, 30, 'lost', { question: 'why' })).toMatchObject(ACCEPTED);
  await expect.poll(() => count(receiver, 'lost')).toBe(1);
  expect(await query(receiver, `runs/${id(30)}/inputs`)).toMatchObject({ status: 200, body: { question: 'why' } });
});

test('A query gets status 503 if the response of ClickHouse ends in the middle', async () => {
  const { store, receiver } = await startReceiver();
  expect(await send(receiver, 40, 'cut')).toMatchObject(ACCEPTED);
  await store.settled();
  for (const path of ['runs?project=cut', `traces/${id(40)}`]) {
    await setFaults({ match: 'SELECT', cut: true });
    expect(await query(receiver, path), path).toMatchObject(refused(503, 'ClickHouse failed'));
    await setFaults();
    expect(await query(receiver, path), path).toMatchObject({ status: 200 });
  }
});

test('Lists show the runs that were stored while lists could not be updated, and one line reports it', async () => {
  const lines = logLines();
  const { receiver } = await startReceiver();
  await setFaults({ match: 'INSERT INTO runs', code: 241 });
  expect(await send(receiver, 50, 'late')).toMatchObject(ACCEPTED);
  const line = 'could not update its lists and retries: ClickHouse is overloaded: ';
  await expect.poll(() => lines).toContainEqual(expect.stringContaining(line));
  expect(await count(receiver, 'late')).toBe(0);
  await setFaults();
  await expect.poll(() => count(receiver, 'late')).toBe(1);
  expect(await query(receiver, `traces/${id(50)}`)).toMatchObject({ status: 200 });
  expect(lines.filter((one) => one.includes(line))).toHaveLength(1);
});

test('Traces are listed, exported and deleted in parts if ClickHouse refuses to read all of them at once', async () => {
  logLines();
  const store = await openStore();
  const refuseOnce = () => setFaults({ match: 'received_us, fields', code: 396, times: 1 });
  await setFaults({ match: 'received_us, fields', code: 396, times: 2 });
  await store.apply(TENANT, [simple(60, { session_name: 'large' }), simple(61, { session_name: 'large' })]);
  await expect.poll(async () => (await store.list(TENANT, parsedQuery({ project: 'large' }))).items).toHaveLength(2);
  const inProject = { project: 'large' };
  expect((await store.list(TENANT, parsedQuery(inProject))).items).toHaveLength(2);
  await refuseOnce();
  expect(await runsOf(store, inProject, TENANT)).toHaveLength(2);
  await refuseOnce();
  expect(await store.remove(TENANT, { kind: 'project', id: 'large' })).toEqual({ runs: 2, traces: 2 });
});

test('A trace that is too large to read does not keep other traces from lists, and one line names it', async () => {
  const lines = logLines();
  const { receiver } = await startReceiver();
  await setFaults({ match: 'received_us, fields', value: id(70), code: 396 });
  expect(await send(receiver, 70, 'too large')).toMatchObject(ACCEPTED);
  await expect.poll(() => lines).toContainEqual(expect.stringContaining(`the first ${id(70)},`));
  expect(await send(receiver, 71, 'too large')).toMatchObject(ACCEPTED);
  await expect.poll(() => count(receiver, 'too large')).toBe(1);
});

test('Traces that are too large to read are deleted, whatever selects them, and nothing else is', async () => {
  const store = await openStore();
  const inTrace = (number: number, project: string, user: string) =>
    simple(number, { session_name: project, extra: { metadata: { user_id: user, thread_id: `thread ${number}` } } });
  const child = simple(111, { parent: 110, session_name: 'vast' });
  await store.apply(TENANT, [
    inTrace(110, 'vast', 'ann'),
    child,
    inTrace(112, 'other', 'bob'),
    inTrace(113, 'vast', 'cy'),
  ]);
  await store.settled();
  const refuse = () => setFaults({ match: 'received_us, fields, searched', code: 396 });
  const left = async () => {
    const items = await Promise.all(
      ['vast', 'other'].map(async (project) => (await store.list(TENANT, parsedQuery({ project }))).items),
    );
    return items
      .flat()
      .map((run) => run.id)
      .sort();
  };
  await refuse();
  expect(await store.removable(TENANT, { kind: 'project', id: 'vast' })).toEqual({ runs: 3, traces: 2 });
  expect(await store.remove({ ...TENANT, project: 'other' }, { kind: 'trace', id: id(110) })).toEqual({
    runs: 0,
    traces: 0,
  });
  expect(await store.remove(TENANT, { kind: 'user', id: 'ann' })).toEqual({ runs: 2, traces: 1 });
  expect(await left()).toEqual([id(112), id(113)]);
  expect(await store.remove(TENANT, { kind: 'thread', id: 'thread 113' })).toEqual({ runs: 1, traces: 1 });
  expect(await store.remove(TENANT, { kind: 'trace', id: id(112) })).toEqual({ runs: 1, traces: 1 });
  await setFaults();
  // A later message, and a new derivation of the whole group, do not bring the trace back.
  await store.apply(TENANT, [simple(114, { parent: 110, session_name: 'vast' }), patch(112, { outputs: {} })]);
  await store.settled();
  expect(await left()).toEqual([]);
});

test('A trace whose rows ClickHouse refuses does not keep other traces from lists or the sweep, and a line names it', async () => {
  const lines = logLines();
  const tenant = { tenant: 'poison' };
  // The invalid message would fail in other tests, too.
  const { db, openStore, setFaults, stop } = await startDatabase();
  onTestFinished(stop);
  const store = await openStore();
  const listed = async () => (await store.list(tenant, parsedQuery({}))).items.map((run) => run.id);
  const isRefused = () => lines.some((line) => line.includes(`the first ${id(102)},`));
  // The derivation of this trace fails, because a message has no valid fields.
  const now = Date.now() * 1_000;
  const row = {
    tenant: 'poison',
    day: '2026-11-20',
    group_id: id(102),
    id: id(102),
    kind: 1,
    received_us: now,
    fields: 'x',
  };
  await db.insert('messages', [row]);
  await store.apply(tenant, [post(101), post(102), post(103), post(104)]);
  await expect.poll(isRefused).toBe(true);
  await expect.poll(async () => (await listed()).sort()).toEqual([id(101), id(103), id(104)]);
  // ClickHouse refuses the rows of the only trace in a batch, and accepts other writes.
  await setFaults({ match: 'INSERT INTO runs', value: id(105), code: 117 });
  await store.apply(tenant, [post(105)]);
  await expect.poll(() => lines).toContainEqual(expect.stringContaining(`the first ${id(105)},`));
  await store.apply(tenant, [post(106)]);
  await expect.poll(listed).toContain(id(106));
});

test.each<[name: string, fault: Readonly<Record<string, unknown>>]>([
  ['the memory limit', { code: 241 }],
  ['a timeout of the client', { away: true }],
  ['an unknown error', { code: 9_999 }],
])(
  'A trace whose reads fail with %s is left alone, counted, and listed after it can be read',
  async (name, fault) => {
    const lines = logLines();
    const [bad, good] = [{ tenant: `bad, ${name}` }, { tenant: `good, ${name}` }];
    const store = await openStore();
    const listed = async (tenant = good) => (await store.list(tenant, parsedQuery({}))).items.length;
    await store.apply(good, [post(200)]);
    await expect.poll(listed).toBe(1);
    await setFaults({ match: 'FROM messages', value: id(201), ...fault });
    await expect.poll(() => outcome(store, bad, 201)).toBe('stored');
    await expect.poll(() => outcome(store, good, 202)).toBe('stored');
    const isNamed = () => lines.filter((line) => line.includes(`the first ${id(201)},`)).length;
    await expect.poll(isNamed).toBe(1);
    await expect.poll(() => outcome(store, good, 203)).toBe('stored');
    await expect.poll(listed).toBe(3);
    expect((await store.status()).unindexedRuns).toBe(1);
    await setFaults();
    await expect.poll(() => listed(bad)).toBe(1);
    expect(isNamed()).toBe(1);
    await expect.poll(async () => (await store.status()).unindexedRuns).toBe(0);
  },
  300_000,
);

test('Lists show the runs of a receiver that cannot search for the runs of stopped receivers', async () => {
  const { receiver } = await startReceiver();
  await setFaults({ match: 'AS latest_us', code: 159 });
  expect(await send(receiver, 80, 'no sweep')).toMatchObject(ACCEPTED);
  await expect.poll(() => count(receiver, 'no sweep')).toBe(1);
  expect(await send(receiver, 81, 'no sweep')).toMatchObject(ACCEPTED);
  await expect.poll(() => count(receiver, 'no sweep')).toBe(2);
});

test('Lists show the runs that were stored before all receivers stopped, however long ago', async () => {
  logLines();
  const tenant = { tenant: 'stopped' };
  const listed = async (store: ClickHouseStore) => (await store.list(tenant, parsedQuery({}))).items.length;
  const store = await openStore();
  await setFaults({ match: 'INSERT INTO runs', code: 241 });
  const restoreClock = moveClock(-100 * 3_600_000);
  await store.apply(tenant, [post(90), post(91)]);
  restoreClock();
  await store.close();
  await setFaults();
  await db.command(sql('TRUNCATE TABLE times'));
  const later = await openStore();
  expect(await listed(later)).toBe(0);
  await expect.poll(() => listed(later)).toBe(2);
});

test('Lists show all runs of a long backlog, also those that arrive while it is worked off', async () => {
  logLines();
  const tenant = 'backlog';
  // The messages of other tests would lengthen the sweep.
  const { url, db, setFaults, stop } = await startDatabase();
  onTestFinished(stop);
  const store = await ClickHouseStore.open(url, { batchDelayMs: 0 });
  await setFaults({ match: 'INSERT INTO runs', code: 241 });
  const restoreClock = moveClock(-60_000);
  const runs = Array.from({ length: 2_500 }, (_, at) => post(10_000 + at));
  await store.apply({ tenant }, runs);
  restoreClock();
  await store.close();
  await setFaults({ match: 'INSERT INTO runs', held: true });
  const inserted = vi.spyOn(ClickHouse.prototype, 'insert');
  const later = await ClickHouseStore.open(url);
  onTestFinished(() => later.close());
  vi.spyOn(StoreClock.prototype, 'synchronize').mockResolvedValue();
  await expect.poll(() => inserted.mock.calls.some(([table]) => table === 'runs')).toBe(true);
  await db.command(
    sql(
      `INSERT INTO messages (tenant, day, group_id, id, kind, received_us, fields, searched, facts, payloads)
        SELECT tenant, day, new, new, kind, ?, replaceAll(fields, toString(id), toString(new)), searched, facts, payloads
        FROM (SELECT *, generateUUIDv4() AS new FROM messages WHERE tenant = ?)`,
      integer((Date.now() + 5_000) * 1_000),
      string(tenant),
    ),
  );
  moveClock(60_000);
  await setFaults();
  const listed = async () => {
    const [row] = await db.rows<{ runs: number }>(
      sql('SELECT count() AS runs FROM runs FINAL WHERE tenant = ?', string(tenant)),
    );
    return row?.runs;
  };
  await expect.poll(listed).toBe(5_000);
});

test('The changes of a receiver whose clock is late count as the latest', async () => {
  const tenant = { tenant: 'late clock' };
  const [store, late] = [await openStore(), await openStore()];
  const feedback = { id: 'f', run_id: id(97), key: 'liked', created_at: second(1), modified_at: second(1) };
  await store.apply(tenant, [post(97), patch(97, { outputs: { answer: 1 } })]);
  await store.addFeedback(tenant, { ...feedback, score: 0 });
  vi.useFakeTimers({ now: Date.now() - 600_000, toFake: ['Date'] });
  await late.apply(tenant, [patch(97, { outputs: { answer: 2 } })]);
  await late.addFeedback(tenant, { ...feedback, score: 1 });
  await late.settled();
  expect(await runsOf(store, {}, tenant)).toMatchObject([{ outputs: { answer: 2 } }]);
  expect(await store.feedback(tenant, [id(97)])).toMatchObject([{ score: 1 }]);
});

test('Requests get status 429 while queries lack changes that are older than a minute', async () => {
  const store = await openStore();
  const tenant = { tenant: 'behind' };
  const applied = () => outcome(store, tenant, 95);
  await setFaults({ match: 'AS latest_us', held: true });
  expect(await applied()).toBe('stored');
  moveClock(70_000);
  await expect.poll(applied).toBe('busy');
  await setFaults();
  await expect.poll(applied).toBe('stored');
});

test('A store works again after ClickHouse has refused connections', async () => {
  const sockets: Socket[] = [];
  const { hostname, port: shimPort } = new URL(url);
  const proxy = createServer((socket) => {
    const forwarded = connect(Number(shimPort), hostname);
    socket.pipe(forwarded).pipe(socket);
    sockets.push(socket, forwarded);
    for (const one of [socket, forwarded]) one.on('error', () => one.destroy());
  });
  onTestFinished(() => void proxy.close());
  const port = Number(new URL(await listen(proxy)).port);
  const store = await ClickHouseStore.open(url.replace(shimPort, `${port}`), { batchDelayMs: 0 });
  const tenant = { tenant: 'refused' };
  await store.apply(tenant, [post(60)]);
  proxy.close();
  for (const socket of sockets) socket.destroy();
  await once(proxy, 'close');
  const failure = () => store.list(tenant, parsedQuery({})).catch((error: Error) => error.message);
  // The client may not have noticed yet that its idle connections are closed.
  await expect.poll(failure).toContain('ECONNREFUSED');
  await expect(store.apply(tenant, [post(61)])).rejects.toMatchObject({ reason: 'unavailable' });
  await listen(proxy, port);
  await store.apply(tenant, [post(61)]);
  await store.settled();
  expect(await runsOf(store, {}, tenant)).toMatchObject([{ id: id(60) }, { id: id(61) }]);
  await store.close();
});

test('A store closes while ClickHouse does not respond, and rejects the operations that it has not stored', async () => {
  const store = await openStore();
  await setFaults({ match: 'INSERT INTO messages', held: true });
  const closed = { reason: 'unavailable' };
  const applied = [70, 71].map((number) =>
    expect(store.apply({ tenant: 'closed' }, [post(number)])).rejects.toMatchObject(closed),
  );
  await store.close();
  await Promise.all(applied);
  await expect(store.list({ tenant: 'closed' }, parsedQuery({}))).rejects.toMatchObject(closed);
});

test('A receiver is alive but not ready while ClickHouse is away or does not respond', async () => {
  const { receiver } = await startReceiver();
  const status = async (path: string) => (await call(receiver.url + path, 'GET')).status;
  expect(await status('/readyz')).toBe(200);
  for (const fault of [{ away: true }, { held: true, match: 'FROM token_secrets' }]) {
    await setFaults(fault);
    expect([await status('/readyz'), await status('/healthz')]).toEqual([503, 200]);
    await setFaults();
    expect(await status('/readyz')).toBe(200);
  }
});

test('A receiver is not ready while ClickHouse holds inserts, answers queries, and shows no test of a write', async () => {
  // Messages that earlier tests failed to send may still appear in the shared database.
  const database = await startDatabase();
  onTestFinished(database.stop);
  const store = await database.openStore();
  const receiver = await start({ store });
  const status = async (path: string) => (await call(receiver.url + path, 'GET')).status;
  await database.setFaults({ match: 'INSERT', held: true });
  expect(await status('/readyz')).toBe(503);
  expect(await status('/query/runs')).toBe(200);
  await database.setFaults();
  await expect.poll(() => status('/readyz')).toBe(200);
  await store.settled();
  expect(await store.tenants()).toEqual([]);
});

test('250 traces of a tenant that ClickHouse cannot derive delay no trace of another tenant, and are listed later', async () => {
  const lines = logLines();
  const { openStore, setFaults, stop } = await startDatabase();
  onTestFinished(stop);
  const store = await openStore();
  const [doomed, quiet] = [{ tenant: 'doomed' }, { tenant: 'quiet' }];
  const listed = async (tenant: Scope) => (await store.list(tenant, parsedQuery({ limit: 1_000 }))).items.length;
  const waiting = async () => (await store.status()).unindexedRuns;
  await setFaults({ match: 'received_us, fields', value: 'doomed', code: 241 });
  const posts = Array.from({ length: 250 }, (_, at) => post(1_000 + at));
  await Promise.all([store.apply(doomed, posts), store.apply(quiet, [post(1)])]);
  await expect.poll(() => listed(quiet)).toBe(1);
  await expect.poll(waiting).toBe(250);
  const told = () => lines.map((line) => /changes of (\d+) traces/.exec(line));
  const sum = () => told().reduce((total, found) => total + Number(found?.[1] ?? 0), 0);
  await expect.poll(sum).toBe(250);
  await expect.poll(() => outcome(store, quiet, 2)).toBe('stored');
  await expect.poll(() => listed(quiet)).toBe(2);
  await setFaults();
  await expect.poll(() => listed(doomed)).toBe(250);
  await expect.poll(waiting).toBe(0);
});
