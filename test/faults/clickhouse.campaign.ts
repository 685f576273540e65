// Two receivers with a ClickHouse that fails, while programs send to both through a balancer. No run may be missing or twice.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startServer } from '../peers/clickhouse/database.ts';
import { prepare, type Receiver, startBalancer, startSender } from '../peers/clickhouse/receivers.ts';
import { root } from '../support/folders.ts';
import { randomFrom } from './random.ts';
import { table, tally } from './report.ts';

const ROUNDS = Number(process.env.FAULT_ROUNDS ?? 3);
const SEED = Number(process.env.FAULT_SEED ?? Date.now() % 1_000_000);
const SECONDS = 60;

type Fault = Readonly<Record<string, unknown>>;

/** Faults of ClickHouse, and the longest time for which they last, in seconds. */
const FAULTS: readonly (readonly [name: string, seconds: number, faults: readonly Fault[]])[] = [
  ['away', 15, [{ away: true }]],
  ['inserts do not end', 8, [{ match: 'INSERT INTO', held: true }]],
  ['too many parts', 5, [{ match: 'INSERT INTO messages', code: 252, times: 40 }]],
  ['responses to inserts are cut', 5, [{ match: 'INSERT INTO messages', cut: true, times: 20 }]],
  ['reads exceed the memory limit', 5, [{ match: 'SELECT', code: 241, times: 100 }]],
  ['lists cannot be updated', 10, [{ match: 'INSERT INTO runs', code: 241 }]],
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
