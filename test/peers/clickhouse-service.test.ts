// Two receivers with one ClickHouse database (see clickhouse/shim.mjs).
import { expect, onTestFinished, test } from 'vitest';
import { runNode, runRunspan } from '../support/program.ts';
import { asApplication, snippetsIn } from './application.ts';
import { startServer } from './clickhouse/database.ts';
import { prepare, startBalancer, startSender } from './clickhouse/receivers.ts';

test('the program in docs/self-hosting.md opens a migrated database, and refuses another', async () => {
  const { url, stop } = await startServer();
  onTestFinished(stop);
  const [program] = snippetsIn('docs/self-hosting.md').filter(({ code }) => code.includes('ClickHouseStore.open'));
  const run = () => runNode([asApplication(program?.code ?? '')], { RUNSPAN_STORE: url });
  expect(await run()).toMatchObject({ code: 1, stderr: expect.stringContaining('run `runspan store migrate`') });
  expect(await runRunspan(['store', 'migrate', '--store', url])).toMatchObject({ code: 0 });
  expect(await run()).toMatchObject({ code: 0, stderr: '' });
});

test('two receivers store each run once while one of them is killed and started again', async () => {
  const { url: store, stop } = await startServer();
  onTestFinished(stop);
  const { key, start, count } = await prepare(store);
  const [first, second] = [await start(), await start()];
  const endpoint = await startBalancer(() => [first.url, second.url]);
  const senders = [1, 2].map(() => startSender(endpoint, key, { seconds: 6, pauseMs: 4, closeMs: 40_000 }));
  await expect.poll(() => count(second.url), { timeout: 20_000 }).toBeGreaterThan(100);
  first.child.kill('SIGKILL');
  await first.ended;
  const atKill = await count(second.url);
  await expect.poll(() => count(second.url), { timeout: 20_000 }).toBeGreaterThan(atKill);
  const restarted = await start(first.port);

  const ledgers = await Promise.all(senders);
  const sent = ledgers.reduce((sum, ledger) => sum + ledger.sent, 0);
  for (const ledger of ledgers) expect(ledger).toMatchObject({ dropped: 0, sent: ledger.created });
  for (const { url } of [second, restarted]) {
    await expect.poll(() => count(url), { timeout: 90_000, interval: 1_000 }).toBe(sent);
  }
}, 200_000);
