import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NO_PRICES } from '#src/receiver/domain/cost/prices.ts';
import { SqliteCommits } from '#src/receiver/store/sqlite/commits.ts';
import { loadEngine, type SqliteConnection } from '#src/receiver/store/sqlite/file/database.ts';
import { openBeside, openToWrite } from '#src/receiver/store/sqlite/file/file.ts';
import { encodedOperation } from '#src/receiver/store/sqlite/payloads.ts';
import { SqliteRetentionTime } from '#src/receiver/store/sqlite/retention.ts';
import { DEFAULT_SCOPE } from '#src/receiver.ts';
import { logLines } from '../support/log-lines.ts';
import { simple } from './conformance/support.ts';
import { LIMITS, openLocalStore, storePath } from './local-store.ts';
import { call, start } from './wire.ts';
import {
  type AgedStore,
  type Clocks,
  checkAges,
  DAY_MS,
  KNOWN_PERIODS,
  MAX_AGE_MS,
  somePeriods,
  wallMs,
} from './wrong-clocks.ts';

const BY_PROJECT = { maxAgeMs: 2 * MAX_AGE_MS, projectMaxAgeMs: { default: { shop: MAX_AGE_MS } } };

async function openFile(path: string, ages: Partial<typeof LIMITS>, clocks: Clocks): Promise<AgedStore> {
  const { connection, lock } = openToWrite(await loadEngine(), path);
  const limits = { ...LIMITS, ...ages, prices: NO_PRICES };
  const commits = new SqliteCommits(
    connection,
    limits,
    () => wallMs(clocks),
    () => {},
    () => clocks.upMs,
  );
  return {
    add: (number) => commits.apply(DEFAULT_SCOPE, [encodedOperation(simple(number))]),
    check: () => commits.checkAge(),
    numbers: () =>
      connection.all<{ n: number }>('SELECT CAST(substr(name, 5) AS INTEGER) AS n FROM runs').map(({ n }) => n),
    close: () => {
      commits.close();
      connection.close();
      lock.close();
    },
  };
}

/** Opens a store file whose retention time is 3 days late. `change` opens the file beside it. */
async function openLate() {
  const path = storePath();
  await (await openLocalStore(path)).close();
  const change = async (work: (connection: SqliteConnection) => void) => {
    const connection = openBeside(await loadEngine(), path, false);
    work(connection);
    connection.close();
  };
  await change((connection) => new SqliteRetentionTime(connection).write(Date.now() - 3 * DAY_MS));
  const lines = logLines('warn');
  const store = await openLocalStore(path);
  await expect.poll(() => store.lag).toContain('The retention time is 3.0 days behind the clock');
  return { change, lines, path, store };
}

test('a late retention time is logged once and reported by /readyz, until it is set to the clock', async () => {
  const { change, lines, store } = await openLate();
  const { url } = await start({ store });
  const ready = async () => (await call(`${url}/readyz`, 'GET')).body;
  expect(await ready()).toEqual({ status: 'ready', detail: store.lag });
  expect((await call(`${url}/query/session`, 'GET')).body).toMatchObject({ lag: store.lag });
  expect(lines).toEqual([`warn: old runs are deleted later: ${store.lag}`]);
  await change((connection) => new SqliteRetentionTime(connection).write(Date.now()));
  store.checkAge();
  await expect.poll(ready).toEqual({ status: 'ready' });
  expect(lines).toHaveLength(1);
});

test('the names of what was deleted are kept for 30 days of the retention time', async () => {
  const { change, store } = await openLate();
  const kept: number[] = [];
  const count = (connection: SqliteConnection) => kept.push(connection.number('SELECT count(*) FROM removed'));
  const check = async () => {
    store.checkAge();
    // The writer executes its calls in order.
    await store.apply(DEFAULT_SCOPE, []);
    await change(count);
  };
  const days = 30 * 86_400;
  const names = `(1, 1, x'01', 1, unixepoch() - ${days + 1}), (2, 1, x'02', 1, unixepoch() - ${days - 60})`;
  await change((connection) => connection.run(`INSERT INTO removed VALUES ${names}`));
  await check();
  await change((connection) => new SqliteRetentionTime(connection).write(Date.now()));
  await check();
  expect(kept).toEqual([2, 1]);
});

test('a run that arrives while the clock is late for a moment is kept', async () => {
  const clocks: Clocks = { trueMs: Date.UTC(2026, 10, 20), aheadMs: 0, upMs: 0 };
  const store = await openFile(storePath(), { maxAgeMs: MAX_AGE_MS }, clocks);
  await store.check();
  clocks.aheadMs = -100 * DAY_MS;
  await store.add(1);
  clocks.aheadMs = 0;
  await store.check();
  await store.add(2);
  expect(await store.numbers()).toEqual([1, 2]);
  await store.close();
});

test('a wrong clock deletes nothing early from a file, and everything goes in the end', {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(somePeriods, fc.constantFrom({ maxAgeMs: MAX_AGE_MS }, BY_PROJECT), async (periods, ages) => {
      const path = storePath();
      await checkAges(periods, (clocks) => openFile(path, ages, clocks));
    }),
    { numRuns: 10, examples: KNOWN_PERIODS.map((periods) => [periods, { maxAgeMs: MAX_AGE_MS }]) },
  );
});
