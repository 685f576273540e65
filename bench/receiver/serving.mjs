// Runs a receiver in its own process: serving.mjs <ClickHouse URL or file> [simple]. Sends its URL to the parent process. On the
// message `settle`, waits until lists and searches show all stored runs. On `reset` and `count`, counts what the receiver took. On
// `end`, closes the store. With `simple`, the receiver has no multipart route.
import { createReceiver, DEFAULT_SCOPE, parsedQuery, SqliteStore } from 'runspan/receiver';
import { ClickHouseStore } from '../../node_modules/.cache/modules/receiver/store/clickhouse/clickhouse-store.js';
import { Intake } from './intake.mjs';

const [, , location, mode] = process.argv;
const isFile = !location.startsWith('http');
const store = isFile
  ? await SqliteStore.open(location, { maxBytes: 1e15, maxAgeMs: 1e12 })
  : await ClickHouseStore.open(location, { maxAgeMs: 1e12 });
// The store keeps answers for 2 seconds, so that each query must be another one.
let groups = 0;
const totals = async () => (await store.statistics(DEFAULT_SCOPE, parsedQuery({ groups: ++groups }))).total;
const intake = new Intake(store, totals, mode === 'simple');
const receiver = await createReceiver({ store });
process.on('message', async (message) => {
  if (message === 'settle') {
    if (isFile) while ((await store.status()).unindexedRuns > 0) await new Promise((next) => setTimeout(next, 50));
    else await store.settled();
    process.send('settled');
  } else if (message === 'end') {
    await receiver.close();
    await store.close();
    process.disconnect();
  } else {
    process.send((await intake[message]()) ?? {});
  }
});
process.on('disconnect', () => process.exit());
process.send(receiver.url);
