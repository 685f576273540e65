// Two receivers with a ClickHouse that fails, while programs send to both through a balancer. No run may be missing or twice.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ClickHouseStore } from '#src/receiver/store/clickhouse/clickhouse-store.ts';
import { ClickHouse, sql } from '#src/receiver/store/clickhouse/connection.ts';
import { startDatabase, startServer } from '../peers/clickhouse/database.ts';
import { prepare, type Receiver, startBalancer, startSender } from '../peers/clickhouse/receivers.ts';
import { root } from '../support/folders.ts';
import { randomFrom } from './random.ts';
import { table, tally } from './report.ts';

const ROUNDS = Number(process.env.FAULT_ROUNDS ?? 3);
const SEED = Number(process.env.FAULT_SEED ?? Date.now() % 1_000_000);
const SECONDS = 60;

/** End of the parameters of queries for about one of 256 traces. */
const SOME_TRACE = "00'";

type Fault = Readonly<Record<string, unknown>>;

/** Faults of ClickHouse, and the longest time for which they last, in seconds. */
const FAULTS: readonly (readonly [name: string, seconds: number, faults: readonly Fault[]])[] = [
  ['away', 15, [{ away: true }]],
  ['inserts do not end', 8, [{ match: 'INSERT INTO', held: true }]],
  ['too many parts', 5, [{ match: 'INSERT INTO messages', code: 252, times: 40 }]],
  ['responses to inserts are cut', 5, [{ match: 'INSERT INTO messages', cut: true, times: 20 }]],
  ['reads exceed the memory limit', 5, [{ match: 'SELECT', code: 241, times: 100 }]],
  ['lists cannot be updated', 10, [{ match: 'INSERT INTO runs', code: 241 }]],
  ...[{ code: 241 }, { away: true }, { code: 9_999 }].map(
    (fault) =>
      [
        `reads of some traces fail with ${JSON.stringify(fault)}`,
        10,
        [{ match: 'FROM messages', value: SOME_TRACE, ...fault }],
      ] as const,
  ),
];

const sleep = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));

test('two receivers lose no run and store none twice while ClickHouse fails and receivers are killed', {
  timeout: ROUNDS * 300_000,
}, async () => {
  execFileSync(process.execPath, [join(root, 'scripts/install-peers.mjs'), 'clickhouse'], { stdio: 'inherit' });
  console.log(`FAULT_SEED=${SEED}`);
  const random = randomFrom(SEED);
  const occurred = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const { url: store, setFaults, stop } = await startServer();
    onTestFinished(stop);
    const { key, start, count } = await prepare(store);
    const receivers: Receiver[] = [await start(), await start()];
    const endpoint = await startBalancer(() => receivers.map(({ url }) => url));
    const senders = [1, 2].map(() => startSender(endpoint, key, { seconds: SECONDS, pauseMs: 25, closeMs: 120_000 }));
    for (const [name, seconds, faults] of FAULTS.toSorted(() => random() - 0.5)) {
      await sleep(1 + 2 * random());
      await setFaults(...faults);
      tally(occurred, name);
      await sleep(seconds * (0.5 + random() / 2));
      await setFaults();
      if (random() < 0.5) continue;
      const at = Number(random() < 0.5);
      const { child, ended, port } = receivers[at] as Receiver;
      child.kill('SIGKILL');
      await ended;
      tally(occurred, 'a receiver is killed');
      await sleep(5 * random());
      receivers[at] = await start(port);
    }
    const ledgers = await Promise.all(senders);
    const sent = ledgers.reduce((sum, ledger) => sum + ledger.sent, 0);
    for (const ledger of ledgers) expect(ledger).toMatchObject({ dropped: 0, sent: ledger.created });
    for (const { url } of receivers) {
      await expect.poll(() => count(url), { timeout: 120_000, interval: 1_000 }).toBe(sent);
      await expect
        .poll(() => exported(url, key), { timeout: 60_000, interval: 1_000 })
        .toEqual({ runs: sent, ids: sent, ended: sent });
    }
    tally(occurred, 'runs', sent);
    await stop();
  }
  console.log(table('faults, and runs that were sent and stored', occurred));
});

test('a backlog of many steps is caught up in bounded memory by a receiver that is restarted', {
  timeout: 300_000,
}, async () => {
  const { url, stop } = await startDatabase();
  onTestFinished(stop);
  // The insert of this test takes longer than requests may.
  const db = await ClickHouse.connect(url, 'retention');
  onTestFinished(() => db.close());
  await db.command(
    sql(`INSERT INTO messages (tenant, day, group_id, id, kind, received_us, fields, searched, facts, payloads)
      SELECT 'backlog', today(), toUUID(concat('01900000-0000-7000-8000-', leftPad(toString(intDiv(number, 200)), 12, '0'))) AS trace,
        toUUID(concat('01910000-0000-7000-8000-', leftPad(toString(number), 12, '0'))), 1,
        toUnixTimestamp64Micro(now64(6)) - 600000000 + number,
        concat('{"trace_id":"', toString(trace), '","run_type":"tool","start_time":"2026-11-27T10:00:00.000000Z"}'),
        concat('{"name":"step","extra":{"metadata":{"text":"', repeat('x', 1000), '"}}}'), '{}', ['{}', '', '']
      FROM numbers(100000)`),
  );
  let heapMaxBytes = 0;
  const timer = setInterval(() => {
    heapMaxBytes = Math.max(heapMaxBytes, process.memoryUsage().heapUsed);
  }, 20);
  onTestFinished(() => clearInterval(timer));
  const listed = async (): Promise<number> => {
    const [row] = await db.rows<{ runs: number }>(sql('SELECT count() AS runs FROM runs FINAL'));
    return row?.runs ?? 0;
  };
  const first = await ClickHouseStore.open(url);
  await expect.poll(listed, { timeout: 60_000, interval: 20 }).toBeGreaterThan(0);
  await first.close();
  expect(await listed()).toBeLessThan(100_000);
  const second = await ClickHouseStore.open(url);
  onTestFinished(() => second.close());
  await expect.poll(listed, { timeout: 200_000, interval: 500 }).toBe(100_000);
  console.log(`largest heap: ${Math.round(heapMaxBytes / 1e6)} MB`);
  expect(heapMaxBytes).toBeLessThan(400e6);
});

/** Counts the exported runs, their different ids, and those that have ended. */
async function exported(url: string, key: string): Promise<{ runs: number; ids: number; ended: number }> {
  const answer = await fetch(`${url}/query/export?list=runs&format=jsonl`, { headers: { 'x-api-key': key } });
  const runs = (await answer.text())
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  return {
    runs: runs.length,
    ids: new Set(runs.map(({ id }) => id)).size,
    ended: runs.filter(({ end_time }) => end_time !== undefined).length,
  };
}
